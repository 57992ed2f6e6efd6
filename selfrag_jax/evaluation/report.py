"""Tables as Markdown, and their place in a file between two markers."""

import pathlib
from collections.abc import Sequence

from selfrag_jax.errors import UserError
from selfrag_jax.files import write_text


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are figures."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def markers(name: str) -> tuple[str, str]:
    """The lines between which `put_into` writes."""
    return f"<!-- {name}: begin, written by a command -->", f"<!-- {name}: end -->"


def check_markers(path: pathlib.Path, name: str) -> tuple[str, str]:
    """What stands before and after the place of `name` in a file, markers included. Raises UserError without it."""
    begin, end = markers(name)
    try:
        whole = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; name a file with the markers of {name}") from None
    if whole.count(begin) != 1 or whole.count(end) != 1 or whole.index(begin) > whole.index(end):
        raise UserError(f"{path}: expected the lines {begin!r} and {end!r} once each, in this order; put them in")
    return whole[: whole.index(begin) + len(begin)], whole[whole.index(end) :]


def put_into(path: pathlib.Path, name: str, text: str) -> None:
    """Replace what stands between the markers `name` of a file. Raises UserError where it has no such markers."""
    before, after = check_markers(path, name)
    write_text(path, f"{before}\n{text.strip()}\n{after}")
