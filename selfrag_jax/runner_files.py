"""What the runner keeps on disk: manifests, finished units, and the assembled output. Everything is written beside
and renamed, so a kill at any moment leaves whole files or none."""

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from selfrag_jax.errors import UserError

VERSION = 1


@dataclasses.dataclass(frozen=True)
class BadRow:
    """A row that was left out, and why."""

    row_id: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Part:
    """A finished unit: results and left-out rows by their position in the input."""

    unit: int
    rows: dict[int, dict[str, Any]]
    bad: dict[int, BadRow]


@dataclasses.dataclass(frozen=True)
class Paths:
    """The files that belong to one output."""

    output: pathlib.Path

    def _beside(self, suffix: str) -> pathlib.Path:
        return self.output.with_name(self.output.name + suffix)

    @property
    def parts(self) -> pathlib.Path:
        """The folder of units that are done while others are not."""
        return self._beside(".parts")

    @property
    def manifest(self) -> pathlib.Path:
        """What the finished output was made from."""
        return self._beside(".manifest.json")

    @property
    def timings(self) -> pathlib.Path:
        """Seconds per unit; apart, so that outputs are the same byte for byte."""
        return self._beside(".timings.jsonl")

    @property
    def bad(self) -> pathlib.Path:
        """Rows that were left out, and why."""
        return self._beside(".bad.jsonl")

    @property
    def parts_manifest(self) -> pathlib.Path:
        """What the units in `parts` are made from; a run with other inputs is refused."""
        return self.parts / "manifest.json"

    def unit(self, index: int) -> pathlib.Path:
        """The file of one finished unit."""
        return self.parts / f"unit-{index:06d}.jsonl"

    def remove_all(self) -> None:
        """Throws away the output and everything beside it that belongs to it."""
        shutil.rmtree(self.parts, ignore_errors=True)
        for path in (self.manifest, self.output, self.timings, self.bad):
            path.unlink(missing_ok=True)


