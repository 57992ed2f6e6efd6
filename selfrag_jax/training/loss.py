"""Masked next-token cross-entropy that scores the vocabulary only where something is learnt.

Most positions of a batch carry no loss (prompts, passages, padding), and the vocabulary is the widest matrix of all.
The learnt positions are therefore gathered and scored in chunks of a fixed size; the number of chunks follows the
batch, so nothing is ever dropped and nothing is computed for an empty chunk. The gradient is formed in the same pass,
chunk by chunk, so neither the scores nor their gradient ever exist for the whole batch:

    L = Σ_n (logsumexp_v z_nv − z_n,y_n),   z = h Wᵀ,   dL/dz = softmax(z) − onehot(y),   dL/dh = dL/dz W.

Everything is a sum over learnt tokens, with their count beside it: whoever adds up microbatches divides once, at the
end.

Shape letters: B batch, T tokens, D model, V vocabulary rows, N gathered positions, Q positions in a chunk, G
kinds.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from selfrag_jax.models.linear import TokenRows

CHUNK = 256


class Sums(NamedTuple):
    """Totals over learnt tokens, for the batch and for each kind of token (float32)."""

    loss: jax.Array  # [] Σ of −log p(target), in nats
    learnt: jax.Array  # [] how many there are
    kind_loss: jax.Array  # [G]
    kind_correct: jax.Array  # [G] targets that have the highest score of all
    kind_count: jax.Array  # [G]


def cross_entropy(
    hidden_BTD: jax.Array,
    head: Any,
    targets_BT: jax.Array,
    mask_BT: jax.Array,
    kinds_V: jax.Array,
    num_kinds: int,
    vocab_size: int,
    *,
    train_head: bool = True,
    chunk: int = CHUNK,
) -> Sums:
    """Sum of the cross-entropy over the learnt positions of a batch.

    Args:
        hidden_BTD: after the final norm, any float type; scores and sums are float32.
        head: a table [V, D] or `TokenRows`, of which only the rows receive a gradient.
        targets_BT: int32; what is to be predicted at each position.
        mask_BT: True where it is learnt.
        kinds_V: int32 [V]; the kind of each token id, for the sums by kind.
        num_kinds: G.
        vocab_size: rows of the table from here on are padding and take no part in the softmax.
        train_head: False: the head is frozen and no gradient is formed for it.
        chunk: positions scored at a time.

    Returns:
        The sums. Only `loss` has a gradient, with respect to `hidden_BTD` and the trained part of `head`.
    """
    hidden_ND = hidden_BTD.reshape(-1, hidden_BTD.shape[-1])
    chunk = min(chunk, hidden_ND.shape[0])
    args = (jnp.ravel(targets_BT), jnp.ravel(mask_BT), jnp.asarray(kinds_V))
    return _gathered(hidden_ND, head, args, num_kinds, vocab_size, train_head, chunk)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4, 5, 6))
def _gathered(hidden_ND, head, args, num_kinds, vocab_size, train_head, chunk):
    return _loop(hidden_ND, head, args, num_kinds, vocab_size, train_head, chunk, with_grad=False)[0]


def _forward(hidden_ND, head, args, num_kinds, vocab_size, train_head, chunk):
    return _loop(hidden_ND, head, args, num_kinds, vocab_size, train_head, chunk, with_grad=True)


def _backward(num_kinds, vocab_size, train_head, chunk, grads, cotangent):
    d_hidden, d_head, make_head = grads[0], grads[1], grads[2]
    scale = cotangent.loss
    d_head = None if d_head is None else (d_head * scale).astype(d_head.dtype)
    if d_head is not None and make_head.start >= 0:
        d_head = TokenRows(None, d_head, make_head.start)  # pyright: ignore[reportArgumentType]
    return (d_hidden * scale).astype(d_hidden.dtype), d_head, None


@jax.tree_util.register_static
class _Trained(NamedTuple):
    """Where the trained rows of the head begin; -1: the whole table is trained."""

    start: int


def _loop(hidden_ND, head, args, num_kinds, vocab_size, train_head, chunk, *, with_grad):
    """Walk the learnt positions chunk by chunk → (sums, residuals of the backward pass)."""
    targets_N, mask_N, kinds_V = args
    N = hidden_ND.shape[0]
    learnt = jnp.sum(mask_N, dtype=jnp.int32)
    # Positions of the learnt tokens, in order; N beyond them, which a gather fills with zeros and a scatter drops.
    where_N = jnp.nonzero(mask_N, size=-(-N // chunk) * chunk, fill_value=N)[0].astype(jnp.int32)
    rows = isinstance(head, TokenRows)
    trained = _Trained(head.start if rows else -1)
    # One dense table for the step: a copy of V × D is small beside scoring, and both products then read one array.
    table_VD = (
        jax.lax.dynamic_update_slice_in_dim(head.base, head.rows.astype(head.base.dtype), head.start, 0)
        if rows
        else head
    ).astype(hidden_ND.dtype)
    need_head = with_grad and train_head
    d_head_shape = (head.rows if rows else head).shape

    def body(carry):
        i, sums, d_hidden_ND, d_head = carry
        at_Q = jax.lax.dynamic_slice_in_dim(where_N, i * chunk, chunk)
        h_QD = hidden_ND.at[at_Q].get(mode="fill", fill_value=0)
        target_Q = targets_N.at[at_Q].get(mode="fill", fill_value=0)
        valid_Q = at_Q < N
        d_scores_QV, part = _chunk_loss(h_QD, table_VD, target_Q, valid_Q, kinds_V, num_kinds, vocab_size)
        sums = jax.tree.map(jnp.add, sums, part)
        if with_grad:
            d_scores_QV = d_scores_QV.astype(hidden_ND.dtype)
            d_hidden_ND = d_hidden_ND.at[at_Q].set(d_scores_QV @ table_VD, mode="drop")
        if need_head:
            if rows:
                d_scores_QV = jax.lax.dynamic_slice_in_dim(d_scores_QV, head.start, d_head_shape[0], 1)
            d_head += jax.lax.dot_general(
                d_scores_QV, h_QD, (((0,), (0,)), ((), ())), preferred_element_type=jnp.float32
            )
        return i + 1, sums, d_hidden_ND, d_head

    zero, zeros = jnp.float32(0), jnp.zeros(num_kinds, jnp.float32)
    start = (
        jnp.int32(0),
        Sums(zero, zero, zeros, zeros, zeros),
        jnp.zeros_like(hidden_ND) if with_grad else None,
        jnp.zeros(d_head_shape, jnp.float32) if need_head else None,
    )
    _, sums, d_hidden_ND, d_head = jax.lax.while_loop(lambda carry: carry[0] * chunk < learnt, body, start)
    d_head = None if d_head is None else d_head.astype((head.rows if rows else head).dtype)
    return sums, (d_hidden_ND, d_head, trained)


def _chunk_loss(h_QD, table_VD, target_Q, valid_Q, kinds_V, num_kinds, vocab_size):
    """Sums over one chunk, and the gradient of its loss with respect to the scores [Q, V]."""
    contract = (((1,), (1,)), ((), ()))
    scores_QV = jax.lax.dot_general(h_QD, table_VD, contract, preferred_element_type=jnp.float32)
    ids_V = jnp.arange(table_VD.shape[0])
    if table_VD.shape[0] > vocab_size:
        scores_QV = jnp.where(ids_V < vocab_size, scores_QV, -jnp.inf)
    peak_Q = jnp.max(scores_QV, axis=1)
    lse_Q = peak_Q + jnp.log(jnp.sum(jnp.exp(scores_QV - peak_Q[:, None]), axis=1))
    target_score_Q = jnp.take_along_axis(scores_QV, target_Q[:, None], axis=1)[:, 0]
    loss_Q = jnp.where(valid_Q, lse_Q - target_score_Q, 0.0)
    kind_QG = jax.nn.one_hot(kinds_V[target_Q], num_kinds) * valid_Q[:, None]
    sums = Sums(
        jnp.sum(loss_Q),
        jnp.sum(valid_Q, dtype=jnp.float32),
        loss_Q @ kind_QG,
        (target_score_Q >= peak_Q).astype(jnp.float32) @ kind_QG,
        jnp.sum(kind_QG, axis=0),
    )
    d_scores_QV = jnp.exp(scores_QV - lse_Q[:, None]) - (ids_V == target_Q[:, None])
    return jnp.where(valid_Q[:, None], d_scores_QV, 0.0), sums


_gathered.defvjp(_forward, _backward)
