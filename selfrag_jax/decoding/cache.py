"""Key/value caches: one prefix per row, shared by its candidates, and one suffix per candidate.

What is cached for one sequence is k and v over layers L, positions S, key/value heads K and head size C. A row is one
hypothesis of one question; its candidates (one per passage) share the row's prefix and own a suffix:

    prefix   | 0 … length-1 |                       positions 0 … length-1
    suffix   | passage, bucket P | generated, M |   positions length+j, and length+suffix_len+t for the t-th token

Every candidate's t-th generated token lies at the one common index P+t, whatever its passage's length: with an index
of its own, each write would be a scatter. The hole between a short passage and P is masked.

In memory the axes stand in the order of these two strings; R rows and N candidates are the axes that `vmap` maps. The
order was chosen with benchmarks/decode_step.py: with the layers outermost XLA keeps a second copy.

Shape letters: R rows, N candidates, L layers, S cache length, P passage bucket, M new tokens, K kv heads, C head size,
T tokens, H heads, D model.
"""

import dataclasses

import jax
import jax.numpy as jnp

from selfrag_jax.models import attention
from selfrag_jax.models.llama import Attend
from selfrag_jax.models.llama_config import LlamaConfig

PREFIX_ORDER = "RLKSC"
SUFFIX_ORDER = "RNLKSC"


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Prefix:
    """What has been read so far, for every row: the cache, how much of it is filled, and the last hidden state."""

    k: jax.Array  # in PREFIX_ORDER
    v: jax.Array
    length_R: jax.Array  # int32 [R]
    last_RD: jax.Array  # hidden state after the final norm, at the last position

    @property
    def rows(self) -> int:
        return self.length_R.shape[0]

    @property
    def size(self) -> int:
        """S, the positions that the cache has room for."""
        return self.k.shape[PREFIX_ORDER.index("S")]


def shape(config: LlamaConfig, order: str, **sizes: int) -> tuple[int, ...]:
    """The shape of a cache whose axes stand in `order`; R, N and S as keywords."""
    sizes = sizes | {"L": config.num_layers, "K": config.num_kv_heads, "C": config.head_dim}
    return tuple(sizes[axis] for axis in order)


def empty_prefix(config: LlamaConfig, rows: int, size: int, dtype: jnp.dtype) -> Prefix:
    """A prefix of length 0 in every row."""
    room = shape(config, PREFIX_ORDER, R=rows, S=size)
    last_RD = jnp.zeros((rows, config.hidden_size), dtype)
    return Prefix(jnp.zeros(room, dtype), jnp.zeros(room, dtype), jnp.zeros(rows, jnp.int32), last_RD)


def empty_suffix(
    config: LlamaConfig, rows: int, candidates: int, size: int, dtype: jnp.dtype, order: str = SUFFIX_ORDER
) -> tuple[jax.Array, jax.Array]:
    """k and v for suffixes of `size` = P + M positions."""
    room = shape(config, order, R=rows, N=candidates, S=size)
    return jnp.zeros(room, dtype), jnp.zeros(room, dtype)


def vmap_axes(order: str) -> tuple[int, int]:
    """`in_axes` of the cache for the outer `vmap` over rows and, inside it, the one over candidates."""
    return order.index("R"), order.replace("R", "").index("N") if "N" in order else -1


def _single(order: str) -> str:
    """The order of the axes once rows and candidates are mapped away."""
    return order.replace("R", "").replace("N", "")


def write(cache: jax.Array, new_TKC: jax.Array, layer: jax.Array, start: jax.Array, order: str) -> jax.Array:
    """One sequence's cache with keys or values of T tokens put at `layer`, `start`."""
    axes = _single(order)
    new = new_TKC.transpose(["TKC".index(axis.replace("S", "T")) for axis in axes if axis != "L"])
    new = jnp.expand_dims(new, axes.index("L")).astype(cache.dtype)
    return jax.lax.dynamic_update_slice(cache, new, [{"L": layer, "S": start}.get(axis, 0) for axis in axes])


def read(cache: jax.Array, layer: jax.Array, order: str) -> jax.Array:
    """One sequence's keys or values of `layer`, [S, K, C]."""
    axes = _single(order)
    one = jax.lax.dynamic_index_in_dim(cache, layer, axes.index("L"), keepdims=False)
    axes = axes.replace("L", "")
    return one.transpose([axes.index(axis) for axis in "SKC"])


def attend_block(k_prefix, v_prefix, length, positions_T, start, order: str, window: int) -> Attend:
    """Attention of T new tokens to one row's prefix and to each other; they are written to the carried (k, v).

    Args:
        k_prefix, v_prefix: one row's cache, of which the first `length` positions are filled; None where the carried
            cache is the prefix itself.
        length: int32 scalar.
        positions_T: of the new tokens; they are consecutive.
        start: where they go in the carried cache, whose axes stand in `order`.
        window: the model's sliding window, 0 for none.
    """
    block_mask_TT = attention.causal_mask(positions_T, positions_T, window)

    def attend_layer(q_THC, k_TKC, v_TKC, layer, cache):
        k_cache, v_cache = cache
        k_read, v_read = (k_cache, v_cache) if k_prefix is None else (k_prefix, v_prefix)
        prefix = _attend_prefix(q_THC, k_read, v_read, layer, length, positions_T, window)
        block = attention.attend(q_THC, k_TKC, v_TKC, block_mask_TT)
        cache = write(k_cache, k_TKC, layer, start, order), write(v_cache, v_TKC, layer, start, order)
        return attention.merge([prefix, block]), cache

    return attend_layer


def attend_step(k_prefix, v_prefix, length, suffix_len, bucket: int, t, order: str, window: int) -> Attend:
    """Attention of one generated token, the t-th, to its row's prefix and its candidate's suffix (the carried k, v).

    Args:
        k_prefix, v_prefix, length: the row's prefix.
        suffix_len: how many positions of the passage bucket are filled.
        bucket: P.
        t: int32 scalar, common to all candidates.
    """

    def attend_layer(q_1HC, k_1KC, v_1KC, layer, cache):
        k_cache = write(cache[0], k_1KC, layer, bucket + t, order)
        v_cache = write(cache[1], v_1KC, layer, bucket + t, order)
        k_SKC, v_SKC = read(k_cache, layer, order), read(v_cache, layer, order)
        index_S = jnp.arange(k_SKC.shape[0])
        passage_S = index_S < suffix_len
        generated_S = (index_S >= bucket) & (index_S <= bucket + t)
        positions_S = length + jnp.where(index_S < bucket, index_S, suffix_len + index_S - bucket)
        position_1 = (length + suffix_len + t)[None]
        mask_1S = (passage_S | generated_S) & attention.causal_mask(position_1, positions_S, window)
        prefix = _attend_prefix(q_1HC, k_prefix, v_prefix, layer, length, position_1, window)
        return attention.merge([prefix, attention.attend(q_1HC, k_SKC, v_SKC, mask_1S)]), (k_cache, v_cache)

    return attend_layer


def _attend_prefix(q_THC, k_prefix, v_prefix, layer, length, positions_T, window):
    k_SKC, v_SKC = read(k_prefix, layer, PREFIX_ORDER), read(v_prefix, layer, PREFIX_ORDER)
    index_S = jnp.arange(k_SKC.shape[0])
    mask_TS = (index_S < length) & attention.causal_mask(positions_T, index_S, window)
    return attention.attend(q_THC, k_SKC, v_SKC, mask_TS)
