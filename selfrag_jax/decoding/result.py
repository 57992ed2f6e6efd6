"""What an answer is, as data: the text, what it rests on, and every candidate that was considered.

`VERSION` goes up when a field changes its meaning; fields are only ever added. Everything but `timings` is the same
whenever the same question is decoded in the same batch shape.
"""

import dataclasses
import json
from typing import Any

VERSION = 1


@dataclasses.dataclass(frozen=True)
class CitedPassage:
    """A passage that the answer cites; numbers count from 1 in the order of first use."""

    number: int
    id: str
    title: str
    text: str
    score: float


@dataclasses.dataclass(frozen=True)
class Sentence:
    """One sentence of the answer with the numbers of the passages it cites (none where it is not supported)."""

    text: str
    citations: tuple[int, ...]
    segment: int


@dataclasses.dataclass(frozen=True)
class Group:
    """One critique group as it was read: probabilities normalised over its tokens, the greedy one, and s_G."""

    probabilities: dict[str, float]
    greedy: str
    score: float
    inherited: bool = False
    forced: bool = False  # its token was not written: read where it should have stood


@dataclasses.dataclass(frozen=True)
class Choice:
    """A Retrieve decision and its numbers (`scoring.Decision`)."""

    action: str  # retrieve | continue | none | text
    probabilities: dict[str, float]
    ratio: float
    mass: float
    greedy: str


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One candidate segment: a node of the tree."""

    node: int
    parent: int | None
    depth: int
    decision: Choice
    passage: int | None  # index into `Result.passages`: put in before the segment, or still in force
    passage_cut: bool  # the passage was cut to the room left
    text: str
    output: str  # the text with its reflection tokens
    tokens: tuple[int, ...]
    first_term: float
    isrel: Group | None
    issup: Group | None
    isuse: Group | None
    path_score: float
    kept: bool
    filtered: bool  # the filters drop it; kept all the same where they would have dropped every candidate
    ended: str  # "" | eos | budget | segment | depth | context


@dataclasses.dataclass(frozen=True)
class OfferedPassage:
    """A passage that stood before some candidate."""

    id: str
    title: str
    text: str
    score: float


@dataclasses.dataclass(frozen=True)
class FinalPath:
    """A path in the last beam: its nodes and its score."""

    nodes: tuple[int, ...]
    score: float


@dataclasses.dataclass(frozen=True)
class Counts:
    """How much work the answer took; padding is not counted."""

    retrievals: int
    prefilled_tokens: int
    decoded_tokens: int


@dataclasses.dataclass(frozen=True)
class Segment:
    """One segment of an answer that is still being made."""

    node: int
    text: str  # what it adds to `Result.cited_text`, space before it included
    citations: tuple[CitedPassage, ...]  # those that it is the first to cite


@dataclasses.dataclass(frozen=True)
class Result:
    """An answer and how it came about."""

    instruction: str
    input: str
    text: str
    cited_text: str  # the text with `[n]` in every supported sentence
    sentences: tuple[Sentence, ...]
    citations: tuple[CitedPassage, ...]
    segments: tuple[int, ...]  # the nodes that the answer consists of
    passages: tuple[OfferedPassage, ...]
    tree: tuple[Candidate, ...]
    paths: tuple[FinalPath, ...]  # best first
    first_decision: Choice
    counts: Counts
    notes: tuple[str, ...] = ()
    option: str | None = None  # of a closed question: the label with the largest sum, of which `text` is the best path
    options: dict[str, float] = dataclasses.field(default_factory=dict)  # the sum of path scores for each label named
    version: int = VERSION
    timings: dict[str, float] = dataclasses.field(default_factory=dict)  # seconds; of the whole call

    def __str__(self) -> str:
        """For people: what `decode.py` prints."""
        from selfrag_jax.decoding.render import render  # which is about this module

        return render(self)

    def to_dict(self, *, timings: bool = False) -> dict[str, Any]:
        """Plain dictionaries and lists; without the timings unless asked, so that it is reproducible."""
        plain = dataclasses.asdict(self)
        if not timings:
            del plain["timings"]
        return plain

    def to_json(self, *, timings: bool = False, indent: int | None = None) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(timings=timings), ensure_ascii=False, indent=indent)
