"""What the authors' code does otherwise: each of its settings changes the outcome, and in the way that is said."""

import itertools

import numpy as np
import pytest

from selfrag_jax.config import DecodeConfig
from selfrag_jax.decoding import scoring
from selfrag_jax.decoding.batch import Batch
from selfrag_jax.decoding.model import Model
from selfrag_jax.decoding.result import Result
from selfrag_jax.decoding.state import Row
from selfrag_jax.reflection import ReflectionIds
from tests.decoding.test_engine import Recorder, engine
from tests.decoding.test_scoring import segment
from tests.decoding.tiny import FIRST_REFLECTION, louder, some_passages, tiny

QUESTIONS = [f"w{n} w{n + 2}" for n in range(8)]
RETRIEVAL = FIRST_REFLECTION + 1


def keen() -> Model:
    """A tiny model that often writes [Retrieval], and critique."""
    return louder(tiny(1), {RETRIEVAL: 1.8} | dict.fromkeys(range(RETRIEVAL + 6, FIRST_REFLECTION + 15), 1.4))


def both(question: str, **changes) -> tuple[Result, Result]:
    """The answer as it is, and with the changes."""
    return engine(keen()).answer(question), engine(keen(), **changes).answer(question)


def test_a_segment_runs_on_and_is_cut():
    """The same text as if it had stopped at [Retrieval], but scored over all that came after it as well."""
    cut = judged_later = 0
    for question in QUESTIONS:
        stopped, ran_on = both(question, stop_at="eos")
        for a, b in zip(stopped.tree, ran_on.tree, strict=False):
            if a.depth or a.tokens[-1] != RETRIEVAL:
                continue
            assert (b.tokens, b.text) == (a.tokens, a.text)
            cut += b.first_term != a.first_term
            judged_later += a.issup is None and b.issup is not None
    assert cut and judged_later


def test_no_retrieval_at_first_is_no_retrieval_for_good():
    later = 0
    for question in QUESTIONS:
        adaptive, reference = (
            engine(keen(), retrieve="threshold", threshold=0.6, stop_at=stop).answer(question)
            for stop in ("retrieve", "eos")
        )
        if adaptive.first_decision.action != "retrieve":
            later += any(candidate.decision.action == "retrieve" for candidate in adaptive.tree)
            assert reference.counts.retrievals == 0 and len(reference.tree) == 1
    assert later


def test_passages_are_fixed_up_front():
    asked = [(requery, Recorder(some_passages(3))) for requery in (True, False)]
    results = []
    for requery, recorder in asked:
        anew = engine(keen(), requery=requery, stop_at="eos", max_new_tokens=200)
        anew.retriever = recorder
        results.append(anew.answer("w1 w2"))
    (_, often), (_, once) = asked
    assert once.queries == ["w1 w2"] and len(often.queries) > 1
    assert results[1].counts.retrievals == 1 and max(candidate.depth for candidate in results[1].tree) > 0


def test_no_passage_stays_in_the_prompt():
    """With history="text" the prefix is the prompt and what was said, and there is no evidence to continue."""
    model = louder(tiny(1), {RETRIEVAL + 1: 2.5})
    rows: dict[str, list[Row]] = {"segments": [], "text": []}
    for question, (history, found) in itertools.product(QUESTIONS, rows.items()):
        config = engine(model, history=history, retrieve="threshold", threshold=0.01, min_group_mass=0.0).config
        batch = Batch(model, config, [model.tokenizer.encode_prompt(question)], 3)
        batch.advance([some_passages(3)])
        for row in batch.rows:
            said = [t for t in row.path.steps[0].trace.segment if t not in model.ids.array]
            assert row.base_length == len(batch.questions[0].prompt) + len(said)
        found += batch.rows
    continued = [row for row in rows["segments"] if row.decision.action == "continue"]
    assert continued and all(row.start_length > row.base_length for row in continued)
    assert len(rows["text"]) == len(rows["segments"])
    assert all(row.start_length == row.base_length for row in rows["text"])
    assert not any(row.decision.action == "continue" for row in rows["text"])


def test_the_probe_can_veto_retrieval():
    asked = engine(keen(), retrieve="threshold", threshold=0.01, min_group_mass=0.0)
    vetoed = 0
    for question in QUESTIONS:
        free = engine(keen(), retrieve="threshold", threshold=0.01, min_group_mass=0.0, probe_tokens=4)
        plain, probed = asked.answer(question), free.answer(question)
        if plain.first_decision.action == "retrieve" and probed.first_decision.action == "none":
            vetoed += 1
            assert probed.first_decision.ratio == plain.first_decision.ratio
            assert probed.tree[0].decision.action == "none"
        else:
            assert probed.to_json() == plain.to_json()
    assert 0 < vetoed < len(QUESTIONS)


def test_absent_groups_count_nothing():
    lacking, whole = segment(0.8, 0.9, None, None), segment(0.4, 0.5, 0.6, 1.0)
    zero, paper = DecodeConfig(absent="zero"), DecodeConfig()
    assert scoring.path_score([lacking], True, zero) == pytest.approx(0.8 + 0.9)
    assert scoring.path_score([lacking], True, paper) == pytest.approx(0.8 + 2.5 * 0.9)
    # Not ended, and still its IsUse counts.
    assert scoring.path_score([whole], False, zero) == pytest.approx(0.4 + 0.5 + 0.6 + 0.5)
    product = DecodeConfig(absent="zero", combine="product")
    assert scoring.path_score([lacking, whole], True, product) == pytest.approx(1.7 * 2.0)
    summed = DecodeConfig(absent="zero", combine="sum")
    assert scoring.path_score([lacking, whole], True, summed) == pytest.approx(1.7 + 2.0)


def test_presets():
    """What the paper and the authors' code set, as SELFRAG.md lists it."""
    for preset in (DecodeConfig.short_form, DecodeConfig.closed, DecodeConfig.long_form):
        config = preset()
        assert (config.w_isrel, config.w_issup, config.w_isuse) == (1.0, 1.0, 0.5)
        assert (config.beam, config.combine, config.critique, config.stop_at) == (2, "mean", "graded", "retrieve")
    assert DecodeConfig.short_form().threshold == 0.2 and DecodeConfig.long_form().threshold == 0.0
    budgets = [p().max_new_tokens for p in (DecodeConfig.short_form, DecodeConfig.closed, DecodeConfig.long_form)]
    assert budgets == [100, 50, 300]
    long = DecodeConfig.reference_long_form()
    assert (long.combine, long.stop_at, long.absent, long.requery, long.history) == (
        "product",
        "eos",
        "zero",
        False,
        "text",
    )
    assert (long.probe_tokens, long.max_depth, long.max_segment_tokens) == (25, 6, 300)
    assert DecodeConfig.reference_short_form().w_isuse == 1.0 and long.w_isuse == 0.5


def test_the_scan_for_groups_goes_over_the_whole_continuation():
    ids = ReflectionIds(*range(32000, 32016))
    tokens = np.array([500, ids.retrieval, 501, ids.fully, ids.utility_5])
    trace = scoring.Trace(tokens, np.zeros(5), np.zeros((5, 13)), np.zeros(5), True, cut=1)
    assert trace.segment.tolist() == [500, ids.retrieval] and trace.last == 1
    found = scoring.score_segment(trace, ids, DecodeConfig(), "retrieve", force=["issup"])
    assert found.isuse is not None and found.isuse.position == 4
