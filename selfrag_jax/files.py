"""JSONL and text files of this package's own: whole or not there at all."""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, TextIO


def read_jsonl(path: pathlib.Path) -> list[dict[str, Any]]:
    """The objects of a file that this package wrote."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write_jsonl(path: pathlib.Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write the rows, one JSON object a line, beside the path and then rename. Returns how many."""
    count = 0
    with _renamed(path) as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count


def write_text(path: pathlib.Path, text: str) -> None:
    """Write beside, then rename."""
    with _renamed(path) as file:
        file.write(text)


@contextlib.contextmanager
def _renamed(path: pathlib.Path) -> Iterator[TextIO]:
    """A file beside the path that takes its place at the end, if nothing was raised.

    Its name is this process's own, since several may write the same file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("w", encoding="utf-8") as file:
            yield file
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
