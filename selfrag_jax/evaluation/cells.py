"""An evaluation as cells: a file of questions answered with one change of settings, each on the common runner.

Every cell's answers are kept with their trees in the run folder, so that a run that was killed goes on where it was,
and figures can be worked out again without answering anything.
"""

import copy
import dataclasses
import functools
import os
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from selfrag_jax.config import Config, DecodeConfig
from selfrag_jax.config_check import flatten
from selfrag_jax.data.rows import QuestionRow, read_questions
from selfrag_jax.evaluation.answers import answer_unit, files_behind
from selfrag_jax.files import read_jsonl, write_jsonl
from selfrag_jax.paths import resolve
from selfrag_jax.runner import RowError, Unit, run_units

if TYPE_CHECKING:
    from selfrag_jax.decoding.engine import Engine


@dataclasses.dataclass(frozen=True)
class Cell:
    """Questions and how they are answered. Rows that bring passages are answered from all of these."""

    name: str
    questions: pathlib.Path
    decode: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # changes to `config.decode`
    index_dir: str = ""  # another index than the config's


class Engines:
    """One model, loaded when a cell first needs it, under the settings of each cell."""

    def __init__(self, config: Config):
        self._config = config

    @functools.cached_property
    def base(self) -> "Engine":
        """The engine of the config."""
        from selfrag_jax.decoding.engine import Engine

        return Engine.from_config(self._config)

    @functools.cache  # noqa: B019 (an Engines lives as long as the run)
    def retriever(self, index_dir: str) -> Any:
        """The retriever over an index, opened when it is first asked."""
        from selfrag_jax.decoding.load import IndexRetriever

        config = self._config.retrieval
        if index_dir != config.index_dir:  # of another corpus, which the index carries
            config = dataclasses.replace(config, index_dir=index_dir, corpus="")
        return IndexRetriever(config)

    def of(self, cell: Cell) -> "Engine":
        """The engine as the cell wants it; the weights are shared."""
        engine = copy.copy(self.base)
        engine.config = decode_config(self._config, cell)
        engine.top_k = self._config.retrieval.top_k
        engine.retriever = self.retriever(cell.index_dir or self._config.retrieval.index_dir)
        return engine


def decode_config(config: Config, cell: Cell) -> DecodeConfig:
    """The decode settings of a cell."""
    return dataclasses.replace(config.decode, **cell.decode)


@dataclasses.dataclass(frozen=True)
class Process:
    """Which of the processes that work on one folder this is. A worker ends when its parent is gone."""

    index: int = 0
    count: int = 1
    parent: int = 0  # process id

    def check_parent(self) -> None:
        """Raise KeyboardInterrupt in a worker whose parent was killed: another run may be at its units by now."""
        if self.parent and os.getppid() != self.parent:
            raise KeyboardInterrupt


ALONE = Process()


def run_cell(
    config: Config, cell: Cell, engines: Engines, answers: pathlib.Path, process: Process = ALONE
) -> pathlib.Path | None:
    """Answer the cell's questions into `answers/NAME.jsonl`, going on where an earlier run stopped.

    Rows that bring passages are answered together with rows that bring as many, so that none is padded with empty ones.
    Returns the file's path, or None where other processes are still at work on it.
    """
    rows = list(read_questions(cell.questions))
    mine = _config_of(config, cell)
    needs_index = any(row.ctxs is None for row in rows)
    output = answers / f"{cell.name}.jsonl"

    def work(unit: Unit[QuestionRow]) -> list[dict[str, Any] | RowError]:
        process.check_parent()
        engine = engines.of(cell)
        engine.top_k = unit.bucket or engine.top_k  # type: ignore[assignment]
        return [_unjudged(row) for row in answer_unit(engine, unit, tree=True)]

    report = run_units(
        rows,
        work,
        output,
        unit_size=config.decode.batch_size,
        bucket=lambda row: len(row.ctxs or ()),
        inputs=[cell.questions, *files_behind(mine, needs_index)],
        settings=flatten(mine),
        process_index=process.index,
        process_count=process.count,
        description=cell.name,
    )
    return output if report.finished else None


