"""The engine against the slow oracle: the same candidates, tokens, kept paths and scores."""

import jax
import numpy as np
import pytest

from selfrag_jax.config import DecodeConfig
from selfrag_jax.decoding.engine import Engine
from tests.decoding import oracle
from tests.decoding.tiny import ListRetriever, some_passages, tiny

NEAR_TIE = 1e-4
CASES = [
    {"retrieve": "always"},
    {"retrieve": "always", "history": "passages", "critique": "ideal", "first_term": "log_prob"},
    {"retrieve": "threshold", "combine": "sum", "first_term": "prob"},
    {"retrieve": "threshold", "threshold": 0.6, "threshold_over": "three", "history": "passages"},
    {"retrieve": "token", "combine": "product", "count_reflection_tokens": False},
    {"retrieve": "never", "first_term": "none"},
]


def settings(**changes) -> DecodeConfig:
    return DecodeConfig(**{"max_new_tokens": 30, "min_group_mass": 0.01, "max_depth": 3, **changes})


@pytest.mark.parametrize(("seed", "tied"), [(0, False), (1, False), (2, False), (3, False), (4, True)])
def test_same_tree(seed, tied):
    model = tiny(seed, tied=tied)
    double = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), model.params)
    c = model.config
    shape = (c.num_heads, c.num_kv_heads, c.head_dim, c.rms_eps, c.rope.theta, 0)
    passages = some_passages(3, seed)
    encoded = [model.tokenizer.encode_passage(p.title, p.text) for p in passages]
    compared = 0
    # A tied model is another program to compile: one segment of it is enough.
    cases = [{**changes, "max_depth": 1} for changes in CASES[:2]] if tied else CASES
    for number, changes in enumerate(cases):
        config = settings(**changes)
        engine = Engine(model.params, c, model.tokenizer, ListRetriever(passages), config, top_k=3)
        question = f"w{seed} w{number} w3 w3"
        wanted = oracle.search(double, shape, model.tokenizer.encode_prompt(question), encoded, config)
        if wanted.margin < NEAR_TIE:
            continue
        compared += 1
        result = engine.answer(question)
        assert len(result.tree) == len(wanted.nodes)
        for found, node in zip(result.tree, wanted.nodes, strict=True):
            assert (found.parent, found.decision.action, list(found.tokens)) == (node.parent, node.action, node.tokens)
            assert bool(found.ended) == node.ended
            for name in ("isrel", "issup", "isuse"):
                group = getattr(found, name)
                assert (group is None) == (node.terms[name] is None), name
                assert group is None or group.score == pytest.approx(node.terms[name], abs=1e-4)
            assert found.first_term == pytest.approx(node.terms["first"], rel=1e-4, abs=1e-4)
            assert found.path_score == pytest.approx(node.score, rel=1e-4, abs=1e-4)
        assert {candidate.node for candidate in result.tree if candidate.kept} == wanted.kept
        assert result.segments[-1] == wanted.best
    assert compared >= len(cases) - (0 if tied else 2), "too many near-ties to call this a comparison"
