"""Scores of one segment from the numbers recorded for it (§3.3, A.3, Eq. 4). NumPy only: no device, no model.

    f(y_t, d) = p(y_t | x, d, y_<t) + S,   S = Σ_G w_G · s_G,   G ∈ {IsRel, IsSup, IsUse}

Each s_G is read from the group's own probabilities: the softmax over the logits of that group's tokens alone.
"""

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np

from selfrag_jax.config import DecodeConfig
from selfrag_jax.reflection import CONTINUE, GROUPS, REFLECTION, RETRIEVAL, SLICES, ReflectionIds

Action = Literal["retrieve", "continue", "none", "text"]
ISUSE_WEIGHTS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])


@dataclasses.dataclass(frozen=True)
class Trace:
    """What the device recorded for one segment: n positions, the closing token's among them."""

    tokens: np.ndarray  # int [n]
    logprobs: np.ndarray  # [n], of the tokens
    reflection: np.ndarray  # [n, 13], logits in the order of `REFLECTION`
    log_norms: np.ndarray  # [n]
    closed: bool = True  # whether the segment ends with a Retrieve token or the end of sequence
    _: dataclasses.KW_ONLY
    cut: int | None = None  # with stop_at="eos": where the [Retrieval] token is that ends the segment, in `tokens`
    after: np.ndarray | None = None  # [13], logits after the last token of a segment that is not closed, where known

    @property
    def last(self) -> int:
        """Where the segment's last token is; what was generated after it counts in scores only."""
        return len(self.tokens) - 1 if self.cut is None else self.cut

    @property
    def segment(self) -> np.ndarray:
        """The segment's tokens, its closing one included."""
        return self.tokens[: self.last + 1]


@dataclasses.dataclass(frozen=True)
class GroupReading:
    """One group, where it was read: its normalised probabilities and the value that is greedy among them."""

    position: int  # in the segment (n: after its last token); -1: inherited from an earlier one
    probabilities: tuple[float, ...]  # in the order of `reflection.GROUPS`
    greedy: int  # index into the group
    score: float  # s_G
    forced: bool = False  # read where a token of the group should have stood; another or none was written there


@dataclasses.dataclass(frozen=True)
class SegmentScore:
    """The terms of f for one segment; None where the segment has no such group."""

    first_term: float
    isrel: GroupReading | None
    issup: GroupReading | None
    isuse: GroupReading | None


@dataclasses.dataclass(frozen=True)
class Decision:
    """Whether to retrieve, and the numbers it was decided from."""

    action: Action
    probabilities: tuple[float, float, float]  # No Retrieval, Retrieval, Continue; normalised over the three
    ratio: float  # what the threshold is compared with
    mass: float  # the group's share of the whole distribution
    greedy: str  # the greedy token, "" if it is not of the group


def group_probabilities(reflection_logits: np.ndarray, group: str) -> np.ndarray:
    """Probabilities normalised inside one group, from logits [..., 13] → [..., size of the group]."""
    logits = np.asarray(reflection_logits, np.float64)[..., SLICES[group]]
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def critique_score(group: str, probabilities: np.ndarray, definition: str = "graded") -> float:
    """s_G from a group's normalised probabilities.

    `graded` (A.3): IsRel p(Relevant); IsSup p(Full) + 0.5·p(Partial); IsUse Σ_i w_i·p(i), w = (-1, -0.5, 0, 0.5, 1).
    `ideal` (Eq. 4): the probability of the most desirable value (Relevant, Fully supported, Utility:5).
    """
    graded = {"isrel": np.array([0.0, 1.0]), "issup": np.array([1.0, 0.5, 0.0]), "isuse": ISUSE_WEIGHTS}
    ideal = {"isrel": np.array([0.0, 1.0]), "issup": np.array([1.0, 0.0, 0.0]), "isuse": np.eye(5)[4]}
    return float({"graded": graded, "ideal": ideal}[definition][group] @ probabilities)


