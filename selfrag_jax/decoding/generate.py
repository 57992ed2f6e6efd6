"""What runs on the device: reading tokens onto prefixes, reading passages against them, and the greedy loop.

`extend`, `prefill` and `decode` are jitted; every shape is a bucket (`buckets.py`). Only the model step is mapped over
candidates and rows; the loop around it is one `while_loop`, because a mapped loop would select over the whole cache
at every step. From every position a few numbers leave the device: the greedy token, its log-probability, the 13
reflection logits and the log-normaliser.

Shape letters: R rows, N candidates, T tokens, P passage bucket, M new tokens, D model, V vocabulary.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from selfrag_jax.decoding import cache
from selfrag_jax.decoding.cache import PREFIX_ORDER, SUFFIX_ORDER, Prefix
from selfrag_jax.models import llama
from selfrag_jax.models.llama_config import LlamaConfig

Params = dict[str, Any]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Readout:
    """What is kept of the distribution at one position (leading axes as the context says)."""

    token: Any  # int32: the greedy token
    logprob: Any  # float32: its log-probability
    reflection: Any  # float32 [..., 13]: logits in the order of `reflection.REFLECTION`
    log_norm: Any  # float32: the log of the softmax's denominator


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Control:
    """The ids that the loop must know."""

    reflection_13: Any  # int32 [13]
    stop_4: Any  # int32 [4]: the tokens that end a segment: the Retrieve group and the end of sequence


def control(reflection_ids, eos_id: int, stop_at: str = "retrieve") -> Control:
    """From `tokenizer.reflection` and `tokenizer.eos_id`; `stop_at` as in `DecodeConfig`."""
    stops = [*reflection_ids.group("retrieve"), eos_id] if stop_at == "retrieve" else [eos_id] * 4
    return Control(reflection_ids.array, np.array(stops, np.int32))


def _read_out(params: Params, config: LlamaConfig, last_D: jax.Array, ids: Control) -> Readout:
    logits_V = llama.logits(params, config, last_D)
    log_norm = jax.nn.logsumexp(logits_V)
    token = jnp.argmax(logits_V).astype(jnp.int32)
    return Readout(token, logits_V[token] - log_norm, logits_V[ids.reflection_13], log_norm)


@functools.partial(jax.jit, static_argnames=("config", "size"))
def extend(
    params: Params, prefix: Prefix, parents_R, tokens_RT, counts_R, ids: Control, *, config: LlamaConfig, size: int
) -> tuple[Prefix, Readout]:
    """Read tokens onto prefixes.

    Args:
        prefix: the rows to go on from.
        parents_R: int32; row r of the result goes on from row parents[r].
        tokens_RT: int32, padded on the right.
        counts_R: how many of each row's T tokens are real; 0 leaves the row as it was.
        size: positions in the new cache; at least every length + T.

    Returns:
        The prefixes with the tokens in them, and the readout [R] at their last positions.
    """

    def row(k, v, length, last_D, tokens_T, count):
        grow = [(0, size - k.shape[axis] if letter == "S" else 0) for axis, letter in enumerate(PREFIX_ORDER[1:])]
        k, v = jnp.pad(k, grow), jnp.pad(v, grow)
        positions_T = length + jnp.arange(tokens_T.shape[0])
        attend = cache.attend_block(None, None, length, positions_T, length, PREFIX_ORDER, config.sliding_window)
        x_TD, (k, v) = llama.forward(params, config, tokens_T, positions_T, attend, (k, v))
        last_D = jnp.where(count > 0, x_TD[jnp.maximum(count - 1, 0)], last_D)
        return Prefix(k, v, length + count, last_D), _read_out(params, config, last_D, ids)

    old = jax.tree.map(lambda leaf: leaf[parents_R], prefix)
    return jax.vmap(row)(old.k, old.v, old.length_R, old.last_RD, tokens_RT, counts_R)


@jax.jit
def choose(mask_R, first: Prefix, second: Prefix) -> Prefix:
    """Row by row `first` where the mask is true, else `second`; both of one size."""
    rows = lambda leaf: mask_R.reshape(-1, *[1] * (leaf.ndim - 1))  # noqa: E731
    return jax.tree.map(lambda a, b: jnp.where(rows(a), a, b), first, second)


@jax.jit
def take(prefix: Prefix, rows_R) -> Prefix:
    """The rows of these numbers, in their order."""
    return jax.tree.map(lambda leaf: leaf[rows_R], prefix)


@functools.partial(jax.jit, static_argnames=("config", "order"), donate_argnames=("k_cache", "v_cache"))
def prefill(
    params: Params,
    prefix: Prefix,
    tokens_RNP,
    suffix_len_RN,
    k_cache: jax.Array,
    v_cache: jax.Array,
    *,
    config: LlamaConfig,
    order: str = SUFFIX_ORDER,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Read every candidate's suffix against its row's prefix, which is shared and never copied.

    Args:
        tokens_RNP: int32, padded on the right.
        suffix_len_RN: real tokens; 0 makes a candidate that goes on from the prefix itself.
        k_cache, v_cache: empty suffix caches with their axes in `order`; donated.

    Returns:
        The hidden state [R, N, D] from which the first new token is read, and the filled caches.
    """

    def candidate(params, k_prefix, v_prefix, length, prefix_last_D, tokens_P, suffix_len, k, v):
        positions_P = length + jnp.arange(tokens_P.shape[0])
        attend = cache.attend_block(k_prefix, v_prefix, length, positions_P, 0, order, config.sliding_window)
        x_PD, (k, v) = llama.forward(params, config, tokens_P, positions_P, attend, (k, v))
        last_D = jnp.where(suffix_len > 0, x_PD[jnp.maximum(suffix_len - 1, 0)], prefix_last_D)
        return last_D, k, v

    row_axis, candidate_axis = cache.vmap_axes(order)
    over_candidates = jax.vmap(
        candidate,
        in_axes=(None, None, None, None, None, 0, 0, candidate_axis, candidate_axis),
        out_axes=(0, candidate_axis, candidate_axis),
    )
    over_rows = jax.vmap(
        over_candidates, in_axes=(None, 0, 0, 0, 0, 0, 0, row_axis, row_axis), out_axes=(0, row_axis, row_axis)
    )
    return over_rows(
        params, prefix.k, prefix.v, prefix.length_R, prefix.last_RD, tokens_RNP, suffix_len_RN, k_cache, v_cache
    )


