"""What the demo's evaluation answers and reads: its questions, its cells, its labelled rows."""

import dataclasses
import filecmp
import pathlib
from collections.abc import Iterator
from typing import Any

from selfrag_jax.config import Config
from selfrag_jax.data.rows import Row
from selfrag_jax.demo.evaluation import KINDS, evaluation_rows
from selfrag_jax.demo.passages import WORDINGS, Wording, passages
from selfrag_jax.demo.recipes import Recipe
from selfrag_jax.demo.rows import labelled_rows
from selfrag_jax.errors import UserError
from selfrag_jax.evaluation.cells import Cell
from selfrag_jax.files import read_jsonl, write_jsonl

# How questions are answered: changes to `config.decode`. "gold" brings the right passages with the questions.
MODES: dict[str, dict[str, Any]] = {
    "adaptive": {},
    "always": {"retrieve": "always"},
    "never": {"retrieve": "never"},
    "gold": {},
    "one_look": {"max_retrievals": 1},
}
# Which modes each kind is answered in. Plain instructions have no right passage.
MODES_OF: dict[str, tuple[str, ...]] = {kind: ("adaptive", "always", "never", "gold") for kind in KINDS}
MODES_OF |= {"long": (*MODES_OF["long"], "one_look"), "plain": ("adaptive", "always", "never")}
HELD_OUT_MODES = ("adaptive", "gold")
DERIVED = ("always", "never", "one_look")  # from the adaptive answers, where these say what would come out
# Passages that miss nearly: of the entity itself, of one of similar name, of one of the same kind.
NEAR_MISSES = {"same": 1.0, "similar": 1.0, "kind": 1.0}
LABELLED = {"isrel": "short", "issup": "verify"}  # group → the kind of row that is read for it


@dataclasses.dataclass(frozen=True)
class DemoCell:
    """A cell with what it is in the tables: `source` is a kind of question, or "popqa"."""

    source: str
    mode: str
    wording: Wording
    cell: Cell


def write_questions(config: Config, folder: pathlib.Path) -> list[DemoCell]:
    """Write every file of questions and return the cells over them."""
    cells: list[DemoCell] = []
    for wording in WORDINGS:
        index_dir = "" if wording == "train" else held_out_index(config)
        for kind in KINDS:
            modes = MODES_OF[kind] if wording == "train" else [m for m in HELD_OUT_MODES if m in MODES_OF[kind]]
            for mode in modes:
                gold = mode == "gold"
                path = folder / f"{kind}-{wording}{'-gold' if gold else ''}.jsonl"
                rows = evaluation_rows(kind, config.evaluate.per_kind, config.evaluate.seed, wording, gold)
                if not any(cell.cell.questions == path for cell in cells):
                    write_jsonl(path, rows)
                name = f"{kind}-{mode}" + ("" if wording == "train" else "-heldout")
                cells.append(DemoCell(kind, mode, wording, Cell(name, path, MODES[mode], index_dir)))
    return cells + _popqa_cells(config, folder)


def held_out_index(config: Config) -> str:
    """Where the index over the passages in held-out templates lies: beside the config's."""
    return config.retrieval.index_dir.rstrip("/") + "_heldout"


def write_held_out_corpus(config: Config) -> pathlib.Path:
    """The corpus in held-out templates, beside its index. A file that says the same keeps its date, which the index
    holds; one of other facts or templates is replaced, and then `ensure_index` builds anew."""
    path = pathlib.Path(f"{held_out_index(config)}.jsonl")
    fresh = path.with_suffix(".fresh.jsonl")
    write_jsonl(fresh, (p.row for p in passages("heldout")))
    if path.is_file() and filecmp.cmp(path, fresh, shallow=False):
        fresh.unlink()
    else:
        fresh.replace(path)
    return path


def _popqa_cells(config: Config, folder: pathlib.Path) -> list[DemoCell]:
    """PopQA's questions about capitals, from the index and from the passage that comes with each."""
    if not config.evaluate.popqa:
        return []
    source = pathlib.Path(config.evaluate.popqa)
    if not source.is_file():
        raise UserError(f"config.evaluate.popqa={source}: there is no such file; leave it empty to go without")
    cells = []
    for mode, with_passage in (("adaptive", False), ("gold", True)):
        path = folder / f"popqa-{mode}.jsonl"
        write_jsonl(path, _popqa_rows(source, with_passage))
        cells.append(DemoCell("popqa", mode, "train", Cell(f"popqa-{mode}", path, MODES[mode])))
    return cells


def _popqa_rows(source: pathlib.Path, with_passage: bool) -> Iterator[dict[str, Any]]:
    for row in read_jsonl(source):
        title, _, text = row["factbook_passage"].partition(". ")
        given = {"ctxs": [{"id": f"factbook-{row['id']}", "title": title, "text": text}]} if with_passage else {}
        subject = row["question"].removeprefix("What is the capital of ").removesuffix("?")
        # Whole words, the country's name taken out: "Tunis" stands in "Tunisia", and a refusal would be right.
        yield {
            "id": f"popqa-{row['id']}", "instruction": row["question"], "answers": row["answers"], "kind": "popqa",
            "metric": "words", "ignore": [subject], **given,
        }  # fmt: skip


def write_labelled(config: Config, folder: pathlib.Path) -> dict[tuple[str, Wording], pathlib.Path]:
    """Labelled rows of the held-out side: for IsRel passages that miss nearly, for IsSup statements nearly right."""
    found: dict[tuple[str, Wording], pathlib.Path] = {}
    for group, kind in LABELLED.items():
        for wording in WORDINGS:
            path = folder / f"{group}-{wording}.jsonl"
            count, seed = config.evaluate.labelled, config.evaluate.seed + 1
            write_jsonl(path, labelled_rows("heldout", seed, count, wording, Recipe({kind: 1.0}, NEAR_MISSES)))
            found[group, wording] = path
    return found


def as_row(value: dict[str, str]) -> Row:
    """A labelled row as the encoder takes it."""
    return Row(value["instruction"], value["output"], value["input"], value["id"], value["dataset_name"])