def first_term(
    trace: Trace, ids: ReflectionIds, kind: str = "mean_prob", count_reflection_tokens: bool = True
) -> float:
    """p(y_t | …) over the segment's tokens, the closing Retrieve or end token among them.

    `mean_prob` exp(mean log p); `prob` exp(Σ log p); `log_prob` Σ log p; `none` 0. Without `count_reflection_tokens`
    the 13 reflection tokens are left out. Over no token at all, p is 1.
    """
    if kind == "none":
        return 0.0
    logprobs = trace.logprobs.astype(np.float64)
    if not count_reflection_tokens:
        logprobs = logprobs[~np.isin(trace.tokens, ids.array)]
    total = float(logprobs.sum())
    values = {"log_prob": total, "prob": np.exp(total), "mean_prob": np.exp(total / max(len(logprobs), 1))}
    return float(values[kind])


def read_group(trace: Trace, group: str, position: int | None, definition: str) -> GroupReading | None:
    """The group's reading at a position of the segment; None for no position."""
    return None if position is None else _reading(trace.reflection[position], group, position, definition)


def _reading(logits, group: str, position: int, definition: str, forced: bool = False) -> GroupReading:
    probabilities = group_probabilities(logits, group)
    score = critique_score(group, probabilities, definition)
    return GroupReading(position, tuple(probabilities.tolist()), int(probabilities.argmax()), score, forced)


def first_of(tokens: np.ndarray, group_ids: np.ndarray) -> int | None:
    """Where the first token of a group was emitted, None if none was."""
    found = np.flatnonzero(np.isin(tokens, group_ids))
    return int(found[0]) if len(found) else None


def score_segment(
    trace: Trace,
    ids: ReflectionIds,
    config: DecodeConfig,
    action: Action,
    inherited: GroupReading | None = None,
    force: Sequence[str] = (),
) -> SegmentScore:
    """The terms of f for a segment.

    IsRel is read at the first position after `</paragraph>`, whatever was emitted there; IsSup and IsUse where the
    first token of their group was emitted. A segment with neither a passage nor evidence in force has no IsRel and no
    IsSup, one whose passage is judged Irrelevant no IsSup; one that continues `inherited` that reading of IsRel.

    Groups in `force` ("issup", "isuse") that were not written are read where they should have been: before IsUse or
    the closing token, and after a segment that ended without one (`Trace.after`).
    """
    isrel = read_group(trace, "isrel", 0, config.critique) if action == "retrieve" else None
    if action == "continue" and inherited is not None:
        isrel = dataclasses.replace(inherited, position=-1)
    has_evidence = action in ("retrieve", "continue") and not (isrel is not None and isrel.greedy == 0)

    def read(group: str) -> GroupReading | None:
        written = read_group(trace, group, first_of(trace.tokens, ids.group(group)), config.critique)
        return written or (_read_forced(trace, group, ids, config.critique) if group in force else None)

    return SegmentScore(
        first_term(trace, ids, config.first_term, config.count_reflection_tokens),
        isrel,
        read("issup") if has_evidence else None,
        read("isuse"),
    )


def _read_forced(trace: Trace, group: str, ids: ReflectionIds, definition: str) -> GroupReading | None:
    """The group's reading where its token should have stood; None where that position was never computed."""
    position = first_of(trace.tokens, ids.group("isuse")) if group == "issup" else None
    if position is None:
        position = trace.last if trace.closed else len(trace.tokens)
    logits = trace.reflection[position] if position < len(trace.tokens) else trace.after
    return None if logits is None else _reading(logits, group, position, definition, forced=True)


def decide(
    reflection_logits: np.ndarray,
    log_norm: float,
    token: int,
    ids: ReflectionIds,
    config: DecodeConfig,
    evidence: bool,
    retrievals: int = 0,
) -> Decision:
    """What to do at a position where a segment may begin (algorithm 1 and A.3).

    Args:
        reflection_logits, log_norm: of the distribution there, [13] and scalar.
        token: its greedy token.
        evidence: whether a passage is in force, so that Continue means something.
        retrievals: how many the path has had; after `max_retrievals` it continues its evidence instead.

    Returns:
        `retrieve`, `continue` the evidence, `none` (No Retrieval), or `text`: the group is not on offer, so the segment
        starts with text. It is on offer where one of its tokens is greedy and, in threshold mode, where it has
        `min_group_mass`.
    """
    probabilities = group_probabilities(reflection_logits, "retrieve")
    no_retrieval, retrieval, continue_ = probabilities.tolist()
    mass = float(np.exp(np.asarray(reflection_logits, np.float64)[SLICES["retrieve"]] - log_norm).sum())
    ratio = retrieval / (retrieval + no_retrieval) if config.threshold_over == "two" else retrieval
    group = ids.group("retrieve")
    greedy = REFLECTION[SLICES["retrieve"]][int(np.flatnonzero(group == token)[0])] if token in group else ""
    on_offer = greedy != "" or (config.retrieve == "threshold" and mass >= config.min_group_mass)
    best = GROUPS["retrieve"][int(probabilities.argmax())]
    action = _action(config, best, on_offer, ratio, evidence)
    if action == "retrieve" and 0 < config.max_retrievals <= retrievals:
        action = "continue" if evidence else "none"
    return Decision(action, (no_retrieval, retrieval, continue_), ratio, mass, greedy)


