"""Shares with bootstrap intervals."""

import dataclasses
from collections.abc import Sequence

import numpy as np

RESAMPLES = 2000
LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Share:
    """A share of n units, and where it would fall in 95 % of samples like this one (percentile bootstrap)."""

    value: float
    low: float
    high: float
    n: int

    def percent(self) -> str:
        """`97.3 (95.1–98.9)`; a dash where nothing was counted."""
        if not self.n:
            return "–"
        return f"{100 * self.value:.1f} ({100 * self.low:.1f}–{100 * self.high:.1f})"


def share(hits: Sequence[float], counts: Sequence[float] | None = None, seed: int = 0) -> Share:
    """Σ hits / Σ counts with its interval. A unit, such as a question, is drawn whole.

    Where all units are alike so is every sample; there the interval is the exact one of a binomial.

    Args:
        hits: of each unit; True and False where each counts once.
        counts: how much each unit counts, 1 by default.
    """
    found = _bootstrap(hits, counts, seed)
    if found.n and found.low == found.high and found.value in (0.0, 1.0):
        rare = 1 - ((1 - LEVEL) / 2) ** (1 / len(hits))
        low, high = (1 - rare, 1.0) if found.value else (0.0, rare)
        return dataclasses.replace(found, low=low, high=high)
    return found


def difference(first: Sequence[float], second: Sequence[float], seed: int = 0) -> Share:
    """The mean of first − second over the same units (a paired bootstrap)."""
    return _bootstrap((np.asarray(first, np.float64) - np.asarray(second, np.float64)).tolist(), None, seed)


def _bootstrap(hits: Sequence[float], counts: Sequence[float] | None, seed: int) -> Share:
    hits_N = np.asarray(hits, np.float64)
    counts_N = np.ones_like(hits_N) if counts is None else np.asarray(counts, np.float64)
    if not counts_N.sum():
        return Share(0.0, 0.0, 0.0, 0)
    drawn_BN = np.random.default_rng(seed).integers(0, len(hits_N), (RESAMPLES, len(hits_N)))
    below = counts_N[drawn_BN].sum(1)
    ratios = np.divide(hits_N[drawn_BN].sum(1), below, out=np.zeros(RESAMPLES), where=below > 0)
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Share(float(hits_N.sum() / counts_N.sum()), float(low), float(high), int(counts_N.sum()))