def file_digest(path: pathlib.Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def json_line(value: Any) -> bytes:
    """`value` as one line of UTF-8 JSON, the same bytes for the same value. NaN and infinity are refused."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, as broken JSON input can hold: only an escape can carry it
        return json.dumps(value, allow_nan=False).encode("ascii") + b"\n"


def _write(paths: Paths, path: pathlib.Path, content: bytes) -> None:
    """Writes in the parts' folder and renames to `path`: what a kill leaves goes away with the folder.

    The process id keeps two writers of the same file apart.
    """
    beside = paths.parts / f"{path.name}.{os.getpid()}.tmp"
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def make_manifest(
    inputs: Sequence[pathlib.Path], settings: Mapping[str, Any], unit_size: int, layout: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """What the results depend on: the inputs' bytes, the settings, and how rows are cut into units."""
    flat = json.loads(json.dumps(dict(settings), allow_nan=False))  # as it will be read back
    return {
        "version": VERSION,
        "inputs": [{"name": path.name, "sha256": file_digest(path)} for path in inputs],
        "settings": flat,
        "unit_size": unit_size,
        "units": len(layout),
        "layout_sha256": hashlib.sha256(json.dumps([list(unit) for unit in layout]).encode()).hexdigest(),
    }


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What differs between two manifests, in words; "" if nothing that results depend on does."""
    found = []
    if [entry["sha256"] for entry in old["inputs"]] != [entry["sha256"] for entry in new["inputs"]]:
        found.append("the input (" + ", ".join(entry["name"] for entry in new["inputs"]) + ")")
    for name in sorted(old["settings"].keys() | new["settings"].keys()):
        before, after = old["settings"].get(name), new["settings"].get(name)
        if before != after:
            found.append(f"{name} ({before!r} then, {after!r} now)")
    if not found:
        found += [name for name in ("version", "unit_size", "units", "layout_sha256") if old[name] != new[name]]
    return ", ".join(found[:4]) + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _read_manifest(path: pathlib.Path) -> dict[str, Any] | None:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        return manifest if {"inputs", "settings", "version"} <= manifest.keys() else None
    except (OSError, ValueError, AttributeError):
        return None


def is_finished(paths: Paths, manifest: Mapping[str, Any]) -> bool:
    """Whether the output is complete and made of the same inputs and settings.

    Raises UserError when there is an output that is not: it is the user's to throw away.
    """
    if not paths.output.exists():
        return False
    anew = "give another --output, or --restart to make it anew"
    made = _read_manifest(paths.manifest)
    if made is None or made.get("output_sha256") != file_digest(paths.output):
        # Killed between the two renames: the parts are still there, and the assembly will be done again.
        if paths.parts_manifest.exists():
            return False
        raise UserError(f"{paths.output} exists and is not the output of a finished run; {anew}")
    differs = difference(made, manifest)
    if differs:
        raise UserError(f"{paths.output} was made with something else: {differs}; {anew}")
    return True


def open_parts(paths: Paths, manifest: Mapping[str, Any]) -> None:
    """Makes the folder of finished units, or checks that the one there was begun with the same inputs and settings."""
    try:
        paths.parts.mkdir(parents=True, exist_ok=True)
        found = _read_manifest(paths.parts_manifest)
        if found is None:
            if any(paths.parts.glob("unit-*.jsonl")):
                raise UserError(
                    f"{paths.parts} holds finished units but no readable manifest.json; start anew with --restart"
                )
            content = json.dumps(manifest, indent=2, ensure_ascii=False).encode() + b"\n"
            _write(paths, paths.parts_manifest, content)
            found = _read_manifest(paths.parts_manifest) or dict(manifest)
    except OSError as error:
        raise UserError(f"{paths.output}: cannot be written ({error.strerror})") from error
    differs = difference(found, manifest)
    if differs:
        raise UserError(
            f"{paths.output} was begun with something else: {differs}; set it back to go on, "
            "give another --output, or --restart to start anew"
        )


def write_part(paths: Paths, part: Part, seconds: float) -> None:
    """Writes one finished unit: a line per row, then a line with the digest of the lines before it."""
    lines = [json_line({"position": position, "row": row}) for position, row in part.rows.items()]
    lines += [json_line({"position": p, "bad": dataclasses.asdict(bad)}) for p, bad in part.bad.items()]
    body = b"".join(lines)
    digest = hashlib.sha256(body).hexdigest()
    tail = json_line({"unit": part.unit, "lines": len(lines), "sha256": digest, "seconds": round(seconds, 4)})
    _write(paths, paths.unit(part.unit), body + tail)


def read_part(paths: Paths, unit: int, positions: Sequence[int]) -> tuple[Part, float] | None:
    """A finished unit and its seconds; None when it is absent, truncated, corrupted or of other rows."""
    try:
        content = paths.unit(unit).read_bytes()
    except OSError:
        return None
    body, newline, tail_line = content.removesuffix(b"\n").rpartition(b"\n")
    body += newline
    try:
        tail = json.loads(tail_line)
        if tail["unit"] != unit or tail["sha256"] != hashlib.sha256(body).hexdigest():
            return None
        entries = [json.loads(line) for line in body.split(b"\n") if line]
    except (ValueError, KeyError, TypeError):
        return None
    rows = {entry["position"]: entry["row"] for entry in entries if "row" in entry}
    bad = {entry["position"]: BadRow(**entry["bad"]) for entry in entries if "bad" in entry}
    if sorted([*rows, *bad]) != sorted(positions):
        return None
    return Part(unit, rows, bad), tail["seconds"]


def assemble(paths: Paths, manifest: Mapping[str, Any], parts: Sequence[tuple[Part, float]]) -> None:
    """Writes the output in the order of the input, and the files beside it.

    Two processes may do this at once: they write the same bytes. The manifest is written last, since an output counts
    as finished only with it.
    """
    rows: dict[int, dict[str, Any]] = {}
    bad: dict[int, BadRow] = {}
    for part, _ in parts:
        rows.update(part.rows)
        bad.update(part.bad)
    content = b"".join(json_line(rows[position]) for position in sorted(rows))
    timings = [{"unit": part.unit, "rows": len(part.rows), "seconds": seconds} for part, seconds in parts]
    _write(paths, paths.timings, b"".join(json_line(timing) for timing in timings))
    if bad:
        lines = [{"position": position, **dataclasses.asdict(bad[position])} for position in sorted(bad)]
        _write(paths, paths.bad, b"".join(json_line(line) for line in lines))
    _write(paths, paths.output, content)
    record = {
        **manifest,
        "rows": len(rows),
        "bad": len(bad),
        "output_sha256": hashlib.sha256(content).hexdigest(),
    }
    _write(paths, paths.manifest, json.dumps(record, indent=2, ensure_ascii=False).encode() + b"\n")
