"""JSONL and text files of this package's own: whole or not there at all."""

import json
import os
import pathlib
from collections.abc import Iterable
from typing import Any


def read_jsonl(path: pathlib.Path) -> list[dict[str, Any]]:
    """The objects of a file that this package wrote."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write_jsonl(path: pathlib.Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write the rows, one JSON object a line, beside the path and then rename. Returns how many."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = _beside(path)
    count = 0
    try:
        with beside.open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return count


def write_text(path: pathlib.Path, text: str) -> None:
    """Write beside, then rename."""
    beside = _beside(path)
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def _beside(path: pathlib.Path) -> pathlib.Path:
    """A name of this process's own, since several may write the same file."""
    return path.with_name(f"{path.name}.{os.getpid()}.part")
