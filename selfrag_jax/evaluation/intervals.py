"""Shares with bootstrap intervals."""

import dataclasses
from collections.abc import Hashable, Sequence

import numpy as np

RESAMPLES = 2000
LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Share:
    """A share of n counted things, and where it would fall in 95 % of samples like this one (percentile bootstrap)."""

    value: float
    low: float
    high: float
    n: int

    def percent(self) -> str:
        """`97.3 (95.1–98.9)`; a dash where nothing was counted."""
        if not self.n:
            return "–"
        return f"{100 * self.value:.1f} ({100 * self.low:.1f}–{100 * self.high:.1f})"


def share(
    hits: Sequence[float], counts: Sequence[float] | None = None, units: Sequence[Hashable] | None = None, seed: int = 0
) -> Share:
    """Σ hits / Σ counts with its interval.

    Args:
        hits: of each item, such as a question; True and False where each counts once.
        counts: how much each item counts, 1 by default.
        units: what is drawn as a whole: items of one unit, such as the questions about one country, stand or fall
            together. By default each item is a unit.
        seed: of the samples.
    """
    return _bootstrap(*_by_unit(hits, counts, units), 0.0, seed)


def difference(
    first: Sequence[float], second: Sequence[float], units: Sequence[Hashable] | None = None, seed: int = 0
) -> Share:
    """The mean of first − second over the same items (a paired bootstrap); `units` as in `share`."""
    gaps = (np.asarray(first, np.float64) - np.asarray(second, np.float64)).tolist()
    return _bootstrap(*_by_unit(gaps, None, units), -1.0, seed)


def _by_unit(
    hits: Sequence[float], counts: Sequence[float] | None, units: Sequence[Hashable] | None
) -> tuple[np.ndarray, np.ndarray]:
    hits_N = np.asarray(hits, np.float64)
    counts_N = np.ones_like(hits_N) if counts is None else np.asarray(counts, np.float64)
    if units is None:
        return hits_N, counts_N
    numbers = {unit: number for number, unit in enumerate(dict.fromkeys(units))}
    place_N = np.array([numbers[unit] for unit in units], np.int64)
    return np.bincount(place_N, hits_N, len(numbers)), np.bincount(place_N, counts_N, len(numbers))


def _bootstrap(hits_U: np.ndarray, counts_U: np.ndarray, least: float, seed: int) -> Share:
    """The share over units, none below `least`.

    Where all units that count are alike so is every sample; there the interval reaches as far as something may happen
    that was seen in none of so many (Clopper–Pearson: of a share of 0 or 1 it is the exact interval).
    """
    if not counts_U.sum():
        return Share(0.0, 0.0, 0.0, 0)
    value, n = float(hits_U.sum() / counts_U.sum()), int(counts_U.sum())
    telling = counts_U > 0
    if np.ptp(hits_U[telling] / counts_U[telling]) == 0:
        rare = float(1 - ((1 - LEVEL) / 2) ** (1 / telling.sum()))
        return Share(value, max(least, value - rare), min(1.0, value + rare), n)
    drawn_BU = np.random.default_rng(seed).integers(0, len(hits_U), (RESAMPLES, len(hits_U)))
    below = counts_U[drawn_BU].sum(1)
    ratios = np.divide(hits_U[drawn_BU].sum(1), below, out=np.zeros(RESAMPLES), where=below > 0)
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Share(value, float(low), float(high), n)
