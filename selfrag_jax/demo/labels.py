"""Labelled rows, what the model reads in them, and what classifiers that understand nothing make of them."""

import functools
import itertools
import pathlib
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from selfrag_jax import reflection
from selfrag_jax.config import Config
from selfrag_jax.demo.distractors import similar_entities
from selfrag_jax.demo.passages import Passage, Wording, passages
from selfrag_jax.demo.protocol import LABELLED, as_row
from selfrag_jax.demo.recipes import SEEDS
from selfrag_jax.demo.rows import training_rows
from selfrag_jax.evaluation import reading
from selfrag_jax.evaluation.answers import files_behind
from selfrag_jax.evaluation.baselines import Texts, bag_of_words, overlap
from selfrag_jax.evaluation.cells import ALONE, Engines, Process
from selfrag_jax.files import read_jsonl
from selfrag_jax.paths import resolve
from selfrag_jax.runner import Unit, run_units
from selfrag_jax.tokenizer import Tokenizer

# The baselines and the places that each may look at. Of two texts that have to be held against each other the one-sided
# one sees one: for IsRel the passage without the question, for IsSup the statement without the passage.
BASELINES = {
    "isrel": {"bag of words": (), "question-blind": ("passage",), "word overlap": ("overlap",)},
    "issup": {"bag of words": (), "passage-blind": ("statement",), "word overlap": ("overlap",)},
}
_SEGMENT = re.compile(
    r"<paragraph>(?P<title>[^\n]+)\n(?P<text>.+?)</paragraph>(?P<rel>\[\w+\])(?P<said>[^\[]+)(?P<sup>\[[^\]]+\])"
)


def read_labels(
    config: Config, group: str, path: pathlib.Path, engines: Engines, output: pathlib.Path, process: Process = ALONE
) -> None:
    """Write what the model says wherever a token of the group stands in the rows of `path`, on the common runner."""
    tokenizer = Tokenizer.load(resolve(config.model.path))
    items = [item for value in read_jsonl(path) for item in reading.items_of(as_row(value), group, tokenizer)]
    rows = config.decode.batch_size

    def work(unit: Unit[reading.Item]) -> list[dict[str, Any]]:
        process.check_parent()
        return reading.read(engines.base.model, unit.items[: unit.real], rows)

    run_units(
        items, work, output, unit_size=rows, bucket=reading.bucket, inputs=[path, *files_behind(config, False)],
        settings={"group": group, "weights": config.model.weights, "adapter": config.model.adapter},
        process_index=process.index, process_count=process.count, description=output.stem,
    )  # fmt: skip


def texts_of(row: dict[str, Any], group: str) -> tuple[Texts, str] | None:
    """The two texts that a label is about, and the label; None for a row without the group."""
    found = _SEGMENT.search(row["output"])
    if found is None or (group == "issup" and found["sup"] not in reflection.ISSUP):
        return None
    shown = f"{found['title']} {found['text']}"
    first, name, label = row["instruction"], "question", found["rel"]
    if group == "issup":
        first, name, label = found["said"], "statement", found["sup"]
    return {name: first, "passage": shown, "overlap": overlap(first, shown)}, label


def baselines(group: str, rows: Sequence[dict[str, Any]]) -> dict[str, list[bool]]:
    """Whether each row is labelled rightly by each of `BASELINES`, trained on the training rows."""
    kind = f"demo_{LABELLED[group]}"
    learnt = [
        texts_of(row, group)
        for recipe, seed in SEEDS.items()
        for row in training_rows(seed, recipe=recipe)
        if row["dataset_name"].startswith(kind)
    ]
    train = [pair for pair in learnt if pair is not None]
    test = [pair for row in rows if (pair := texts_of(row, group)) is not None]
    found = {}
    for name, only in BASELINES[group].items():
        said = bag_of_words([t for t, _ in train], [label for _, label in train], [t for t, _ in test], only=only)
        found[name] = [guess == label for guess, (_, label) in zip(said, test, strict=True)]
    return found


def parts(
    group: str, rows: Sequence[dict[str, Any]], readings: Sequence[dict[str, Any]], wording: Wording
) -> dict[str, list[bool]]:
    """The model's readings by what was read: relevant passages and each kind of miss, or each kind of support."""
    right = {reading["id"]: reading["said"] == reading["gold"] for reading in readings}
    found: dict[str, list[bool]] = defaultdict(list)
    for before, row in itertools.pairwise([None, *rows]):
        if row is not None and row["id"] in right:
            found[_part(group, row, before, wording)].append(right[row["id"]])
    return dict(sorted(found.items()))


def _part(group: str, row: dict[str, Any], before: dict[str, Any] | None, wording: Wording) -> str:
    pair = texts_of(row, group)
    assert pair is not None
    label = pair[1].strip("[]")
    return f"{label}, {_miss(row, before, wording)}" if label == "Irrelevant" and before is not None else label


def _miss(row: dict[str, Any], wanted: dict[str, Any], wording: Wording) -> str:
    """How an irrelevant row's passage misses, by the passages of the row and of the one it is the twin of."""
    missing, given = (_passage_of(one, wording) for one in (row, wanted))
    if missing.entity == given.entity:
        return "same entity"
    return "similar name" if missing.entity in {e.key for e in similar_entities(given.entity)} else "same kind"


def _passage_of(row: dict[str, Any], wording: Wording) -> Passage:
    found = _SEGMENT.search(row["output"])
    assert found is not None
    return _by_text(wording)[found["title"], found["text"]]


@functools.cache
def _by_text(wording: Wording) -> dict[tuple[str, str], Passage]:
    return {(p.title, p.text): p for p in passages(wording)}
