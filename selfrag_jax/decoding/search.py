"""The beam over segments: what a path is, and which paths are kept. Pure: no device, no model, no text.

A path is a chain of segments. Every step each kept, unended path is followed by one candidate segment per passage
(or by one without a passage); of all these and the ended paths of the question the best B are kept.
"""

import dataclasses

import numpy as np

from selfrag_jax.config import DecodeConfig
from selfrag_jax.decoding import scoring
from selfrag_jax.decoding.scoring import Action, Decision, GroupReading, SegmentScore, Trace
from selfrag_jax.reflection import IRRELEVANT, ISREL, ISSUP, NO_SUPPORT


@dataclasses.dataclass(frozen=True)
class Step:
    """One candidate segment: what was put before it, what was generated, and its scores."""

    node: int  # number of the candidate in the question's tree, in the order they were generated
    parent: int | None  # the node it follows, None for a first segment
    depth: int  # from 0
    action: Action
    passage: int | None  # index into the question's passages: put in by this segment, or inherited by Continue
    decision: Decision
    suffix: tuple[int, ...]  # ids put in: a Retrieve token and, fenced, the passage
    trace: Trace
    score: SegmentScore


@dataclasses.dataclass(frozen=True)
class Path:
    """A chain of segments from the prompt; `ended` says why it goes no further ("" while it may)."""

    steps: tuple[Step, ...]
    ended: str  # "" | eos | budget | segment | depth | context
    score: float
    decision: Decision | None  # at the boundary after the last segment, where it goes on

    @property
    def generated(self) -> int:
        """Tokens generated along the path, those beyond a cut among them."""
        return sum(len(step.trace.tokens) for step in self.steps)

    @property
    def evidence(self) -> int | None:
        """The passage in force: that of the last retrieval (None if it found nothing)."""
        return next((s.passage for s in reversed(self.steps) if s.decision.action == "retrieve"), None)

    @property
    def retrievals(self) -> int:
        """Retrievals along the path, those that found nothing among them."""
        return sum(step.decision.action == "retrieve" for step in self.steps)

    @property
    def isrel(self) -> GroupReading | None:
        """The reading of IsRel that a segment which continues inherits."""
        return next((s.score.isrel for s in reversed(self.steps) if s.decision.action == "retrieve"), None)


def follow(path: Path, step: Step, ended: str, decision: Decision | None, config: DecodeConfig) -> Path:
    """The path longer by one segment, scored."""
    steps = (*path.steps, step)
    return Path(steps, ended, scoring.path_score([s.score for s in steps], bool(ended), config), decision)


def keep_best(paths: list[Path], beam: int) -> list[Path]:
    """The `beam` best by score, best first; among equals the earlier in the list. Ended paths compete as they are."""
    order = np.argsort([-path.score for path in paths], kind="stable")
    return [paths[i] for i in order[:beam]]


def passes(step: Step, config: DecodeConfig) -> bool:
    """Whether the filters let a candidate through (§3.3): by its greedy IsRel and IsSup, where it has them."""
    isrel, issup = step.score.isrel, step.score.issup
    irrelevant = isrel is not None and ISREL[isrel.greedy] == IRRELEVANT
    unsupported = issup is not None and ISSUP[issup.greedy] == NO_SUPPORT
    return not (config.filter_isrel and irrelevant) and not (config.filter_issup and unsupported)


def keep(ended: list[Path], new: list[Path], config: DecodeConfig) -> list[Path]:
    """The next beam: the best of the ended paths and of those new ones that pass the filters.

    Where that leaves nothing, the best of the new ones, which `passes` tells from the others.
    """
    pool = ended + [path for path in new if passes(path.steps[-1], config)]
    return keep_best(pool, config.beam) if pool else keep_best(new, 1)
