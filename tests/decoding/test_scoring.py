"""Scores and decisions from recorded numbers: golden values."""

import numpy as np
import pytest

from selfrag_jax.config import DecodeConfig
from selfrag_jax.decoding import scoring
from selfrag_jax.decoding.scoring import GroupReading, SegmentScore, Trace
from selfrag_jax.reflection import CONTINUE, REFLECTION, RETRIEVAL, SLICES, ReflectionIds

IDS = ReflectionIds(*range(32000, 32016))
EOS = 2


def logits(**groups) -> np.ndarray:
    """13 logits with the given probabilities (of the whole distribution, whose log-normaliser is 0) in each group."""
    out = np.full(13, np.log(1e-6))
    for name, probabilities in groups.items():
        out[SLICES[name]] = np.log(probabilities)
    return out


def reading(score: float) -> GroupReading:
    return GroupReading(0, (), 0, score)


def segment(first=0.0, isrel=None, issup=None, isuse=None) -> SegmentScore:
    return SegmentScore(first, *(None if s is None else reading(s) for s in (isrel, issup, isuse)))


def test_worked_example():
    """SELFRAG.md §2: candidates (IsRel, IsSup, IsUse) of (0.90, 0.80, 0.60) and (0.85, 0.30, 0.70)."""
    a, b = segment(0.0, 0.90, 0.80, 0.60), segment(0.0, 0.85, 0.30, 0.70)
    config = DecodeConfig(critique="ideal", first_term="none")
    assert scoring.path_score([a], True, config) == pytest.approx(2.00)
    assert scoring.path_score([b], True, config) == pytest.approx(1.50)
    config.w_issup = 2.0
    assert scoring.path_score([a], True, config) == pytest.approx(2.80)
    assert scoring.path_score([b], True, config) == pytest.approx(1.80)


@pytest.mark.parametrize(
    ("group", "probabilities", "graded", "ideal"),
    [
        ("isrel", [0.3, 0.7], 0.7, 0.7),
        ("issup", [0.5, 0.3, 0.2], 0.65, 0.5),
        ("isuse", [0.1, 0.2, 0.3, 0.15, 0.25], -0.1 - 0.1 + 0.075 + 0.25, 0.25),
    ],
)
def test_critique_scores(group, probabilities, graded, ideal):
    # Half the mass is outside the group: normalising inside it must not see that.
    found = scoring.group_probabilities(logits(**{group: np.array(probabilities) / 2}), group)
    np.testing.assert_allclose(found, probabilities)
    assert scoring.critique_score(group, found, "graded") == pytest.approx(graded)
    assert scoring.critique_score(group, found, "ideal") == pytest.approx(ideal)


def a_trace() -> Trace:
    """`word [Partially supported] [Utility:4] [Utility:1] </s>`: IsRel is not emitted at all."""
    tokens = np.array([500, IDS.partially, IDS.utility_4, IDS.utility_1, EOS])
    rows = [
        logits(isrel=[0.02, 0.06], issup=[0.9, 0.05, 0.05]),
        logits(issup=[0.1, 0.3, 0.1], isrel=[0.5, 0.1]),
        logits(isuse=[0.1, 0.1, 0.1, 0.6, 0.1], issup=[0.8, 0.1, 0.1]),
        logits(isuse=[0.6, 0.1, 0.1, 0.1, 0.1]),
        logits(isuse=[0.2, 0.2, 0.2, 0.2, 0.2]),
    ]
    return Trace(tokens, np.log([0.5, 0.25, 0.5, 0.5, 1.0]), np.stack(rows), np.zeros(5))


def test_where_groups_are_read():
    found = scoring.score_segment(a_trace(), IDS, DecodeConfig(), "retrieve")
    assert found.isrel is not None and found.issup is not None and found.isuse is not None
    assert (found.isrel.position, found.issup.position, found.isuse.position) == (0, 1, 2)
    assert found.isrel.score == pytest.approx(0.75) and found.isrel.greedy == 1
    assert found.issup.score == pytest.approx(0.2 + 0.5 * 0.6) and found.issup.greedy == 1
    assert found.isuse.score == pytest.approx(-0.1 - 0.05 + 0.3 + 0.1)
    alone = scoring.score_segment(a_trace(), IDS, DecodeConfig(), "none")
    assert (alone.isrel, alone.issup) == (None, None) and alone.isuse == found.isuse
    going_on = scoring.score_segment(a_trace(), IDS, DecodeConfig(), "continue", reading(0.4))
    assert going_on.isrel is not None and (going_on.isrel.score, going_on.isrel.position) == (0.4, -1)


