"""The engine as its users meet it."""

import dataclasses
import itertools
import json

import numpy as np
import pytest

from selfrag_jax import reflection
from selfrag_jax.config import DecodeConfig
from selfrag_jax.decoding import generate, options
from selfrag_jax.decoding.engine import Engine, Request
from selfrag_jax.decoding.model import Model
from selfrag_jax.decoding.render import WIDTH, render
from selfrag_jax.decoding.retriever import Passage
from selfrag_jax.errors import UserError
from tests.decoding.tiny import ListRetriever, some_passages, tiny


def engine(model: Model, passages: list[Passage] | None = None, top_k: int = 3, **settings) -> Engine:
    settings = {"retrieve": "always", "max_new_tokens": 30, "max_depth": 3, "min_group_mass": 0.01, **settings}
    passages = some_passages(3) if passages is None else passages
    config = DecodeConfig(**settings)
    return Engine(model.params, model.config, model.tokenizer, ListRetriever(passages), config, top_k)


@dataclasses.dataclass
class Recorder:
    """A retriever that remembers what it was asked."""

    passages: list[Passage]
    queries: list[str] = dataclasses.field(default_factory=list)

    def retrieve(self, queries: list[str], k: int) -> list[list[Passage]]:
        self.queries += queries
        return [self.passages[:k] for _ in queries]


QUESTIONS = [Request("w1 w2"), Request("w3 w3 w4 w5", "w6"), Request("w9 w8 w7"), Request("w20")]


@pytest.mark.parametrize("history", ["segments", "passages"])
def test_many_questions_are_one_by_one(history):
    asked = engine(tiny(1), history=history, retrieve="threshold")
    together = asked.answer_batch(QUESTIONS)
    for request, found in zip(QUESTIONS, together, strict=True):
        alone = asked.answer(request.instruction, request.input)
        assert (found.instruction, found.text, found.counts) == (request.instruction, alone.text, alone.counts)
        assert [c.tokens for c in found.tree] == [c.tokens for c in alone.tree]
        np.testing.assert_allclose([c.path_score for c in found.tree], [c.path_score for c in alone.tree], atol=1e-4)


def test_nothing_compiles_twice():
    asked = engine(tiny(1), retrieve="threshold", history="segments")
    asked.answer_batch(QUESTIONS)
    for request in QUESTIONS:
        asked.answer(request.instruction, request.input)
    before = generate.compilations()
    rng = np.random.default_rng(0)
    again = engine(tiny(1), some_passages(3, 5), threshold=0.9, w_issup=3.0, combine="sum", max_depth=2)
    warm = engine(tiny(1), retrieve="threshold", history="segments")
    for _ in range(6):
        words = " ".join(f"w{i}" for i in rng.integers(0, 40, rng.integers(1, 20)))
        warm.answer(words)
        again.answer(words)
    after = generate.compilations()
    assert after["decode"] <= before["decode"] + 1 and after["prefill"] <= before["prefill"] + 1
    assert sum(after.values()) <= sum(before.values()) + 4  # what `always` needs and `threshold` did not
    for number in range(6):
        again.answer(f"w{number} w3")
        warm.answer(f"w{number} w3")
    assert generate.compilations() == after


def test_given_passages_replace_the_retriever_in_their_order():
    given = some_passages(5, seed=3)
    result = engine(tiny(1), passages=[]).answer("w1 w2", passages=given)
    first = [c for c in result.tree if c.depth == 0]
    assert [result.passages[c.passage].id for c in first if c.passage is not None] == ["p0", "p1", "p2"]


def test_later_queries_carry_the_last_segment():
    model = tiny(0)
    recorder = Recorder(some_passages(3))
    asked = engine(model)
    asked.retriever = recorder
    result = asked.answer("w1 w2")
    assert recorder.queries[0] == "w1 w2"
    parents = {c.parent for c in result.tree if c.depth == 1}
    assert parents
    for parent in parents:
        assert f"w1 w2 {result.tree[parent].text}".strip() in recorder.queries
    assert result.counts.retrievals == len(recorder.queries)


def test_no_passage_found():
    result = engine(tiny(1), passages=[]).answer("w1 w2")
    assert result.citations == () and all(c.passage is None and c.isrel is None for c in result.tree)
    assert any("no passage" in note for note in result.notes)


def test_a_long_passage_is_cut_at_a_token_and_said():
    model = tiny(1, max_positions=96)
    long = Passage("p", "w1", " ".join(f"w{i % 40}" for i in range(400)))
    result = engine(model, [long, *some_passages(1)]).answer("w1 w2")
    assert result.tree[0].passage_cut and not result.tree[1].passage_cut
    assert "was cut to" in result.notes[0]
    for c in result.tree:
        assert len(c.tokens) >= 1
    uncut = model.tokenizer.encode_passage(long.title, long.text)
    cut = model.tokenizer.encode_passage(long.title, long.text, max_tokens=60)
    assert cut[-1] == uncut[-1] == model.ids.paragraph_end


@pytest.mark.parametrize(("question", "message"), [("  \n", "is empty"), ("w1 " * 600, "tokens, but the model's")])
def test_bad_questions(question, message):
    with pytest.raises(UserError, match=message):
        engine(tiny(1)).answer(question)


def test_retrieval_without_an_index():
    asked = engine(tiny(1))
    asked.retriever = None
    with pytest.raises(UserError, match="no index"):
        asked.answer("w1")


