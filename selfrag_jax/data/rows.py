"""The files that users hold, read unchanged and checked row by row."""

import dataclasses
import json
import math
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

from selfrag_jax import reflection
from selfrag_jax.errors import UserError
from selfrag_jax.evaluation.metrics import METRICS


@dataclasses.dataclass(frozen=True)
class Row:
    """One generator training row: the output carries reflection tokens and fenced passages as text."""

    instruction: str
    output: str
    input: str = ""
    id: str = ""
    dataset_name: str = ""


@dataclasses.dataclass(frozen=True)
class Context:
    """A passage that comes with a question; web rows have neither id nor score."""

    title: str
    text: str
    id: str = ""
    score: float | None = None


@dataclasses.dataclass(frozen=True)
class QuestionRow:
    """One question to answer; `ctxs` keep the file's order, `raw` the whole row."""

    id: str
    instruction: str
    input: str
    answers: tuple[str, ...]
    ctxs: tuple[Context, ...] | None  # None: the row says nothing of passages; (): it says that there are none
    metric: str  # a name in `evaluation.metrics.METRICS`
    raw: dict[str, Any]
    aspects: tuple[tuple[str, ...], ...] = ()  # accepted strings for each thing asked, for the metric "aspects"
    ignore: tuple[str, ...] = ()  # names of the question that answer nothing, for the metric "words"
    options: dict[str, str] | None = None  # of a closed question: label → what it stands for, "" for itself


class _Fields:
    """A JSON object with its place, so that every complaint says file, row and field."""

    def __init__(self, where: str, value: Any):
        self.where = where
        if not isinstance(value, dict):
            raise UserError(f"{where}: expected a JSON object, found {_kind(value)}; one object a line")
        self.value = value

    def fail(self, field: str, expected: str) -> UserError:
        found = _kind(self.value[field]) if field in self.value else "no such field"
        return UserError(f"{self.where}, field {field!r}: expected {expected}, found {found}; mend the file")

    def text(self, field: str, default: str | None = None) -> str:
        """A string that is valid Unicode; `default`, where there is one, for a missing field or null."""
        value = self.value.get(field)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.fail(field, "a string")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UserError(f"{self.where}, field {field!r}: half of a surrogate pair; mend the encoding") from None
        return value

    def words(self, field: str) -> str:
        """A string with something in it."""
        value = self.text(field)
        if not value.strip():
            raise UserError(f"{self.where}, field {field!r}: expected text, found only whitespace; mend the file")
        return value

    def name(self, field: str, default: str) -> str:
        """A string or a whole number, as a string."""
        value = self.value.get(field)
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else self.text(field, default)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _objects(path: str | os.PathLike[str]) -> Iterator[tuple[int, _Fields]]:
    """The JSON objects of a JSONL file with their row numbers, counted from 1 as lines; empty lines are skipped."""
    path = pathlib.Path(path)
    try:
        with open(path, encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                where = f"{path}, row {number}"
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise UserError(f"{where}: not JSON ({error}); expected one object a line") from None
                yield number, _Fields(where, value)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text; expected JSONL, one JSON object a line") from None


def read_rows(path: str | os.PathLike[str]) -> Iterator[Row]:
    """Generator rows from JSONL: `instruction`, `output`, and where present `input`, `id`, `dataset_name`.

    Unknown keys are fine; a row without an id is called by its number. Raises UserError with file, row and field,
    also where an output's passages are not closed.
    """
    for number, fields in _objects(path):
        row = Row(
            instruction=fields.words("instruction"),
            output=fields.words("output"),
            input=fields.text("input", ""),
            id=fields.name("id", str(number)),
            dataset_name=fields.name("dataset_name", ""),
        )
        try:
            reflection.parse(row.output)
        except UserError as error:
            raise UserError(f"{fields.where}, field 'output': {error}") from None
        yield row


def read_questions(path: str | os.PathLike[str]) -> Iterator[QuestionRow]:
    """Questions from JSONL in the layout of the PopQA files: `instruction` or `question`, and where present `input`,
    `id`, `answers`, `metric` (how the answer is held against them) with its `aspects` and `ignore`, the passages `ctxs`
    or `top_contexts`, and for closed questions `options` (a list of labels, or an object of labels and what they stand
    for).

    Raises UserError with file, row and field.
    """
    for number, fields in _objects(path):
        field = "question" if fields.value.get("instruction") is None else "instruction"
        yield QuestionRow(
            id=fields.name("id", str(number)),
            instruction=fields.words(field),
            input=fields.text("input", ""),
            answers=_strings(fields, "answers"),
            ctxs=_contexts(fields),
            metric=_metric(fields),
            aspects=_aspects(fields),
            ignore=_strings(fields, "ignore"),
            options=_options(fields),
            raw=fields.value,
        )


def _strings(fields: _Fields, field: str) -> tuple[str, ...]:
    strings = fields.value.get(field)
    if strings is None:
        return ()
    if not isinstance(strings, list) or not all(isinstance(text, str) for text in strings):
        raise fields.fail(field, "a list of strings")
    return tuple(strings)


def _aspects(fields: _Fields) -> tuple[tuple[str, ...], ...]:
    aspects = fields.value.get("aspects", [])
    if not isinstance(aspects, list) or not all(
        isinstance(one, list) and all(isinstance(text, str) for text in one) for one in aspects
    ):
        raise fields.fail("aspects", "a list of lists of strings")
    if not aspects and fields.value.get("metric") == "aspects":
        raise fields.fail("aspects", "a list of lists of strings, which the metric aspects needs")
    return tuple(map(tuple, aspects))


def _options(fields: _Fields) -> dict[str, str] | None:
    options = fields.value.get("options")
    if options is None:
        return None
    found = dict.fromkeys(options, "") if isinstance(options, list) and _all_text(options) else options
    if not isinstance(found, dict) or not found or not _all_text(found.values()) or not all(map(str.strip, found)):
        raise fields.fail("options", "a list of labels or an object of labels and texts")
    if len({label.casefold() for label in found}) < len(options):
        raise fields.fail("options", "labels that differ, whatever their case")
    return found


def _all_text(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _metric(fields: _Fields) -> str:
    metric = fields.text("metric", "match")
    if metric not in METRICS:
        raise fields.fail("metric", f"one of {', '.join(METRICS)}")
    return metric


def _contexts(fields: _Fields) -> tuple[Context, ...] | None:
    field = "top_contexts" if fields.value.get("ctxs") is None else "ctxs"
    contexts = fields.value.get(field)
    if contexts is None:
        return None
    if not isinstance(contexts, list):
        raise fields.fail(field, "a list of passages")
    return tuple(_context(_Fields(f"{fields.where}, {field}[{place}]", value)) for place, value in enumerate(contexts))


def _context(fields: _Fields) -> Context:
    score = fields.value.get("score")
    try:
        score = None if score is None else float(score)  # the published files hold scores as strings
    except (TypeError, ValueError):
        raise fields.fail("score", "a number") from None
    if score is not None and not math.isfinite(score):
        raise fields.fail("score", "a finite number")
    return Context(fields.text("title", ""), fields.text("text"), fields.name("id", ""), score)
