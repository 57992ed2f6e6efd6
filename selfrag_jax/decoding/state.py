"""A question as it is asked, and what a search knows of it and of each path that goes on."""

import dataclasses
from collections.abc import Mapping, Sequence

from selfrag_jax.decoding.retriever import Passage
from selfrag_jax.decoding.scoring import Decision
from selfrag_jax.decoding.search import Path


@dataclasses.dataclass(frozen=True)
class Request:
    """One question. Given passages replace the retriever: the first K, in their order, at every retrieval.

    `options` make it a closed question: label → what it stands for ("" where the label says it all). Every candidate
    that ended an answer then votes with its score for the option it names, and the option with the largest sum wins.
    """

    instruction: str
    input: str = ""
    passages: Sequence[Passage] | None = None
    options: Mapping[str, str] | None = None


@dataclasses.dataclass
class Question:
    """One question and everything found out about it so far."""

    prompt: list[int]
    paths: list[Path] = dataclasses.field(default_factory=list)  # the beam, best first
    passages: list[Passage] = dataclasses.field(default_factory=list)  # every one offered, each once
    candidates: list[Path] = dataclasses.field(default_factory=list)  # every one, by its node's number
    kept: set[int] = dataclasses.field(default_factory=set)
    cut: set[int] = dataclasses.field(default_factory=set)  # nodes whose passage was cut
    filtered: set[int] = dataclasses.field(default_factory=set)  # nodes that the filters drop
    first_decision: Decision | None = None
    notes: list[str] = dataclasses.field(default_factory=list)
    retrievals: int = 0
    prefilled: int = 0
    decoded: int = 0

    def passage_number(self, passage: Passage) -> int:
        """Where a passage stands among those offered; it is added if it is new."""
        for number, known in enumerate(self.passages):
            if (known.title, known.text) == (passage.title, passage.text):
                return number
        self.passages.append(passage)
        return len(self.passages) - 1

    def note(self, text: str) -> None:
        """Something the reader of the answer is told, once."""
        if text not in self.notes:
            self.notes.append(text)


@dataclasses.dataclass(frozen=True)
class Draft:
    """A candidate before it is generated."""

    suffix: tuple[int, ...]
    passage: int | None = None
    cut: bool = False


@dataclasses.dataclass(frozen=True)
class Row:
    """An unended path, and the lengths of its prefixes."""

    question: int
    path: Path
    decision: Decision
    start_length: int
    base_length: int