def _unjudged(row: dict[str, Any] | RowError) -> dict[str, Any] | RowError:
    """An answer without its row's verdict: an evaluation judges by its own rules, later."""
    return row if isinstance(row, RowError) else {key: value for key, value in row.items() if key != "correct"}


def _config_of(config: Config, cell: Cell) -> Config:
    index_dir = cell.index_dir or config.retrieval.index_dir
    retrieval = dataclasses.replace(config.retrieval, index_dir=index_dir)
    return dataclasses.replace(config, decode=decode_config(config, cell), retrieval=retrieval)


def same_in(mode: str, tree: Mapping[str, Any]) -> bool:
    """Whether a question answered adaptively would be answered in the same way, candidate by candidate, in a mode.

    "always" and "never" decide the first segment as it was decided, and there was no other; "one_look" lets the first
    retrieval pass, and there was no other.
    """
    later = [candidate for candidate in tree["tree"] if candidate["depth"] > 0]
    if mode == "one_look":
        return all(candidate["decision"]["action"] != "retrieve" for candidate in later)
    return not later and tree["first_decision"]["action"] == {"always": "retrieve", "never": "none"}[mode]


def run_derived(
    config: Config,
    cell: Cell,
    mode: str,
    adaptive: pathlib.Path,
    engines: Engines,
    answers: pathlib.Path,
    process: Process = ALONE,
) -> pathlib.Path | None:
    """As `run_cell`, but questions whose adaptive answer is the same in this mode (`same_in`) are not asked again."""
    output = answers / f"{cell.name}.jsonl"
    pairs = joined(cell.questions, adaptive)
    rest = [question for question, answer in pairs if not same_in(mode, answer["tree"])]
    decoded: dict[str, dict[str, Any]] = {}
    if rest:
        questions = cell.questions.with_name(f"{cell.name}-rest.jsonl")
        write_jsonl(questions, rest)
        found = run_cell(config, dataclasses.replace(cell, name=f"{cell.name}-rest", questions=questions), engines,
            answers, process)  # fmt: skip
        if found is None:
            return None
        decoded = {answer["id"]: answer for answer in read_jsonl(found)}
    asked = {question["id"] for question in rest}
    write_jsonl(output, (decoded[answer["id"]] if answer["id"] in asked else answer for _, answer in pairs))
    return output


def run_retrieval(config: Config, cell: Cell, engines: Engines, folder: pathlib.Path, k: int) -> pathlib.Path:
    """The ids of the k passages found for each of the cell's questions, into `folder/NAME.jsonl`; the file's path."""
    rows = list(read_questions(cell.questions))
    index_dir = cell.index_dir or config.retrieval.index_dir

    def work(unit: Unit[QuestionRow]) -> list[dict[str, Any]]:
        asked = [" ".join(filter(None, (row.instruction, row.input))) for row in unit.items]
        found = engines.retriever(index_dir).retrieve(asked, k)
        return [
            {"id": row.id, "found": [passage.id for passage in passages]}
            for row, passages in zip(unit.items[: unit.real], found, strict=False)
        ]

    output = folder / f"{cell.name}.jsonl"
    manifests = sorted(resolve(index_dir).glob("*.json"))
    run_units(rows, work, output, unit_size=32, inputs=[cell.questions, *manifests], settings={"k": k})
    return output


def seconds(output: pathlib.Path) -> float:
    """What answering a cell took, over all of its runs, from the runner's timings; 0 where it was derived."""
    timings = output.with_name(f"{output.name}.timings.jsonl")
    return sum(line["seconds"] for line in read_jsonl(timings)) if timings.is_file() else 0.0


def joined(questions: pathlib.Path, answers: pathlib.Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each question with its answer. Raises ValueError where the files are not of the same questions."""
    pairs = list(zip(read_jsonl(questions), read_jsonl(answers), strict=True))
    strange = [question["id"] for question, answer in pairs if question["id"] != answer["id"]]
    if strange:
        raise ValueError(f"{answers} does not answer {questions}: {strange[0]} has another row in its place")
    return pairs
