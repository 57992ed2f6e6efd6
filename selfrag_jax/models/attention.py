"""Grouped-query attention in parts: each part gives its output and log-normaliser, and parts merge exactly.

Keys and values that many candidates share are attended to where they lie; what each candidate has of its own is
attended to apart, and the two are merged by their log-sum-exp. That is softmax attention over both, with no copy.

Shape letters: T queries, S keys, H heads, K key/value heads, G = H/K queries per key head, C head size.
"""

import jax
import jax.numpy as jnp


def attend(q_THC: jax.Array, k_SKC: jax.Array, v_SKC: jax.Array, mask_TS: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Softmax attention over one set of keys.

    Args:
        q_THC, k_SKC, v_SKC: any leading axes, the same in all.
        mask_TS: True where a query may see a key; broadcast over leading axes. A query may see nothing.

    Returns:
        The output [..., T, H, C] in the dtype of v (zeros where nothing is seen), and the log of the softmax's
        denominator, float32 [..., T, H] (-inf where nothing is seen).
    """
    *lead, T, H, C = q_THC.shape
    K = k_SKC.shape[-2]
    q_TKGC = q_THC.reshape(*lead, T, K, H // K, C) * (C**-0.5)
    scores_KGTS = jnp.einsum("...tkgc,...skc->...kgts", q_TKGC, k_SKC, preferred_element_type=jnp.float32)
    scores_KGTS = jnp.where(mask_TS[..., None, None, :, :], scores_KGTS, -jnp.inf)
    peak = jnp.max(scores_KGTS, axis=-1, keepdims=True)
    peak = jnp.where(jnp.isfinite(peak), peak, 0.0)
    weights = jnp.exp(scores_KGTS - peak)
    total_KGT1 = jnp.sum(weights, axis=-1, keepdims=True)
    weights = weights / jnp.where(total_KGT1 == 0, 1.0, total_KGT1)
    out = jnp.einsum("...kgts,...skc->...tkgc", weights.astype(v_SKC.dtype), v_SKC)
    lse_KGT = (jnp.log(total_KGT1) + peak)[..., 0]
    return out.reshape(*lead, T, H, C), jnp.moveaxis(lse_KGT, -1, -3).reshape(*lead, T, H)


def merge(parts: list[tuple[jax.Array, jax.Array]]) -> jax.Array:
    """Attention over the union of several key sets, from the (output, log-normaliser) of each.

    At least one part must see something for every query.
    """
    lse = jnp.stack([lse for _, lse in parts])
    share = jax.nn.softmax(lse, axis=0)[..., None]
    return sum((share[i].astype(out.dtype) * out for i, (out, _) in enumerate(parts)), jnp.zeros((), parts[0][0].dtype))


def causal_mask(q_positions_T: jax.Array, k_positions_S: jax.Array, window: int = 0) -> jax.Array:
    """True where a key's position is not after the query's and, with a window, less than `window` before it [T, S]."""
    ahead = q_positions_T[..., :, None] - k_positions_S[..., None, :]
    mask = ahead >= 0
    return mask & (ahead < window) if window else mask
