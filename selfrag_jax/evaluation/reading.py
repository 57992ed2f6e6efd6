"""What a model says of labelled rows: one forward pass a row, read where a reflection token stands.

The probability of each token of the group, normalised inside it, given everything before the token: the same reading
that decoding scores by, without generating anything.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from selfrag_jax.data.encode import encode_row
from selfrag_jax.data.rows import Row
from selfrag_jax.decoding import buckets
from selfrag_jax.decoding.model import Model
from selfrag_jax.errors import UserError
from selfrag_jax.models import attention, llama
from selfrag_jax.models.llama_config import LlamaConfig
from selfrag_jax.reflection import GROUPS
from selfrag_jax.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True)
class Item:
    """One token to be read: what comes before it, and which of its group stands there."""

    row_id: str
    context: tuple[int, ...]
    group: str
    gold: int  # index into the group


def items_of(row: Row, group: str, tokenizer: Tokenizer) -> list[Item]:
    """Every token of the group in the row. Raises UserError for a row longer than the model's context allows."""
    ids = encode_row(row, tokenizer, max_length=1 << 30).ids
    wanted = list(tokenizer.reflection.group(group))
    return [
        Item(row.id, tuple(map(int, ids[:place])), group, wanted.index(token))
        for place, token in enumerate(ids.tolist())
        if token in wanted
    ]


@functools.partial(jax.jit, static_argnames="config")
def _logits_after(params, tokens_BT: jax.Array, last_B: jax.Array, config: LlamaConfig) -> jax.Array:
    """Scores [B, V] after position `last_B` of each row."""
    positions_BT = jnp.broadcast_to(jnp.arange(tokens_BT.shape[1]), tokens_BT.shape)
    mask_BTT = attention.causal_mask(positions_BT, positions_BT, config.sliding_window)
    x_BTD, _ = llama.forward(params, config, tokens_BT, positions_BT, llama.attend_without_cache(mask_BTT))
    return llama.logits(params, config, jnp.take_along_axis(x_BTD, last_B[:, None, None], 1)[:, 0])


def read(model: Model, items: Sequence[Item], rows: int) -> list[dict[str, Any]]:
    """For each item its probabilities, the likeliest token and the one that stands there.

    Args:
        items: of one bucket of lengths (`bucket`), so that the shape is that of any other such call.
        rows: B, the rows of the call; fewer items are padded with empty ones.
    """
    width = max(map(bucket, items))
    tokens, last = np.zeros((rows, width), np.int32), np.zeros(rows, np.int32)
    for number, item in enumerate(items):
        if len(item.context) > model.config.max_positions:
            raise UserError(f"row {item.row_id} has {len(item.context)} tokens, more than the model's context")
        tokens[number, : len(item.context)], last[number] = item.context, len(item.context) - 1
    logits = np.asarray(_logits_after(model.params, tokens, last, model.config), np.float64)
    found: list[dict[str, Any]] = []
    for item, row in zip(items, logits, strict=False):
        scores = row[list(model.ids.group(item.group))]
        weights = np.exp(scores - scores.max())
        names = GROUPS[item.group]
        found.append({
            "id": item.row_id, "group": item.group, "gold": names[item.gold], "said": names[int(scores.argmax())],
            "probabilities": [round(float(p), 6) for p in weights / weights.sum()],
        })  # fmt: skip
    return found


def bucket(item: Item) -> int:
    """The length that the item's row is padded to."""
    return buckets.fit(len(item.context), buckets.SUFFIXES)
