"""The engine against the oracle over random questions, passages, weights and modes (hypothesis)."""

import dataclasses
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from selfrag_jax.config import DecodeConfig
from selfrag_jax.decoding.engine import Engine
from selfrag_jax.decoding.model import Model
from selfrag_jax.decoding.retriever import Passage
from tests.decoding import oracle
from tests.decoding.test_oracle import NEAR_TIE, ByWords, in_double, same, shape_of
from tests.decoding.tiny import WORDS, louder, tiny

WEIGHTS = st.sampled_from([0.0, 0.5, 1.0, 2.0])
MODES = {
    "retrieve": st.sampled_from(["always", "threshold", "always", "token", "threshold", "never"]),
    "threshold": st.sampled_from([0.0, 0.2, 0.6]),
    "threshold_over": st.sampled_from(["two", "three"]),
    "min_group_mass": st.sampled_from([0.0, 0.01, 0.05]),
    "beam": st.integers(1, 3),
    "max_depth": st.sampled_from([3, 2, 1]),
    "max_retrievals": st.integers(0, 2),
    "max_new_tokens": st.sampled_from([30, 16, 30, 3]),
    "max_segment_tokens": st.sampled_from([0, 0, 5]),
    "w_isrel": WEIGHTS, "w_issup": WEIGHTS, "w_isuse": WEIGHTS,
    "critique": st.sampled_from(["graded", "ideal"]),
    "first_term": st.sampled_from(["mean_prob", "prob", "log_prob", "none"]),
    "count_reflection_tokens": st.booleans(),
    "combine": st.sampled_from(["mean", "sum", "product"]),
    "history": st.sampled_from(["segments", "passages", "text"]),
    "filter_isrel": st.booleans(), "filter_issup": st.booleans(), "force_critique": st.booleans(),
    "stop_at": st.sampled_from(["retrieve", "retrieve", "eos"]),
    "absent": st.sampled_from(["renormalise", "zero"]),
    "requery": st.booleans(),
    "probe_tokens": st.sampled_from([0, 0, 4]),
}  # fmt: skip
QUESTION = st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=12)
SEARCH = st.fixed_dictionaries({
    "model": st.sampled_from(["lively", "plain", "lively", "tied"]),
    "seed": st.integers(0, 1),
    "question": QUESTION,
    "passages": st.lists(QUESTION, min_size=2, max_size=5, unique_by=tuple),
    "k": st.sampled_from([3, 2, 1]),
    "settings": st.fixed_dictionaries(MODES),
})  # fmt: skip


def model_of(kind: str, seed: int) -> Model:
    """A tiny random Llama with grouped queries: as it is, with a tied table, or with louder reflection tokens."""
    if kind == "lively":
        return louder(tiny(seed), dict.fromkeys(oracle.TINY.all_13, 1.3) | dict.fromkeys(oracle.TINY.retrieve, 1.7))
    return tiny(seed, tied=kind == "tied")


def compare(search: dict, count: Counter) -> None:
    """Search by both and assert that they agree, unless the oracle's margin is a near-tie."""
    model, config = model_of(search["model"], search["seed"]), DecodeConfig(**search["settings"])
    text = lambda words: " ".join(f"w{word}" for word in words)  # noqa: E731
    passages = [Passage(f"p{i}", f"w{i}", text(words)) for i, words in enumerate(search["passages"])]
    k = min(search["k"], len(passages))
    encoded = [model.tokenizer.encode_passage(p.title, p.text) for p in passages]
    prompt = model.tokenizer.encode_prompt(text(search["question"]))
    slow = oracle.Search(in_double(model), shape_of(model), search["question"], prompt, encoded, k, config)
    wanted = slow.run()
    if wanted.margin < NEAR_TIE:
        count["near-ties"] += 1
        return
    engine = Engine(model.params, model.config, model.tokenizer, ByWords(passages), config, k)
    same(engine.answer(text(search["question"])), slow, wanted)
    count["compared"] += 1
    count["segments"] += len(wanted.nodes)
    count["deep"] += max(node.depth for node in wanted.nodes) > 1
    count["empty"] += any(node.asked and node.action == "none" for node in wanted.nodes)
    count["filtered"] += any(not slow.let_through(n) for n in range(len(wanted.nodes)))


def run(examples: int) -> Counter:
    """What was compared; every comparison asserts for itself."""
    count: Counter = Counter()

    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(SEARCH)
    def check(search):
        compare(search, count)

    check()
    print(f"{dict(count)} of {examples} random searches; near-ties (margin < {NEAR_TIE}) are not compared")
    assert count["near-ties"] <= examples / 3 and count["compared"] >= examples / 2
    return count


def test_random_searches():
    count = run(25)
    assert count["deep"] and count["filtered"] and count["empty"]


@pytest.mark.slow
def test_many_random_searches():
    count = run(300)
    assert min(count[what] for what in ("deep", "filtered", "empty")) > 10


def test_every_setting_is_drawn():
    """A new setting that the oracle does not know would otherwise go untested."""
    assert {field.name for field in dataclasses.fields(DecodeConfig)} - {"batch_size"} == set(MODES)
