"""The engine against the slow oracle: the same candidates, tokens, kept paths and scores."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from selfrag_jax.config import DecodeConfig, ModelConfig
from selfrag_jax.decoding.engine import Engine
from selfrag_jax.decoding.load import load_model
from selfrag_jax.decoding.model import Model
from selfrag_jax.decoding.result import Result
from selfrag_jax.decoding.retriever import Passage
from tests.decoding import oracle
from tests.decoding.tiny import louder, some_passages, tiny

NEAR_TIE = 1e-4
CASES = [
    {"retrieve": "always"},
    {"retrieve": "always", "history": "passages", "critique": "ideal", "first_term": "log_prob"},
    {"retrieve": "threshold", "combine": "sum", "first_term": "prob"},
    {"retrieve": "threshold", "threshold": 0.6, "threshold_over": "three", "history": "passages"},
    {"retrieve": "token", "combine": "product", "count_reflection_tokens": False},
    {"retrieve": "never", "first_term": "none"},
    {"retrieve": "threshold", "threshold": 0.05, "max_retrievals": 1},
    {"retrieve": "always", "force_critique": True, "max_new_tokens": 9},
    {"retrieve": "threshold", "threshold": 0.05, "force_critique": True, "filter_issup": True, "beam": 3},
    {"retrieve": "always", "filter_isrel": True, "filter_issup": True},
    {"retrieve": "always", "history": "text", "max_segment_tokens": 6},
    {"retrieve": "always", "stop_at": "eos", "absent": "zero", "requery": False, "history": "text"},
    {"threshold": 0.05, "stop_at": "eos", "probe_tokens": 8, "combine": "product", "absent": "zero"},
    {"retrieve": "always", "stop_at": "eos", "force_critique": True, "max_segment_tokens": 12, "combine": "sum"},
]


def settings(**changes) -> DecodeConfig:
    return DecodeConfig(**{"max_new_tokens": 30, "min_group_mass": 0.01, "max_depth": 3, **changes})


@dataclasses.dataclass(frozen=True)
class ByWords:
    """Finds passages as the oracle's `look_up` does: others after other segments."""

    passages: list[Passage]

    def retrieve(self, queries: list[str], k: int) -> list[list[Passage]]:
        words = [[int(word[1:]) for word in query.split()] for query in queries]
        none: list[int] = []
        return [[self.passages[n] for n in oracle.look_up([none] * len(self.passages), w, [], k)] for w in words]


def same(result: Result, search: oracle.Search, wanted: oracle.Outcome) -> None:
    """Asserts that both searches made the same candidates, kept the same and cite the same passages."""
    assert len(result.tree) == len(wanted.nodes)
    passage_id = lambda number: None if number is None else result.passages[number].id  # noqa: E731
    for found, node in zip(result.tree, wanted.nodes, strict=True):
        assert (found.parent, found.decision.action, list(found.tokens)) == (node.parent, node.action, node.tokens)
        assert bool(found.ended) == node.ended
        assert found.filtered == (not search.let_through(found.node))
        in_force = node.in_force if node.action in ("retrieve", "continue") else None
        assert passage_id(found.passage) == (None if in_force is None else f"p{in_force}")
        for name in ("isrel", "issup", "isuse"):
            group = getattr(found, name)
            assert (group is None) == (node.terms[name] is None), name
            assert group is None or group.score == pytest.approx(node.terms[name], abs=1e-4)
        assert found.first_term == pytest.approx(node.terms["first"], rel=1e-4, abs=1e-4)
        assert found.path_score == pytest.approx(node.score, rel=1e-4, abs=1e-4)
    assert {candidate.node for candidate in result.tree if candidate.kept} == wanted.kept
    assert result.segments[-1] == wanted.best
    assert search.starved == any("the filters would have dropped" in note for note in result.notes)
    cited = {(s.segment, result.citations[n - 1].id) for s in result.sentences for n in s.citations}
    path = [wanted.nodes[n] for n in result.segments]
    assert cited == {(i, f"p{node.cites}") for i, node in enumerate(path) if node.cites is not None}


def shape_of(model: Model) -> tuple:
    """The numbers of a model that the oracle's network needs."""
    c = model.config
    return c.num_heads, c.num_kv_heads, c.head_dim, c.rms_eps, c.rope.theta, 0


