"""Self-attention over whole sequences, for training: the same as `models.attention.attend`, with its gradient by hand.

Every product is one batched matrix product over B × K in the layout it is stored in; only arrays of T × C are ever
turned, never those of T × T, which is what automatic differentiation of the einsum form spends most of its time on.
Kept for the backward pass: q, k, v, the weights P and the output O. With dO given,

    dV = Pᵀ dO,   dP = dO Vᵀ,   dS = P ∘ (dP − rowsum(dO ∘ O)),   dQ = dS K,   dK = dSᵀ Q.

Shape letters: B batch, T tokens, H heads, K key/value heads, G = H/K queries per key head, C head size.
"""

import jax
import jax.numpy as jnp

from selfrag_jax.models.llama import Attend


def attend_whole(mask_BTT: jax.Array) -> Attend:
    """Attention for `llama.forward` among the tokens of [B, T, …] under a mask in which every query sees some key."""

    def attend_layer(q_BTHC, k_BTKC, v_BTKC, layer, cache):
        return self_attention(q_BTHC, k_BTKC, v_BTKC, mask_BTT), cache

    return attend_layer


@jax.custom_vjp
def self_attention(q_BTHC: jax.Array, k_BTKC: jax.Array, v_BTKC: jax.Array, mask_BTT: jax.Array) -> jax.Array:
    """Softmax attention [B, T, H, C]; `mask_BTT` is True where a query (first T) may see a key (second T)."""
    return _forward(q_BTHC, k_BTKC, v_BTKC, mask_BTT)[0]


def _forward(q_BTHC, k_BTKC, v_BTKC, mask_BTT):
    B, T, H, C = q_BTHC.shape
    K = k_BTKC.shape[2]
    q, k, v = (_by_head(x, K) for x in (q_BTHC * C**-0.5, k_BTKC, v_BTKC))
    scores = _product(q, k, 2, 2).reshape(B, K, H // K, T, T)
    scores = jnp.where(mask_BTT[:, None, None], scores, -jnp.inf)
    weights = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
    weights = weights / jnp.sum(weights, axis=-1, keepdims=True)
    weights = weights.astype(v.dtype).reshape(B * K, -1, T)
    out = _product(weights, v, 2, 1).astype(v.dtype)
    return _by_token(out, K, T), (q, k, v, weights, out)


def _backward(kept, d_out_BTHC):
    q, k, v, weights, out = kept
    B, T, _, C = d_out_BTHC.shape
    K = k.shape[0] // B
    d_out = _by_head(d_out_BTHC, K)
    d_v = _product(d_out, weights, 1, 1).swapaxes(1, 2)  # as (dOᵀ P)ᵀ: what is turned is small
    inner = jnp.sum(d_out.astype(jnp.float32) * out.astype(jnp.float32), axis=-1, keepdims=True)
    d_scores = (weights * (_product(d_out, v, 2, 2) - inner)).astype(q.dtype)
    d_q = _product(d_scores, k, 2, 1) * C**-0.5
    d_k = _product(q, d_scores, 1, 1).swapaxes(1, 2)
    d_q, d_k, d_v = (_by_token(x.astype(q.dtype), K, T) for x in (d_q, d_k, d_v))
    return d_q, d_k, d_v, None


def _by_head(x_BTHC: jax.Array, K: int) -> jax.Array:
    """[B, T, K·G, C] → [B·K, G·T, C]."""
    B, T, H, C = x_BTHC.shape
    return x_BTHC.reshape(B, T, K, H // K, C).transpose(0, 2, 3, 1, 4).reshape(B * K, -1, C)


def _by_token(x: jax.Array, K: int, T: int) -> jax.Array:
    """[B·K, G·T, C] → [B, T, K·G, C]."""
    C = x.shape[-1]
    return x.reshape(-1, K, x.shape[1] // T, T, C).transpose(0, 3, 1, 2, 4).reshape(-1, T, K * (x.shape[1] // T), C)


def _product(x: jax.Array, y: jax.Array, x_axis: int, y_axis: int) -> jax.Array:
    contract = (((x_axis,), (y_axis,)), ((0,), (0,)))
    return jax.lax.dot_general(x, y, contract, preferred_element_type=jnp.float32)


self_attention.defvjp(_forward, _backward)
