"""Long jobs over a file: work units, progress, restart and several processes, once for every command that needs them.

A work unit is a pure function of the input: rows of one bucket, in file order, `unit_size` of them, the last unit of a
bucket padded. Batching a row with other rows moves the last bits of its result, so a restart and a split over processes
happen at unit boundaries only, and the output is the same byte for byte however the run went.

Beside the output, while it is being made:

    OUTPUT.parts/manifest.json        what is being made, from what
    OUTPUT.parts/unit-000123.jsonl    one finished unit: a line per row, then a line with their digest

and when it is done:

    OUTPUT                            a line per row, in the order of the input
    OUTPUT.manifest.json              what made it
    OUTPUT.timings.jsonl              seconds per unit (never the same twice, so not in OUTPUT)
    OUTPUT.bad.jsonl                  rows left out, when asked to leave them out and there were any

Pure host code; the devices belong to the caller's `work`.
"""

import dataclasses
import json
import os
import pathlib
import shutil
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from selfrag_jax import progress
from selfrag_jax.errors import UserError
from selfrag_jax.runner_files import (
    BadRow,
    Part,
    Paths,
    assemble,
    is_finished,
    make_manifest,
    open_parts,
    read_part,
    write_part,
)

Item = TypeVar("Item")


class RowError(Exception):
    """One input row that cannot be worked on: its id, and why in one line."""

    def __init__(self, row_id: str, reason: str) -> None:
        super().__init__(f"row {row_id}: {reason}")
        self.row_id = row_id
        self.reason = reason


@dataclasses.dataclass(frozen=True)
class Unit(Generic[Item]):
    """Rows that are worked on together."""

    index: int
    items: tuple[Item, ...]  # always unit_size of them; those past `real` repeat the last one
    real: int
    positions: tuple[int, ...]  # of the real items, in the input
    bucket: Hashable = None


Work = Callable[[Unit[Item]], Sequence["dict[str, Any] | RowError"]]


@dataclasses.dataclass(frozen=True)
class Report:
    """How a run ended."""

    rows: int  # written
    bad: int  # left out
    finished: bool  # False: other processes still hold units
    units_done: int  # by this call
    units_kept: int  # found finished, by an earlier run or another process
    seconds: float


def make_units(
    items: Sequence[Item], unit_size: int, bucket: Callable[[Item], Hashable] | None = None
) -> list[Unit[Item]]:
    """Cuts `items` into units: rows of one bucket in file order, buckets in order of first appearance."""
    if unit_size < 1:
        raise ValueError(f"unit_size must be at least 1, not {unit_size}")
    positions_of: dict[Hashable, list[int]] = {}
    for position, item in enumerate(items):
        positions_of.setdefault(bucket(item) if bucket else None, []).append(position)
    units: list[Unit[Item]] = []
    for key, positions in positions_of.items():
        for start in range(0, len(positions), unit_size):
            chunk = positions[start : start + unit_size]
            padded = chunk + [chunk[-1]] * (unit_size - len(chunk))
            units.append(Unit(len(units), tuple(items[p] for p in padded), len(chunk), tuple(chunk), key))
    return units