def _action(config: DecodeConfig, greedy: str, on_offer: bool, ratio: float, evidence: bool) -> Action:
    """greedy: the likeliest token of the group."""
    if config.retrieve in ("always", "never"):
        return "retrieve" if config.retrieve == "always" else "none"
    if not on_offer:
        return "text"
    if greedy == CONTINUE and evidence:
        return "continue"
    wanted = greedy == RETRIEVAL if config.retrieve == "token" else ratio > config.threshold
    return "retrieve" if wanted else "none"


def path_score(segments: Sequence[SegmentScore], ended: bool, config: DecodeConfig) -> float:
    """The score by which paths of one question are compared.

    With first terms p_t, and M the mean over segments (`combine="mean"`) or the sum (`"sum"`):

        score = M_t p_t + (W / W_P) · [ w_IsRel · M s_IsRel + w_IsSup · M s_IsSup + w_IsUse · s_IsUse ]

    M s_G runs over the segments that have G. IsUse closes an answer, so it enters once, from the last segment that
    has it, and only in paths that have ended. W is the sum of the three weights and W_P of those whose group is present
    on the path: paths that lack a group are compared as if it stood at the average of what they have. A path of one
    segment with all groups present has f of §3.3.

    `"product"` multiplies the segments' f_t = p_t + (W / W_P,t) Σ_G w_G · s_G,t over the groups present in each, IsUse
    in the last segment that has it.

    With `absent="zero"`, as in the authors' code, every segment has f_t = p_t + Σ_G w_G · s_G,t by itself, IsUse too,
    and 0 for a group that it lacks.
    """
    if config.absent == "zero":
        return _combined([s.first_term + _critique_or_zero(s, config) for s in segments], config.combine)
    closing = max((i for i, s in enumerate(segments) if s.isuse is not None), default=None) if ended else None
    if config.combine == "product":
        scores = [s.first_term + _critique([s], s if i == closing else None, config) for i, s in enumerate(segments)]
        return _combined(scores, "product")
    combined = _combined([s.first_term for s in segments], config.combine)
    return combined + _critique(segments, None if closing is None else segments[closing], config)


def _combined(scores: Sequence[float], how: str) -> float:
    """The mean, sum or product of the scores of a path's segments."""
    if how == "product":
        return float(np.prod(scores))
    return sum(scores) if how == "sum" else sum(scores) / len(scores)


def _critique_or_zero(segment: SegmentScore, config: DecodeConfig) -> float:
    """Σ_G w_G · s_G over the groups that the segment has."""
    terms = ((config.w_isrel, segment.isrel), (config.w_issup, segment.issup), (config.w_isuse, segment.isuse))
    return sum(weight * reading.score for weight, reading in terms if reading is not None)


def _critique(segments: Sequence[SegmentScore], closing: SegmentScore | None, config: DecodeConfig) -> float:
    """(W / W_P) · Σ_G w_G · M s_G over the groups that are present."""
    readings = {
        "isrel": (config.w_isrel, [s.isrel.score for s in segments if s.isrel is not None]),
        "issup": (config.w_issup, [s.issup.score for s in segments if s.issup is not None]),
        "isuse": (config.w_isuse, [closing.isuse.score] if closing is not None and closing.isuse is not None else []),
    }
    present = [
        (w, sum(scores) / (1 if config.combine == "sum" else len(scores))) for w, scores in readings.values() if scores
    ]
    total_present = sum(w for w, _ in present)
    if total_present == 0:
        return 0.0
    total = sum(weight for weight, _ in readings.values())
    return total / total_present * sum(weight * score for weight, score in present)
