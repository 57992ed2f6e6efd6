"""The shipped adapter: it fits its base, and the demo answers with it."""

import json
import pathlib

import pytest

from configs.demo import get_config
from selfrag_jax.data.datasets import rows_hash
from selfrag_jax.data.rows import Row
from selfrag_jax.decoding.engine import Engine
from selfrag_jax.decoding.retriever import Passage
from selfrag_jax.demo.evaluation import evaluation_rows
from selfrag_jax.demo.recipes import SEEDS
from selfrag_jax.evaluation.metrics import match
from selfrag_jax.evaluation.report import markers
from selfrag_jax.paths import resolve


@pytest.fixture(scope="module")
def engine() -> Engine:
    config = get_config()
    config.retrieval.index_dir = ""  # every question below brings its passages or needs none
    return Engine.from_config(config)


def share_right(engine: Engine, count: int) -> float:
    """Of held-out short questions with their gold passage, how many are answered right and cite it."""
    right = 0
    for row in evaluation_rows("short", count, 0, gold=True):
        given = [Passage(c["id"], c["title"], c["text"]) for c in row["ctxs"]]
        result = engine.answer(row["instruction"], passages=given)
        right += match(result.text, row["answers"]) and [p.id for p in result.citations] == [given[0].id]
    return right / count


def test_adapter_is_small_and_has_its_card():
    folder = resolve(get_config().model.adapter)
    names = {path.name for path in folder.iterdir()}
    assert {"adapter.safetensors", "adapter.json", "config.json", "README.md", "metrics.jsonl"} <= names
    assert sum(path.stat().st_size for path in folder.iterdir()) < 6e6


def test_it_was_trained_on_the_rows_of_this_code(rows, recipe):
    """Every training behind it took the rows that its config gives today."""
    training = json.loads((resolve(get_config().model.adapter) / "adapter.json").read_text())["training"]
    behind = {}
    while training:
        behind[training["rows"]] = training
        training = training.get("started_from", {}).get("training")
    assert "demo" in behind and set(behind) <= set(SEEDS)
    if recipe in behind:
        assert behind[recipe]["seed"] == SEEDS[recipe]
        assert behind[recipe]["rows_sha256"] == rows_hash([Row(**row) for row in rows])


def test_the_table_in_the_readme_is_of_this_adapter():
    """Figures of another adapter would look just as good."""
    readme = (pathlib.Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")
    begin, end = markers("evaluation")
    table = readme[readme.index(begin) : readme.index(end)]
    digest = json.loads((resolve(get_config().model.adapter) / "adapter.json").read_text())["weights_sha256"]
    assert f"adapter {digest[:12]}" in table or "has not been run" in table


def test_held_out_questions_with_their_passage(engine):
    assert share_right(engine, 6) >= 5 / 6


@pytest.mark.slow
def test_two_hundred_held_out_questions_with_their_passage(engine):
    assert share_right(engine, 200) >= 0.95


def test_a_plain_instruction_needs_no_retrieval(engine):
    result = engine.answer("Write the plural of mouse.")
    assert result.counts.retrievals == 0 and not result.citations
    assert "mice" in result.text.lower()
