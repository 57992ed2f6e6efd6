"""What decoding asks of a retriever, and all that it knows of one."""

import dataclasses
from typing import Protocol


@dataclasses.dataclass(frozen=True, slots=True)
class Passage:
    """A passage to answer from; `score` is the retriever's, higher is better, 0 where the source gives none."""

    id: str
    title: str
    text: str
    score: float = 0.0


class Retriever(Protocol):
    """Anything that finds passages: an index, a fixed list, a search engine."""

    def retrieve(self, queries: list[str], k: int) -> list[list[Passage]]:
        """For each query at most k passages, best first; fewer where fewer exist."""
        ...
