"""An answer for people: the text with its citations, the passages, and what became of every candidate."""

import textwrap

from selfrag_jax import reflection
from selfrag_jax.decoding.result import Candidate, Group, Result

WIDTH = 110
_SUPPORT = dict(zip(reflection.ISSUP, ("fully", "partially", "no"), strict=True))


def render(result: Result) -> str:
    """Plain text of at most 110 columns, for a terminal."""
    answer = [textwrap.wrap(line, WIDTH) or [""] for line in (result.cited_text or "(no text)").splitlines()]
    return "\n".join([*(part for line in answer for part in line), "", details(result)])


def details(result: Result) -> str:
    """What stands below the answer: how it came about, the passages it cites, notes, and the candidates."""
    lines = [_how(result)]
    for passage in result.citations:
        head = f"[{passage.number}] {passage.title}"
        body = f"{head}: {' '.join(passage.text.split())}" if passage.text.strip() else head
        lines += textwrap.wrap(body, WIDTH, subsequent_indent="    ", max_lines=3, placeholder=" …")
    lines += [f"note: {note}" for note in result.notes]
    return "\n".join([*lines, "", *_table(result)])


def _how(result: Result) -> str:
    decision = result.first_decision
    why = f"p(Retrieval) {decision.ratio:.2f}"
    if decision.action == "text":
        why = f"the model began with text, its Retrieve tokens having {decision.mass:.2f} of the probability"
    if result.counts.retrievals == 0:
        return f"answered without retrieval ({why})"
    times = "1 time" if result.counts.retrievals == 1 else f"{result.counts.retrievals} times"
    return f"retrieved {times} ({why})"


def _table(result: Result) -> list[str]:
    rows: list[tuple[str, ...]] = [("", "segment", "passage", "p(Relevant)", "IsSup", "IsUse", "total", "text")]
    rows += [_row(result, candidate) for candidate in result.tree]
    widths = [max(len(row[i]) for row in rows) for i in range(7)]
    room = WIDTH - sum(widths) - 7 * 2
    return [_line(row, widths, room) for row in rows]


def _row(result: Result, candidate: Candidate) -> tuple[str, ...]:
    mark = "*" if candidate.node in result.segments else ("+" if candidate.kept else "")
    passage = "(none)" if candidate.passage is None else _short(result.passages[candidate.passage].title, 28)
    follows = "" if candidate.parent is None else f" after {candidate.parent + 1}"
    return (
        f"{mark}{candidate.node + 1}",
        f"{candidate.depth + 1}{follows}",
        passage,
        "-" if candidate.isrel is None else f"{candidate.isrel.probabilities[reflection.RELEVANT]:.3f}",
        _support(candidate.issup),
        "-" if candidate.isuse is None else f"{candidate.isuse.score:+.2f}",
        f"{candidate.path_score:.3f}",
        " ".join(candidate.text.split()),
    )


def _support(group: Group | None) -> str:
    return "-" if group is None else f"{_SUPPORT[group.greedy]} {group.score:.2f}"


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _line(row: tuple[str, ...], widths: list[int], room: int) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row[:7], widths, strict=True)]
    return "  ".join([*cells, _short(row[7], room)]).rstrip()
