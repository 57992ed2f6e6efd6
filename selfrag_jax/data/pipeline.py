"""Rows to batches with grain: shuffle, encode, pack, batch; the place in the stream is a small state that can be saved.

Consecutive rows that ask the same thing, or are variants of one row, form a group and are packed together where they
fit: then a passage or a value is all that differs, and a batch's gradient for the critique tokens is not drowned by
differences between questions. Every order is a function of the seed and of the
number of groups. A batch is a dictionary of arrays [B, T]:

    tokens, targets   int32   targets[t] is the token after tokens[t] in the same row
    loss_mask         bool    whether targets[t] is learnt
    segment_ids       int32   1, 2, … for the rows packed into a sequence; 0 for padding
    positions         int32   from 0 in every row
"""

import dataclasses
from typing import Any

import numpy as np

from selfrag_jax.config import DataConfig
from selfrag_jax.data.encode import Encoded, encode_row
from selfrag_jax.errors import UserError
from selfrag_jax.tokenizer import Tokenizer

_PACKING_BINS = 64  # sequences that are open at a time: more waste less, and take longer to fill the first batch
_KEYS = ("tokens", "targets", "loss_mask")
_PACKED = (*_KEYS, "part", "position")
_MAX_GROUP = 16


def example(encoded: Encoded) -> dict[str, np.ndarray]:
    """Inputs and targets of one row, shifted against each other: arrays one shorter than its ids."""
    ids = encoded.ids.astype(np.int32)
    return {"tokens": ids[:-1], "targets": ids[1:], "loss_mask": encoded.loss_mask[1:].astype(np.bool_)}


def joined(group: list[dict[str, np.ndarray]], length: int) -> list[dict[str, np.ndarray]]:
    """The examples of a group as one where they fit into `length` together, else each by itself.

    `part` numbers the rows in it from 0; `position` restarts in every row.
    """
    if not group:
        return []
    if len(group) > 1 and sum(len(row["tokens"]) for row in group) > length:
        return [one for row in group for one in joined([row], length)]
    sizes = [len(row["tokens"]) for row in group]
    whole = {key: np.concatenate([row[key] for row in group]) for key in _KEYS}
    part = np.repeat(np.arange(len(group), dtype=np.int32), sizes)
    return [whole | {"part": part, "position": np.concatenate([np.arange(n, dtype=np.int32) for n in sizes])}]


def padded(group: dict[str, np.ndarray], length: int) -> dict[str, np.ndarray]:
    """One group as a sequence of its own [T]."""
    size = len(group["tokens"])
    sequence = {key: np.pad(group[key], (0, length - size)) for key in _PACKED}
    return _named(sequence, (np.arange(length) < size).astype(np.int32))


