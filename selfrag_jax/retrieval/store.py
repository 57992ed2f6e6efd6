"""Passages on disk by row number: one line each in `passages.jsonl`, and where each line starts.

Both files are memory-mapped, so opening costs the same for ten passages and for millions.
"""

import json
import mmap
import pathlib
from collections.abc import Iterable

import numpy as np

from selfrag_jax.retrieval.corpus import CorpusPassage

PASSAGES = "passages.jsonl"
OFFSETS = "passages.offsets.npy"


def write_store(passages: Iterable[CorpusPassage], directory: pathlib.Path) -> None:
    """Writes the two files into an existing directory."""
    offsets = [0]
    with (directory / PASSAGES).open("wb") as file:
        for passage in passages:
            offsets.append(offsets[-1] + file.write(passage.to_line()))
    np.save(directory / OFFSETS, np.asarray(offsets, np.int64), allow_pickle=False)


class PassageStore:
    """Read access by row: `store[row]`, `len(store)`."""

    def __init__(self, directory: pathlib.Path):
        """Opens what `write_store` wrote."""
        self._offsets = np.load(directory / OFFSETS, mmap_mode="r", allow_pickle=False)
        with (directory / PASSAGES).open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, row: int) -> CorpusPassage:
        if not 0 <= row < len(self):
            raise IndexError(row)
        return CorpusPassage(*json.loads(self._bytes[self._offsets[row] : self._offsets[row + 1]]))