def test_result_serialises_and_renders():
    result = engine(tiny(1)).answer("w1 w2")
    plain = json.loads(result.to_json())
    assert plain["version"] == 1 and "timings" not in plain and plain["text"] == result.text
    assert "timings" in json.loads(result.to_json(timings=True))
    assert plain["tree"][0]["isrel"]["probabilities"].keys() == {reflection.IRRELEVANT, reflection.RELEVANT}
    assert [node for node in result.segments if not result.tree[node].kept] == []
    assert result.tree[result.segments[-1]].path_score == max(c.path_score for c in result.tree if c.node in {
        path.nodes[-1] for path in result.paths
    })  # fmt: skip
    shown = render(result)
    assert max(map(len, shown.splitlines())) <= WIDTH
    assert "retrieved" in shown and "p(Relevant)" in shown
    assert "answered without retrieval (p(Retrieval) " in render(engine(tiny(1), retrieve="never").answer("w1 w2"))


def test_a_passage_found_twice_is_used_once():
    first, second = some_passages(2)
    doubled = engine(tiny(1), [first, first, second]).answer("w1 w2")
    single = engine(tiny(1), [first, second]).answer("w1 w2")
    assert [c.tokens for c in doubled.tree] == [c.tokens for c in single.tree]
    assert doubled.passages == single.passages
    assert "a passage that was found twice is used once" in doubled.notes and doubled.notes != single.notes


def test_passages_keep_their_order_where_some_are_equal():
    one, two = some_passages(2)
    again = dataclasses.replace(one, id="p9")
    asked = engine(tiny(1), max_depth=1)
    result = asked.answer("w1 w2", passages=[one, two, again])
    assert [result.passages[node.passage].id for node in result.tree] == [one.id, two.id]
    assert result.notes[0] == "a passage that was found twice is used once"


def test_a_cut_answer_says_so():
    notes = engine(tiny(1), retrieve="never", max_new_tokens=3).answer("w1 w2").notes
    assert notes == ("the answer was cut at decode.max_new_tokens",)
    notes = engine(tiny(1), retrieve="never", max_segment_tokens=3).answer("w1 w2").notes
    assert notes == ("the answer was cut at decode.max_segment_tokens",)


def test_an_answer_is_the_same_again():
    asked = engine(tiny(2))
    assert asked.answer("w5 w6").to_json() == asked.answer("w5 w6").to_json()


def test_forcing_the_critique_reads_more_and_writes_the_same():
    cut = {"max_new_tokens": 4, "max_depth": 2}
    plain, forced = (engine(tiny(1), **cut, force_critique=on).answer("w1 w2") for on in (False, True))
    assert [c.tokens for c in plain.tree if c.depth == 0] == [c.tokens for c in forced.tree if c.depth == 0]
    assert any(c.issup is None for c in plain.tree)
    for c in forced.tree:
        assert c.isrel is not None
        relevant = c.isrel.greedy == reflection.RELEVANT
        assert (c.issup is not None) == relevant and (not c.ended or c.isuse is not None)
    assert any(c.issup is not None and c.issup.forced for c in forced.tree)
    assert not any(group is not None and group.forced for c in plain.tree for group in (c.issup, c.isuse))


def test_filters_drop_and_fall_back():
    """No dropped candidate is kept, unless every one would be dropped: then the best, and it is said."""
    seen = set()
    for number, k in itertools.product(range(8), (1, 3)):
        question = f"w{number} w{number + 3}"
        for name, group, refused in (
            ("filter_isrel", "isrel", reflection.IRRELEVANT),
            ("filter_issup", "issup", reflection.NO_SUPPORT),
        ):
            result = engine(tiny(1), top_k=k, max_depth=1, force_critique=True, **{name: True}).answer(question)
            for c in result.tree:
                reading = getattr(c, group)
                assert c.filtered == (reading is not None and reading.greedy == refused)
            kept = [c for c in result.tree if c.kept]
            fell_back = all(c.filtered for c in result.tree)
            if fell_back:
                assert kept == [max(result.tree, key=lambda c: c.path_score)]
            else:
                assert not any(c.filtered for c in kept)
            assert fell_back == any("the filters would have dropped" in note for note in result.notes)
            seen.add((name, fell_back, any(c.filtered for c in result.tree)))
    assert {(n, False, True) for n in ("filter_isrel", "filter_issup")} <= seen, seen
    assert {(n, True, True) for n in ("filter_isrel", "filter_issup")} <= seen, seen


def test_streaming_gives_the_answer_piece_by_piece():
    """The pieces make up the answer, each comes once, and a first one comes before the search has ended."""
    early = 0
    for number in range(8):
        question = f"w{number} w{number + 1}"
        asked = engine(tiny(1), beam=1 + number % 2)
        whole = asked.answer(question)
        stream = asked.stream(question)
        first = next(iter(stream))
        early += stream._result is None
        pieces = [first, *stream]
        assert "".join(piece.text for piece in pieces).strip() == whole.cited_text
        assert tuple(piece.node for piece in pieces) == whole.segments
        assert [p for piece in pieces for p in piece.citations] == list(whole.citations)
        assert stream.result.to_json() == whole.to_json()
    assert early


def test_a_stream_that_nobody_reads_has_a_result_and_bad_questions_are_refused_at_once():
    asked = engine(tiny(1))
    assert asked.stream("w1 w2").result.to_json() == asked.answer("w1 w2").to_json()
    with pytest.raises(UserError, match="is empty"):
        asked.stream(" ")


def test_a_closed_question_streams_what_won_the_vote(monkeypatch):
    asked = engine(tiny(1), max_depth=1, beam=1)
    worst = min(asked.answer("w1 w2").tree, key=lambda candidate: candidate.path_score)
    monkeypatch.setattr(options, "option_of", lambda text, known: "A" if text == worst.text else None)
    stream = asked.stream("w1 w2", options={"A": ""})
    assert [piece.node for piece in stream] == [worst.node] == list(stream.result.segments)
