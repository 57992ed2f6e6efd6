"""Rows to batches with grain: shuffle, encode, pack, batch; the place in the stream is a small state that can be saved.

Every order is a function of the seed and of the number of rows. A batch is a dictionary of arrays [B, T]:

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
from selfrag_jax.tokenizer import Tokenizer

_PACKING_BINS = 64  # sequences that are open at a time: more waste less, and take longer to fill the first batch
_KEYS = ("tokens", "targets", "loss_mask")


def example(encoded: Encoded) -> dict[str, np.ndarray]:
    """Inputs and targets of one row, shifted against each other: arrays one shorter than its ids."""
    ids = encoded.ids.astype(np.int32)
    return {"tokens": ids[:-1], "targets": ids[1:], "loss_mask": encoded.loss_mask[1:].astype(np.bool_)}


def padded(row: dict[str, np.ndarray], length: int) -> dict[str, np.ndarray]:
    """One row as a sequence of its own [T]."""
    size = len(row["tokens"])
    sequence = {key: np.pad(row[key], (0, length - size)) for key in _KEYS}
    order = np.arange(length, dtype=np.int32)
    used = order < size
    return sequence | {"segment_ids": used.astype(np.int32), "positions": np.where(used, order, 0)}


def packed_names(packed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """grain names segments and positions after each feature; ours have one of each."""
    names = {key: packed[key] for key in _KEYS}
    names["loss_mask"] = names["loss_mask"].astype(np.bool_)
    return names | {"segment_ids": packed["tokens_segment_ids"], "positions": packed["tokens_positions"]}


@dataclasses.dataclass(frozen=True)
class _Encode:
    """Row → example, or None where the row has nothing to learn within the length."""

    tokenizer: Tokenizer
    length: int
    mask: str

    def __call__(self, row: Any) -> dict[str, np.ndarray] | None:
        made = example(encode_row(row, self.tokenizer, max_length=self.length + 1, mask=self.mask))
        return made if made["loss_mask"].any() else None


def batches(
    source: Any,
    tokenizer: Tokenizer,
    config: DataConfig,
    *,
    seed: int,
    shard: tuple[int, int] = (0, 1),
) -> Any:
    """An endless grain iterator over batches; rows are shuffled anew in every epoch.

    Args:
        source: random access to `Row`s.
        config: `sequence_length` is T; `batch_size` B is the whole batch over all hosts.
        seed: of the order.
        shard: (this host, hosts); every host gets its own rows and B / hosts sequences of each batch.

    Returns:
        An iterator with `get_state` and `set_state`, which `checkpoint` saves.
    """
    import grain

    length = config.sequence_length
    rows = grain.MapDataset.source(source)[shard[0] :: shard[1]]
    rows = rows.seed(seed).shuffle().repeat().map(_Encode(tokenizer, length, config.mask)).filter(_is_kept)
    stream = rows.to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=64))
    if config.pack:
        stream = grain.experimental.FirstFitPackIterDataset(
            stream,
            length_struct=dict.fromkeys(_KEYS, length),
            num_packing_bins=_PACKING_BINS,
            seed=seed,
            shuffle_bins=True,
        ).map(packed_names)
    else:
        stream = stream.map(lambda row: padded(row, length))
    return iter(stream.batch(config.batch_size // shard[1], drop_remainder=True))


def _is_kept(row: Any) -> bool:
    return row is not None
