"""Readings of labelled rows against the plain forward pass."""

import numpy as np
import pytest

from configs.demo import get_config
from selfrag_jax.data.rows import Row
from selfrag_jax.evaluation.reading import Item, bucket, items_of, read
from selfrag_jax.models import llama
from selfrag_jax.paths import resolve
from selfrag_jax.reflection import FULLY, IRRELEVANT, ISSUP, RELEVANT
from selfrag_jax.tokenizer import Tokenizer
from tests.decoding.tiny import tiny


def test_a_reading_is_the_groups_softmax_after_the_context():
    model = tiny(2)
    rng = np.random.default_rng(0)
    contexts = [tuple(map(int, rng.integers(0, 40, n))) for n in (5, 40, 63)]
    items = [Item(f"r{n}", context, "issup", n) for n, context in enumerate(contexts)]
    found = read(model, items, 4)
    for item, reading in zip(items, found, strict=True):
        logits = np.asarray(llama.causal_lm(model.params, model.config, np.array([item.context])))[0, -1]
        weights = np.exp(logits[list(model.ids.group("issup"))].astype(np.float64))
        assert reading["probabilities"] == pytest.approx((weights / weights.sum()).tolist(), abs=2e-5)
        assert reading["said"] == ISSUP[int(weights.argmax())] and reading["gold"] == ISSUP[item.gold]
    alone = read(model, items[:1], 4)
    assert alone[0]["probabilities"] == pytest.approx(found[0]["probabilities"], abs=2e-5)


def test_every_token_of_a_group_is_an_item():
    tokenizer = Tokenizer.load(resolve(get_config().model.path))
    passage = "[Retrieval]<paragraph>Title\nIt says so.</paragraph>"
    row = Row("Say it.", f"{passage}{RELEVANT}It is so.{FULLY}{passage}{IRRELEVANT}No more.[Utility:3]", id="r")
    rel, sup = items_of(row, "isrel", tokenizer), items_of(row, "issup", tokenizer)
    assert [item.gold for item in rel] == [1, 0] and [item.gold for item in sup] == [0]
    # Nothing of what comes after the token is in its context, and all of what comes before.
    assert [len(item.context) for item in (rel[0], sup[0], rel[1])] == sorted(
        len(item.context) for item in (rel[0], sup[0], rel[1])
    )
    assert rel[0].context[-1] == tokenizer.reflection.paragraph_end
    assert rel[0].context == rel[1].context[: len(rel[0].context)]
    assert bucket(rel[0]) >= len(rel[0].context)