def test_forced_readings():
    """Where IsSup and IsUse should have stood: before IsUse, at the closing token, or after a segment without one."""

    def read(tokens, closed=True, after=None, force=("issup", "isuse")):
        rows = np.stack([logits(isrel=[0.1, 0.9])] * len(tokens))
        trace = Trace(np.array(tokens), np.zeros(len(tokens)), rows, np.zeros(len(tokens)), closed, after=after)
        found = scoring.score_segment(trace, IDS, DecodeConfig(), "retrieve", force=force)
        where = lambda group: None if group is None else (group.position, group.forced)  # noqa: E731
        return where(found.issup), where(found.isuse)

    assert read([500, IDS.utility_4, EOS]) == ((1, True), (1, False))
    assert read([500, IDS.fully, EOS]) == ((1, False), (2, True))
    assert read([500, EOS]) == ((1, True), (1, True))
    assert read([500, IDS.retrieval], force=["issup"]) == ((1, True), None)
    assert read([500, 501], closed=False) == (None, None)
    after = logits(issup=[0.8, 0.1, 0.1], isuse=[0.1, 0.1, 0.1, 0.1, 0.6])
    assert read([500, 501], False, after) == ((2, True), (2, True))
    assert read([500, EOS], force=()) == (None, None)
    trace = Trace(np.array([500]), np.zeros(1), logits(isrel=[0.9, 0.1])[None], np.zeros(1), False, after=after)
    assert scoring.score_segment(trace, IDS, DecodeConfig(), "retrieve", force=["issup"]).issup is None  # irrelevant
    assert scoring.score_segment(trace, IDS, DecodeConfig(), "none", force=["issup"]).issup is None
    read_after = scoring.score_segment(trace, IDS, DecodeConfig(), "text", force=["isuse"]).isuse
    assert read_after is not None and read_after.score == pytest.approx(-0.1 - 0.05 + 0.05 + 0.6)


@pytest.mark.parametrize(
    ("kind", "count", "value"),
    [
        ("mean_prob", True, (0.5 * 0.25 * 0.5 * 0.5) ** (1 / 5)),
        ("mean_prob", False, 0.5**0.5),
        ("prob", True, 0.03125),
        ("log_prob", False, np.log(0.5)),
        ("none", True, 0.0),
    ],
)
def test_first_term(kind, count, value):
    assert scoring.first_term(a_trace(), IDS, kind, count) == pytest.approx(value)


def test_paths():
    first, last = segment(0.8, 0.9, 0.6, 0.3), segment(0.4, 0.5, None, 1.0)
    mean = DecodeConfig()
    # Not ended: without IsUse; the weights 1 and 1 are scaled to the sum of all, 2.5.
    assert scoring.path_score([first], False, mean) == pytest.approx(0.8 + 2.5 / 2 * (0.9 + 0.6))
    # Ended: IsUse once, from the last segment; IsRel and IsSup over the segments that have them.
    assert scoring.path_score([first, last], True, mean) == pytest.approx(0.6 + 0.7 + 0.6 + 0.5 * 1.0)
    summed = DecodeConfig(combine="sum")
    assert scoring.path_score([first, last], True, summed) == pytest.approx(1.2 + 1.4 + 0.6 + 0.5)
    product = DecodeConfig(combine="product")
    closing = 0.4 + 2.5 / 1.5 * (0.5 + 0.5)
    assert scoring.path_score([first, last], True, product) == pytest.approx((0.8 + 1.25 * 1.5) * closing)
    assert scoring.path_score([segment(0.7)], True, mean) == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("settings", "probabilities", "greedy", "evidence", "action"),
    [
        ({}, [0.7, 0.2, 0.0], 0, False, "retrieve"),  # .2/.9 > .2
        ({"threshold_over": "three"}, [0.5, 0.19, 0.31], 0, False, "none"),  # .19, though .19/.69 > .2
        ({"threshold": 0.3}, [0.7, 0.2, 0.0], 0, False, "none"),
        ({}, [0.02, 0.02, 0.0], None, False, "text"),  # the group has 4 %, below min_group_mass
        ({}, [0.001, 0.02, 0.0], 1, False, "retrieve"),  # a token of the group is greedy all the same
        ({}, [0.1, 0.3, 0.5], 2, True, "continue"),
        ({}, [0.1, 0.3, 0.5], 2, False, "retrieve"),  # nothing to continue
        ({"retrieve": "token"}, [0.1, 0.4, 0.3], 1, False, "retrieve"),
        ({"retrieve": "token"}, [0.4, 0.3, 0.2], 0, False, "none"),
        ({"retrieve": "token"}, [0.1, 0.3, 0.2], None, False, "text"),
        ({"retrieve": "token"}, [0.1, 0.3, 0.5], 2, False, "none"),
        ({"retrieve": "always"}, [0.1, 0.1, 0.5], 2, True, "retrieve"),
        ({"retrieve": "never"}, [0.1, 0.8, 0.1], 1, True, "none"),
    ],
)
def test_decisions(settings, probabilities, greedy, evidence, action):
    token = 500 if greedy is None else int(IDS.group("retrieve")[greedy])
    row = logits(retrieve=np.maximum(probabilities, 1e-9))
    found = scoring.decide(row, 0.0, token, IDS, DecodeConfig(**settings), evidence)
    assert found.action == action
    assert found.mass == pytest.approx(sum(probabilities), rel=1e-4)
    assert found.greedy == ("" if greedy is None else REFLECTION[greedy])
    assert REFLECTION[1:3] == (RETRIEVAL, CONTINUE)