@functools.partial(
    jax.jit, static_argnames=("config", "bucket", "max_new", "order"), donate_argnames=("k_cache", "v_cache")
)
def decode(
    params: Params,
    prefix: Prefix,
    last_RND: jax.Array,
    suffix_len_RN,
    valid_RN,
    budget_RN,
    ids: Control,
    k_cache: jax.Array,
    v_cache: jax.Array,
    *,
    config: LlamaConfig,
    bucket: int,
    max_new: int,
    order: str = SUFFIX_ORDER,
) -> tuple[Readout, jax.Array, jax.Array, jax.Array]:
    """Greedy tokens for every candidate, until each has ended: a Retrieve token, the end of sequence, or its budget.

    Args:
        last_RND, k_cache, v_cache: from `prefill`; the caches are donated.
        valid_RN: False for padding, which is taken as ended from the start.
        budget_RN: int32, 1 … max_new.
        bucket, max_new: P and M; the caches hold P + M positions.

    Returns:
        The readout [R, N, M] of every position, the number of tokens [R, N] (the closing one included; what lies
        beyond in the readout means nothing), and the caches.
    """
    read_out = jax.vmap(jax.vmap(lambda params, x_D: _read_out(params, config, x_D, ids), (None, 0)), (None, 0))

    def step(params, k_prefix, v_prefix, length, token, suffix_len, t, k, v):
        attend = cache.attend_step(k_prefix, v_prefix, length, suffix_len, bucket, t, order, config.sliding_window)
        position_1 = (length + suffix_len + t)[None]
        x_1D, (k, v) = llama.forward(params, config, token[None], position_1, attend, (k, v))
        return x_1D[0], k, v

    row_axis, candidate_axis = cache.vmap_axes(order)
    step = jax.vmap(
        step,
        in_axes=(None, None, None, None, 0, 0, None, candidate_axis, candidate_axis),
        out_axes=(0, candidate_axis, candidate_axis),
    )
    step = jax.vmap(step, in_axes=(None, 0, 0, 0, 0, 0, None, row_axis, row_axis), out_axes=(0, row_axis, row_axis))

    def put(kept, new, t):
        return jax.tree.map(lambda a, x: jax.lax.dynamic_update_index_in_dim(a, x, t, 2), kept, new)

    def running(new, t, counts_RN):
        stopped = jnp.any(new.token[..., None] == ids.stop_4, axis=-1)
        return (counts_RN == t + 1) & ~stopped & (t + 1 < budget_RN)

    def body(carry):
        t, running_RN, kept, counts_RN, k, v = carry
        tokens_RN = jax.lax.dynamic_index_in_dim(kept.token, t - 1, 2, keepdims=False)
        # The token chosen last is read at its index; from what comes out the t-th is chosen.
        x_RND, k, v = step(params, prefix.k, prefix.v, prefix.length_R, tokens_RN, suffix_len_RN, t - 1, k, v)
        new = read_out(params, x_RND)
        counts_RN = jnp.where(running_RN, t + 1, counts_RN)
        return t + 1, running(new, t, counts_RN), put(kept, new, t), counts_RN, k, v

    first = read_out(params, last_RND)
    kept = jax.tree.map(lambda x: jnp.zeros((*x.shape[:2], max_new, *x.shape[2:]), x.dtype), first)
    counts_RN = jnp.where(valid_RN, 1, 0).astype(jnp.int32)
    start = (jnp.int32(1), running(first, 0, counts_RN), put(kept, first, 0), counts_RN, k_cache, v_cache)
    _, _, kept, counts_RN, k, v = jax.lax.while_loop(lambda carry: jnp.any(carry[1]), body, start)
    return kept, counts_RN, k, v


def compilations() -> dict[str, int]:
    """How many shapes each device function has been compiled for in this process."""
    functions: dict[str, Any] = {"extend": extend, "choose": choose, "take": take, "prefill": prefill, "decode": decode}
    return {name: function._cache_size() for name, function in functions.items()}
