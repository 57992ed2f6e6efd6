"""The reflection tokens: four groups, their ids, the prompts, and rows as text.

This is their only home. Nothing here knows a tokenizer; `selfrag_jax.tokenizer` gives the strings their ids.
"""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np

from selfrag_jax.errors import UserError

RETRIEVE = NO_RETRIEVAL, RETRIEVAL, CONTINUE = "[No Retrieval]", "[Retrieval]", "[Continue to Use Evidence]"
ISREL = IRRELEVANT, RELEVANT = "[Irrelevant]", "[Relevant]"
ISSUP = FULLY, PARTIALLY, NO_SUPPORT = "[Fully supported]", "[Partially supported]", "[No support / Contradictory]"
ISUSE = ("[Utility:1]", "[Utility:2]", "[Utility:3]", "[Utility:4]", "[Utility:5]")
FENCES = PARAGRAPH, PARAGRAPH_END = "<paragraph>", "</paragraph>"
PAD = "<pad>"

GROUPS: dict[str, tuple[str, ...]] = {"retrieve": RETRIEVE, "isrel": ISREL, "issup": ISSUP, "isuse": ISUSE}

# The order in which the published checkpoints number them (32000, 32001, … in Llama-2 models).
TOKENS: tuple[str, ...] = (*RETRIEVE, *ISREL, *FENCES, *ISUSE, *ISSUP, PAD)

# The order of every array whose last axis is 13 long, and where each group stands in it.
REFLECTION: tuple[str, ...] = RETRIEVE + ISREL + ISSUP + ISUSE
SLICES: dict[str, slice] = {
    name: slice(REFLECTION.index(values[0]), REFLECTION.index(values[-1]) + 1) for name, values in GROUPS.items()
}

GROUP_OF: dict[str, str] = {token: name for name, values in GROUPS.items() for token in values}


@dataclasses.dataclass(frozen=True)
class ReflectionIds:
    """The token id of each of the sixteen strings in one tokenizer; fields in published order."""

    no_retrieval: int
    retrieval: int
    continue_: int
    irrelevant: int
    relevant: int
    paragraph: int
    paragraph_end: int
    utility_1: int
    utility_2: int
    utility_3: int
    utility_4: int
    utility_5: int
    fully: int
    partially: int
    no_support: int
    pad: int

    @classmethod
    def from_lookup(cls, lookup: Callable[[str], int | None]) -> "ReflectionIds":
        """The ids that `lookup` gives for the sixteen strings. Raises UserError naming those it does not know."""
        ids = [lookup(token) for token in TOKENS]
        missing = [token for token, found in zip(TOKENS, ids, strict=True) if found is None]
        if missing:
            raise UserError(f"the tokenizer has no {', '.join(missing)}: load it with the reflection tokens added")
        return cls(*(int(found) for found in ids if found is not None))

    def __getitem__(self, token: str) -> int:
        """The id of one of the sixteen strings."""
        return dataclasses.astuple(self)[TOKENS.index(token)]

    @functools.cached_property
    def array(self) -> np.ndarray:
        """The 13 reflection ids in the order of `REFLECTION`, int32; read-only."""
        ids = np.array([self[token] for token in REFLECTION], np.int32)
        ids.flags.writeable = False
        return ids

    def group(self, name: str) -> np.ndarray:
        """The ids of the group "retrieve", "isrel", "issup" or "isuse", in the order of `REFLECTION`, int32."""
        return self.array[SLICES[name]]


def prompt(instruction: str, input: str = "") -> str:
    """What the model is asked, up to where its response begins; without an input the second block is left out."""
    question = f"### Instruction:\n{instruction}\n\n"
    if input:
        question += f"### Input:\n{input}\n\n"
    return question + "### Response:\n"


def passage(title: str, text: str) -> str:
    """What stands between the fences: the title on a line of its own, then the text."""
    return f"{title}\n{text}"


@dataclasses.dataclass(frozen=True)
class Piece:
    """A part of an output: a reflection token, text, or what stands between two fences (the fences left out)."""

    kind: Literal["token", "text", "passage"]
    text: str


_TOKEN = re.compile("|".join(map(re.escape, REFLECTION + FENCES)))
_FENCE = re.compile("|".join(map(re.escape, FENCES)))


def parse(output: str) -> list[Piece]:
    """A row's output as pieces, in order; empty text is left out, an empty passage is kept.

    Between `<paragraph>` and `</paragraph>` everything is passage text, a string that looks like a reflection token
    too. Raises UserError when a passage is not closed, is closed without being open, or holds another.
    """
    pieces: list[Piece] = []
    start = 0
    while found := _TOKEN.search(output, start):
        if found.start() > start:
            pieces.append(Piece("text", output[start : found.start()]))
        start = found.end()
        if found[0] == PARAGRAPH_END:
            raise UserError(f"{PARAGRAPH_END} at character {found.start()} closes no {PARAGRAPH}; mend the row")
        if found[0] != PARAGRAPH:
            pieces.append(Piece("token", found[0]))
            continue
        end = _FENCE.search(output, start)
        if end is None:
            raise UserError(f"{PARAGRAPH} at character {found.start()} is never closed; mend the row")
        if end[0] == PARAGRAPH:
            raise UserError(f"{PARAGRAPH} at character {end.start()} stands inside another passage; mend the row")
        pieces.append(Piece("passage", output[start : end.start()]))
        start = end.end()
    if start < len(output):
        pieces.append(Piece("text", output[start:]))
    return pieces


def render(pieces: Iterable[Piece]) -> str:
    """The output that `parse` reads back as the same pieces (neighbouring text as one).

    Raises UserError when there is none: text that holds a token's string, or a passage that holds a fence.
    """
    output = ""
    for piece in pieces:
        forbidden = {"text": _TOKEN, "passage": _FENCE}.get(piece.kind)
        if forbidden and (found := forbidden.search(piece.text)):
            raise UserError(f"a {piece.kind} that holds {found[0]} cannot be written into a row; take it out")
        output += f"{PARAGRAPH}{piece.text}{PARAGRAPH_END}" if piece.kind == "passage" else piece.text
    return output


@dataclasses.dataclass(frozen=True)
class Segment:
    """One segment of an output; None where the row has no such token."""

    retrieve: str | None
    passage: str | None
    isrel: str | None
    text: str
    issup: str | None
    isuse: str | None


def segments(output: str) -> list[Segment]:
    """A row's segments: each begins at a Retrieve token, the first one also without it.

    Raises UserError as `parse` does, or when a segment holds two passages or two tokens of one group.
    """
    result: list[Segment] = []
    current: dict[str, str] = {}
    for piece in [*parse(output), Piece("token", NO_RETRIEVAL)]:  # the last one closes the last segment
        field = GROUP_OF[piece.text] if piece.kind == "token" else piece.kind
        if field == "retrieve" and current:
            parts = {name: current.get(name) for name in ("retrieve", "passage", "isrel", "issup", "isuse")}
            result.append(Segment(text=current.get("text", ""), **parts))
            current = {}
        if field == "text":
            current["text"] = current.get("text", "") + piece.text
        elif field in current:
            raise UserError(f"segment {len(result) + 1} holds two of {field}: {piece.text!r}; mend the row")
        else:
            current[field] = piece.text
    return result
