"""Rows of questions answered in batches: what `decode.py --input` and the evaluation have in common."""

import dataclasses
import pathlib
from typing import TYPE_CHECKING, Any

from selfrag_jax.config import Config
from selfrag_jax.data.rows import QuestionRow
from selfrag_jax.decoding import options
from selfrag_jax.decoding.retriever import Passage
from selfrag_jax.errors import UserError
from selfrag_jax.evaluation.metrics import is_right
from selfrag_jax.paths import resolve
from selfrag_jax.runner import RowError, Unit

if TYPE_CHECKING:
    from selfrag_jax.decoding.engine import Engine, Request
    from selfrag_jax.decoding.result import Result


def as_request(row: QuestionRow) -> "Request":
    """The row as the engine takes it. Passages that come with it are used in their order instead of the retriever's."""
    from selfrag_jax.decoding.engine import Request

    given = None
    if row.ctxs is not None:
        given = [Passage(c.id or f"{row.id}:{n}", c.title, c.text, c.score or 0.0) for n, c in enumerate(row.ctxs, 1)]
    return Request(row.instruction, row.input, given, row.options)


def answer_unit(engine: "Engine", unit: Unit[QuestionRow], tree: bool = False) -> list[dict[str, Any] | RowError]:
    """The unit's real rows, answered in one batch: an output row each, or a RowError where the engine refuses the row.

    The batch always has as many questions as the unit has items, since another shape moves the last bits: the copies
    that pad the unit are answered too, and another question takes the place of a refused one.
    """
    requests = [as_request(row) for row in unit.items]
    refused: dict[int, RowError] = {}
    for place, (row, request) in enumerate(zip(unit.items, requests, strict=True)):
        try:
            engine.encode(request)
        except UserError as error:
            refused[place] = RowError(row.id, str(error))
    sound = [place for place in range(len(requests)) if place not in refused]
    if not sound:
        return [refused[place] for place in range(unit.real)]
    results = engine.answer_batch([requests[place if place in sound else sound[0]] for place in range(len(requests))])
    return [
        refused[place] if place in refused else output_row(unit.items[place], results[place], tree)
        for place in range(unit.real)
    ]


def output_row(row: QuestionRow, result: "Result", tree: bool = False) -> dict[str, Any]:
    """One row of output: the answer with its citations, and whether it is right where answers are given."""
    answered: dict[str, Any] = {"id": row.id, "question": row.instruction}
    if row.input:
        answered["input"] = row.input
    answered |= {
        "output": result.cited_text,
        "answer": result.text,
        "retrievals": result.counts.retrievals,
        "citations": [dataclasses.asdict(passage) for passage in result.citations],
    }
    if result.options:
        answered |= {"option": result.option, "options": result.options}
    if row.answers:
        answered |= {"answers": list(row.answers), "correct": _correct(row, result)}
    if tree:
        answered["tree"] = result.to_dict()
    return answered


def _correct(row: QuestionRow, result: "Result") -> bool:
    """Whether the option that won is a gold answer, by its label or by what it stands for; else by the row's metric."""
    if result.option is None:
        answers = row.answers or ()
        return is_right(result.text, metric=row.metric, answers=answers, aspects=row.aspects, ignore=row.ignore)
    chosen = {options.plain(result.option), options.plain((row.options or {}).get(result.option, ""))} - {""}
    return not chosen.isdisjoint(map(options.plain, row.answers or ()))


def files_behind(config: Config, needs_index: bool) -> list[pathlib.Path]:
    """What answers depend on beside rows and settings: the files of model and adapter, and the index's manifests."""
    found: list[pathlib.Path] = []
    for path in (config.model.path, config.model.adapter):
        place = resolve(path) if path else None
        if place is not None and place.is_dir():
            found += sorted(p for p in place.iterdir() if p.suffix in (".json", ".safetensors", ".model"))
        elif place is not None:
            found.append(place)
    if needs_index and config.decode.retrieve != "never":
        found += sorted(resolve(config.retrieval.index_dir).glob("*.json"))
    return found