def in_double(model: Model) -> dict:
    """The model's parameters in float64."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), model.params)


def compare(model: Model, seed: int, cases: list[DecodeConfig]) -> list[tuple[Result, oracle.Outcome]]:
    """Search by both for each case; near-ties are left out, counted and shown, and may be a third at most."""
    double, shape = in_double(model), shape_of(model)
    passages = some_passages(5, seed)
    encoded = [model.tokenizer.encode_passage(p.title, p.text) for p in passages]
    compared = []
    for number, config in enumerate(cases):
        engine = Engine(model.params, model.config, model.tokenizer, ByWords(passages), config, top_k=3)
        words = [seed, number, 3, 3]
        question = " ".join(f"w{word}" for word in words)
        prompt = model.tokenizer.encode_prompt(question)
        search = oracle.Search(double, shape, words, prompt, encoded, 3, config)
        wanted = search.run()
        if wanted.margin >= NEAR_TIE:
            compared.append((engine.answer(question), wanted))
            same(compared[-1][0], search, wanted)
    ties = len(cases) - len(compared)
    print(f"seed {seed}: {len(compared)} searches compared, {ties} left out as near-ties (< {NEAR_TIE})")
    assert ties <= len(cases) / 3, "too many near-ties to call this a comparison"
    return compared


@pytest.mark.parametrize(("seed", "tied"), [(0, False), (1, False), (2, False), (3, False), (4, True)])
def test_same_tree(seed, tied):
    # A tied model is another program to compile: one segment of it is enough.
    cases = [{**changes, "max_depth": 1} for changes in CASES[:2]] if tied else CASES
    assert compare(tiny(seed, tied=tied), seed, [settings(**changes) for changes in cases])


def eager(seed: int) -> Model:
    """A tiny model that writes more reflection tokens, above all Continue and support."""
    factors = dict.fromkeys(oracle.TINY.all_13, 1.2) | dict.fromkeys(
        [oracle.TINY.continue_, *oracle.TINY.support[:2]], 2.0
    )
    return louder(tiny(seed), factors)


def test_paths_that_retrieve_again_and_continue():
    """Evidence, citations and scores where a segment goes on from the second of two retrievals."""
    deep = {"threshold": 0.01, "min_group_mass": 0.0, "max_depth": 4, "max_new_tokens": 40}
    cases = [settings(**deep, **changes) for changes in ({"beam": 3}, {"history": "passages"})]
    compared = compare(eager(1), 1, cases)
    _, steered = compare(eager(1), 1, [settings(**deep, beam=3, max_retrievals=1)])[0]
    depth = {n: 1 + (0 if node.parent is None else 1) for n, node in enumerate(steered.nodes)}
    looks = [node.action == "retrieve" for node in steered.nodes if node.parent is not None]
    assert looks and not any(looks) and max(depth.values()) > 1, "one retrieval, and then others continue"
    continued = cited = 0
    for result, wanted in compared:
        path = [wanted.nodes[n] for n in result.segments]
        for i, node in enumerate(path):
            if node.action == "continue" and [n.action for n in path[:i]].count("retrieve") > 1:
                continued += 1
                cited += node.cites is not None
    assert continued and cited


STORIES = [
    ("Once upon a time there was a", ["Lily\nLily had a red ball.", "Tom\nTom was sad. He lost his big dog."]),
    ("Who is Max?", ["Max\nMax is a cat.", "Sue\nSue likes to play in the park with Max.", "Tim\nTim ran."]),
    ("Tell me of the sun and the rain", ["Sun\nThe sun is warm and bright."]),
]


def test_on_a_trained_model(assets):
    """stories260K, which writes sentences, with rows for the added tokens that come up now and then."""
    params, config, tokenizer = load_model(ModelConfig(path=str(assets / "stories260K"), vocab_multiple=1))
    added, rng = tokenizer.reflection.no_retrieval, np.random.default_rng(0)
    table = np.array(params["embed"])
    words = table[3:added]
    table[added : added + 16] = words[rng.permutation(len(words))[:16]] * 1.1 + rng.normal(
        0, 0.02, (16, words.shape[1])
    )
    model = Model({**params, "embed": table}, config, tokenizer, jnp.dtype(jnp.float32))
    ids = oracle.Ids(tokenizer.eos_id, added, added + 16)
    double, compared, reflected = in_double(model), 0, 0
    for question, texts in STORIES:
        passages = [Passage(f"p{i}", *text.split("\n")) for i, text in enumerate(texts)]
        encoded = [tokenizer.encode_passage(p.title, p.text) for p in passages]
        prompt = tokenizer.encode_prompt(question)
        for changes in ({"retrieve": "always"}, {"threshold": 0.3, "history": "passages", "force_critique": True}):
            setting = settings(max_depth=2, max_new_tokens=24, **changes)
            in_order = lambda all_passages, question, said, k: list(range(len(all_passages)))  # noqa: E731
            search = oracle.Search(double, shape_of(model), [], prompt, encoded, 3, setting, ids, in_order)
            wanted = search.run()
            if wanted.margin < NEAR_TIE:
                continue
            compared += 1
            reflected += sum(t in ids.all_13 for node in wanted.nodes for t in node.tokens)
            engine = Engine(model.params, config, tokenizer, None, setting, top_k=3)
            same(engine.answer(question, passages=passages), search, wanted)
    print(f"{compared} of {2 * len(STORIES)} searches on stories260K compared, {reflected} reflection tokens in them")
    assert compared >= len(STORIES) and reflected
