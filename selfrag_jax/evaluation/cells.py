"""An evaluation as cells: a file of questions answered with one change of settings, each on the common runner.

Every cell's answers are kept with their trees in the run folder, so that a run that was killed goes on where it was,
and figures can be worked out again without answering anything.
"""

import copy
import dataclasses
import functools
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from selfrag_jax.config import Config, DecodeConfig
from selfrag_jax.config_check import flatten
from selfrag_jax.data.rows import QuestionRow, read_questions
from selfrag_jax.evaluation.answers import answer_unit, files_behind
from selfrag_jax.paths import resolve
from selfrag_jax.runner import Unit, run_units

if TYPE_CHECKING:
    from selfrag_jax.decoding.engine import Engine


@dataclasses.dataclass(frozen=True)
class Cell:
    """Questions and how they are answered. Rows that bring passages are answered from these."""

    name: str
    questions: pathlib.Path
    decode: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # changes to `config.decode`
    top_k: int = 0  # K; 0: that of the config
    index_dir: str = ""  # another index than the config's


class Engines:
    """One model, loaded when a cell first needs it, under the settings of each cell."""

    def __init__(self, config: Config):
        self._config = config

    @functools.cached_property
    def base(self) -> "Engine":
        """The engine of the config."""
        from selfrag_jax import compilation_cache
        from selfrag_jax.decoding.engine import Engine

        compilation_cache.enable()
        return Engine.from_config(self._config)

    @functools.cache  # noqa: B019 (an Engines lives as long as the run)
    def retriever(self, index_dir: str) -> Any:
        """The retriever over an index, opened when it is first asked."""
        from selfrag_jax.decoding.load import IndexRetriever

        return IndexRetriever(dataclasses.replace(self._config.retrieval, index_dir=index_dir))

    def of(self, cell: Cell) -> "Engine":
        """The engine as the cell wants it; the weights are shared."""
        engine = copy.copy(self.base)
        engine.config = decode_config(self._config, cell)
        engine.top_k = cell.top_k or self._config.retrieval.top_k
        engine.retriever = self.retriever(cell.index_dir or self._config.retrieval.index_dir)
        return engine


def decode_config(config: Config, cell: Cell) -> DecodeConfig:
    """The decode settings of a cell."""
    return dataclasses.replace(config.decode, **cell.decode)


def run_cell(config: Config, cell: Cell, engines: Engines, answers: pathlib.Path) -> pathlib.Path:
    """Answer the cell's questions into `answers/NAME.jsonl`, going on where an earlier run stopped; the file's path."""
    rows = list(read_questions(cell.questions))
    mine = dataclasses.replace(
        config,
        decode=decode_config(config, cell),
        retrieval=dataclasses.replace(
            config.retrieval,
            top_k=cell.top_k or config.retrieval.top_k,
            index_dir=cell.index_dir or config.retrieval.index_dir,
        ),
    )
    needs_index = any(row.ctxs is None for row in rows)
    output = answers / f"{cell.name}.jsonl"
    run_units(
        rows,
        lambda unit: answer_unit(engines.of(cell), unit, tree=True),
        output,
        unit_size=config.decode.batch_size,
        inputs=[cell.questions, *files_behind(mine, needs_index)],
        settings=flatten(mine),
        description=cell.name,
    )
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


def read_jsonl(path: pathlib.Path) -> list[dict[str, Any]]:
    """The objects of a file that this package wrote."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def seconds(output: pathlib.Path) -> float:
    """What answering a cell took, over all the runs that it took, from the runner's timings."""
    timings = read_jsonl(output.with_name(f"{output.name}.timings.jsonl"))
    return sum(line["seconds"] for line in timings)


def joined(questions: pathlib.Path, answers: pathlib.Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each question with its answer."""
    found: Sequence[dict[str, Any]] = read_jsonl(answers)
    return list(zip(read_jsonl(questions), found, strict=True))