def packed_names(packed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """grain numbers what it packed, group by group; the rows in a group are told apart by `part`."""
    return _named(packed, packed["tokens_segment_ids"])


def _named(arrays: dict[str, np.ndarray], group_T: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a batch, with rows numbered 1, 2, … in their order and 0 for padding."""
    row_T = group_T * _MAX_GROUP + arrays["part"]
    begins = np.diff(row_T, prepend=0) != 0
    segment_T = np.where(group_T > 0, np.cumsum(begins), 0).astype(np.int32)
    names = {key: arrays[key] for key in _KEYS} | {"segment_ids": segment_T, "positions": arrays["position"]}
    return names | {"loss_mask": names["loss_mask"].astype(np.bool_)}


def group_starts(source: Any) -> np.ndarray:
    """Where groups begin, and the number of rows at the end: of consecutive rows those that `_belong` to the first."""
    starts, first = [0], source[0]
    for i in range(1, len(source)):
        row = source[i]
        if not _belong(first, row) or i - starts[-1] == _MAX_GROUP:
            starts.append(i)
            first = row
    return np.array([*starts, len(source)])


def _belong(first: Any, row: Any) -> bool:
    """Whether a row asks what the first of its group asks, or is a variant of it: of one id but for what follows a "#",
    and of a dataset named after the first's ("demo_short", "demo_short_irrelevant")."""
    if (row.instruction, row.input) == (first.instruction, first.input):
        return True
    same_id = "#" in row.id and row.id.rpartition("#")[0] == first.id.rpartition("#")[0]
    return same_id and row.dataset_name.startswith(f"{first.dataset_name}_")


class _Groups:
    """Random access to the groups of a source of rows."""

    def __init__(self, source: Any):
        self._source, self._starts = source, group_starts(source)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, index: int) -> list[Any]:
        return [self._source[i] for i in range(self._starts[index], self._starts[index + 1])]

    def __repr__(self) -> str:
        return f"Groups({self._source!r})"  # grain compares it when an iterator's state is restored


@dataclasses.dataclass(frozen=True)
class _Encode:
    """A group of rows → its examples, without rows that have nothing to learn within the length.

    Without `pack` every row is an example of its own.
    """

    tokenizer: Tokenizer
    length: int
    mask: str
    pack: bool

    def __call__(self, group: list[Any]) -> list[dict[str, np.ndarray]]:
        made = [example(encode_row(row, self.tokenizer, max_length=self.length + 1, mask=self.mask)) for row in group]
        return joined([one for one in made if one["loss_mask"].any()], self.length if self.pack else 0)


def survey(source: Any, tokenizer: Tokenizer, config: DataConfig, most: int = 1000) -> tuple[float, float]:
    """Of up to `most` rows, spread over the source: the shares that are cut at the sequence length, and that have
    nothing learnt within it (such rows are left out).

    Raises UserError where no row has anything to learn: a stream of such rows would never yield a batch.
    """
    rows = [source[int(i)] for i in np.linspace(0, len(source) - 1, min(most, len(source)))]
    made = [encode_row(row, tokenizer, max_length=config.sequence_length + 1, mask=config.mask) for row in rows]
    empty = sum(not one.loss_mask[1:].any() for one in made) / len(made)
    if empty == 1:
        raise UserError(f"no row has anything to learn within data.sequence_length={config.sequence_length}; raise it")
    return sum(one.truncated for one in made) / len(made), empty


def batches(
    source: Any,
    tokenizer: Tokenizer,
    config: DataConfig,
    *,
    seed: int,
    shard: tuple[int, int] = (0, 1),
) -> Any:
    """An endless grain iterator over batches; groups are shuffled anew in every epoch.

    Args:
        source: random access to `Row`s.
        config: `sequence_length` is T; `batch_size` B is the whole batch over all hosts.
        seed: of the order.
        shard: (this host, hosts); every host gets its own groups and B / hosts sequences of each batch.

    Returns:
        An iterator with `get_state` and `set_state`, which `checkpoint` saves.
    """
    import grain

    length = config.sequence_length
    groups = grain.MapDataset.source(_Groups(source))[shard[0] :: shard[1]]
    groups = groups.seed(seed).shuffle().repeat().map(_Encode(tokenizer, length, config.mask, config.pack))
    stream = groups.to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=64))
    stream = grain.experimental.FlatMapIterDataset(stream, _flattening(grain))
    if config.pack:
        stream = grain.experimental.FirstFitPackIterDataset(
            stream,
            length_struct=dict.fromkeys(_PACKED, length),
            num_packing_bins=_PACKING_BINS,
            seed=seed,
            shuffle_bins=True,
        ).map(packed_names)
    else:
        stream = stream.map(lambda row: padded(row, length))
    return iter(stream.batch(config.batch_size // shard[1], drop_remainder=True))


def _flattening(grain: Any) -> Any:
    """A list of examples → the examples, one after the other."""

    class Flatten(grain.experimental.FlatMapTransform):
        max_fan_out = _MAX_GROUP

        def flat_map(self, element: list[Any]) -> list[Any]:
            return element

    return Flatten()