def processes_from_environment() -> tuple[int, int]:
    """(index, count) of this process among those of a Slurm or Open MPI job step; (0, 1) outside of one."""
    for index, count in (("SLURM_PROCID", "SLURM_NTASKS"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")):
        if index in os.environ and count in os.environ:
            return int(os.environ[index]), int(os.environ[count])
    return 0, 1


def run_units(
    items: Sequence[Item],
    work: Work[Item],
    output: pathlib.Path,
    *,
    unit_size: int,
    inputs: Sequence[pathlib.Path],
    settings: Mapping[str, Any],
    bucket: Callable[[Item], Hashable] | None = None,
    process_index: int = 0,
    process_count: int = 1,
    skip_bad: bool = False,
    restart: bool = False,
    description: str = "",
) -> Report:
    """Runs `work` over `items` and writes `output` (JSONL, one line per row, in the order of `items`).

    `work(unit)` returns one result per real item of the unit, in order: a dict that JSON can hold, or a RowError.
    `inputs` are the files that `items` came from and `settings` everything else that the results depend on, as flat
    JSON values: both go into the manifest, and a run goes on from finished units only if neither has changed. Unit i
    belongs to process i % process_count; whichever process finishes the last missing unit puts the output together.
    Called again on a finished output, it changes nothing.

    Raises UserError for a bad row (unless `skip_bad`), for an output begun or made with other inputs or settings
    (unless `restart`, which throws it away), and for an output that cannot be written.
    """
    if not 0 <= process_index < process_count:
        raise UserError(f"process_index={process_index} is not below process_count={process_count}")
    if restart and process_count > 1:
        raise UserError("a restart with several processes would throw away each other's work; remove the output first")
    started = time.perf_counter()
    units = make_units(items, unit_size, bucket)
    paths = Paths(pathlib.Path(output))
    manifest = make_manifest(inputs, settings, unit_size, [unit.positions for unit in units])
    if restart:
        paths.remove_all()
    done, kept = 0, len(units)
    if not is_finished(paths, manifest):
        open_parts(paths, manifest)
        mine = [unit for unit in units if unit.index % process_count == process_index]
        todo = [unit for unit in mine if not _is_done(paths, unit, skip_bad)]
        done, kept = len(todo), len(mine) - len(todo)
        _work_through(todo, mine, work, paths, skip_bad, description)
        if not _put_together(paths, manifest, units):
            return Report(0, 0, False, done, kept, time.perf_counter() - started)
    record = json.loads(paths.manifest.read_text(encoding="utf-8"))
    return Report(record["rows"], record["bad"], True, done, kept, time.perf_counter() - started)


def _work_through(
    todo: Sequence[Unit[Item]],
    mine: Sequence[Unit[Item]],
    work: Work[Item],
    paths: Paths,
    skip_bad: bool,
    description: str,
) -> None:
    total = sum(unit.real for unit in mine)
    pending = sum(unit.real for unit in todo)
    with progress.bar(total, total - pending, "row", description) as bar:
        for unit in todo:
            started = time.perf_counter()
            part = _part(unit, work(unit), skip_bad)
            write_part(paths, part, seconds=time.perf_counter() - started)
            bar.update(unit.real)


def _part(unit: Unit[Item], results: Sequence[dict[str, Any] | RowError], skip_bad: bool) -> Part:
    if len(results) != unit.real:
        raise ValueError(f"unit {unit.index}: {len(results)} results for {unit.real} rows")
    rows: dict[int, dict[str, Any]] = {}
    bad: dict[int, BadRow] = {}
    for position, result in zip(unit.positions, results, strict=True):
        if not isinstance(result, RowError):
            rows[position] = result
        elif skip_bad:
            bad[position] = BadRow(result.row_id, result.reason)
        else:
            raise UserError(f"{result}; correct the row, or leave such rows out with --skip_bad")
    return Part(unit.index, rows, bad)


def _is_done(paths: Paths, unit: Unit[Item], skip_bad: bool) -> bool:
    found = read_part(paths, unit.index, unit.positions)
    # Rows that an earlier run left out are tried again when this one is to leave none out.
    return found is not None and (skip_bad or not found[0].bad)


def _put_together(paths: Paths, manifest: dict[str, Any], units: Sequence[Unit[Item]]) -> bool:
    """Assembles the output if every unit is there; True if the output is complete afterwards, by whichever process."""
    parts: list[tuple[Part, float]] = []
    for unit in units:
        part = read_part(paths, unit.index, unit.positions)
        if part is None:
            # Missing because it is still to come, or because another process has assembled and tidied up meanwhile.
            return is_finished(paths, manifest)
        parts.append(part)
    try:
        assemble(paths, manifest, parts)
    except FileNotFoundError:
        return is_finished(paths, manifest)
    shutil.rmtree(paths.parts, ignore_errors=True)
    return True
