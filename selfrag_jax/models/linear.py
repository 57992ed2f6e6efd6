"""The one place where a matrix meets an activation, and the kinds of leaf it accepts.

A weight in the parameter tree is a plain array, or one of the leaf types below. They are pytrees, so a stacked tree of
them goes through `lax.scan`, `jit` and shardings like arrays do, and no model code knows which kind it holds.

Shape letters: I inputs, O outputs, R rank, V vocabulary rows, D model.
"""

import dataclasses
import functools
import typing
from typing import Any

import jax
import jax.numpy as jnp

_WIDENED_BYTES = 8 << 20  # of an int8 matrix on a CPU, how much is held in the activations' dtype at a time


@typing.dataclass_transform(frozen_default=True)
def _leaf(*static: str):
    """A dataclass decorator that registers a pytree whose `static` fields are compile-time constants."""

    def decorate(cls):
        cls = dataclasses.dataclass(frozen=True)(cls)
        data = [f.name for f in dataclasses.fields(cls) if f.name not in static]
        return jax.tree_util.register_dataclass(cls, data_fields=data, meta_fields=list(static))

    return decorate


@_leaf("dynamic")
class Int8Weight:
    """A matrix as int8 with one scale per output channel: w_IO ≈ q_IO · scale_O.

    With `dynamic`, activations are rounded to int8 too, one scale per token, and the product is summed in int32:
    faster on a CPU, and less exact.
    """

    q: jax.Array  # int8 [..., I, O]
    scale: jax.Array  # float32 [..., 1, O]
    dynamic: bool = False


@_leaf("scale")
class LoraWeight:
    """A frozen base (any leaf) and a trained low-rank update: w + scale · a b (Hu et al. 2021)."""

    base: Any
    a: jax.Array  # [..., I, R]
    b: jax.Array  # [..., R, O]
    scale: float = 1.0


@_leaf("start")
class TokenRows:
    """A vocabulary table whose rows start…start+n are trained apart from the frozen rest."""

    base: Any  # [V, D]
    rows: jax.Array  # [n, D]
    start: int = 0


def linear(x: jax.Array, w: Any, bias: jax.Array | None = None) -> jax.Array:
    """x [..., I] times w [I, O] (plus bias [O]) → [..., O], in the dtype of x."""
    if isinstance(w, LoraWeight) and isinstance(w.base, jax.Array) and w.base.dtype == x.dtype == jnp.float32:
        y = _lora_product(x, w.base, w.a, w.b, w.scale)
    elif isinstance(w, LoraWeight):
        low = (x @ w.a.astype(x.dtype)) @ w.b.astype(x.dtype)
        y = linear(x, w.base) + w.scale * low
    elif isinstance(w, Int8Weight):
        y = _int8_linear(x, w)
    else:
        y = x @ w.astype(x.dtype)
    return y if bias is None else y + bias.astype(x.dtype)


@functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
def _lora_product(x, w_IO, a_IR, b_RO, scale):
    """x (w + scale · a b) as one product each way; w is frozen and gets no gradient.

    In float32 nothing is lost by adding the update to w first, and it saves passes over activations as wide as O. The
    gradients of a and b are written so that only arrays as thin as R are turned: automatic differentiation would turn
    the whole dy.
    """
    return x @ (w_IO + (scale * a_IR) @ b_RO)


def _lora_forward(x, w_IO, a_IR, b_RO, scale):
    return _lora_product(x, w_IO, a_IR, b_RO, scale), (x, w_IO, a_IR, b_RO)


def _lora_backward(scale, kept, dy):
    x, w_IO, a_IR, b_RO = kept
    contract = lambda left, right, axes: jax.lax.dot_general(left, right, (axes, ((), ())))  # noqa: E731
    last = dy.ndim - 1
    dx = contract(dy, w_IO + (scale * a_IR) @ b_RO, ((last,), (1,)))
    x_NI, dy_NO = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    low_NR = x_NI @ (scale * a_IR)
    d_low_NR = contract(dy_NO, scale * b_RO, ((1,), (1,)))
    return dx, None, contract(d_low_NR, x_NI, ((0,), (0,))).T, contract(low_NR, dy_NO, ((0,), (0,)))


_lora_product.defvjp(_lora_forward, _lora_backward)


def _int8_linear(x: jax.Array, w: Int8Weight) -> jax.Array:
    if not w.dynamic:
        y = jax.lax.platform_dependent(x, w.q, cpu=_product_by_columns, default=lambda x, q: x @ q.astype(x.dtype))
        return y * w.scale[..., 0, :].astype(x.dtype)
    step = jnp.maximum(jnp.max(jnp.abs(x), axis=-1, keepdims=True), 1e-12) / 127.0
    x_int = jnp.round(x / step).astype(jnp.int8)
    y = jax.lax.dot_general(x_int, w.q, (((x.ndim - 1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    return (y.astype(jnp.float32) * (step.astype(jnp.float32) * w.scale[..., 0, :])).astype(x.dtype)


def _product_by_columns(x: jax.Array, q_IO: jax.Array) -> jax.Array:
    """x q for a large q of a narrower dtype, which is widened a few columns at a time.

    A product on a CPU wants both sides in one dtype. Given the whole matrix, XLA keeps a wide copy of it (that of a
    vocabulary table is larger than all of SmolLM2's layers in int8) and makes it anew in every call.
    """
    inputs, outputs = q_IO.shape
    width = max(128, _WIDENED_BYTES // (inputs * x.dtype.itemsize))
    if outputs <= width:
        return x @ q_IO.astype(x.dtype)

    def columns(y, i):
        start = jnp.minimum(i * width, outputs - width)  # the last ones overlap those before
        part = x @ jax.lax.dynamic_slice_in_dim(q_IO, start, width, axis=1).astype(x.dtype)
        return jax.lax.dynamic_update_slice_in_dim(y, part, start, axis=-1), None

    empty = jnp.zeros((*x.shape[:-1], outputs), x.dtype)
    return jax.lax.scan(columns, empty, jnp.arange(-(-outputs // width)))[0]


def quantize_int8(w: jax.Array, *, dynamic: bool = False) -> Int8Weight:
    """Round w [..., I, O] to int8 with the largest magnitude of each output channel mapped to 127."""
    scale = jnp.maximum(jnp.max(jnp.abs(w), axis=-2, keepdims=True), 1e-12) / 127.0
    return Int8Weight(jnp.round(w / scale).astype(jnp.int8), scale.astype(jnp.float32), dynamic)


def embed(table: Any, ids: jax.Array) -> jax.Array:
    """Rows of a vocabulary table [V, D] for ids [...] → [..., D]."""
    if isinstance(table, TokenRows):
        offset = ids - table.start
        new = (offset >= 0) & (offset < table.rows.shape[0])
        trained = table.rows[jnp.where(new, offset, 0)]
        return jnp.where(new[..., None], trained, embed(table.base, ids).astype(trained.dtype))
    if isinstance(table, Int8Weight):
        # Quantised with D as the input axis ([D, V]), because that is how the head uses it.
        return (jnp.take(table.q, ids, axis=1) * jnp.take(table.scale, ids, axis=1)).transpose(
            *range(1, ids.ndim + 1), 0
        )
    return table[ids]


def unembed(x: jax.Array, table: Any) -> jax.Array:
    """Scores of x [..., D] against every row of a vocabulary table [V, D] → float32 [..., V]."""
    if isinstance(table, TokenRows):
        scores = unembed(x, table.base)
        trained = unembed(x, table.rows)
        return jax.lax.dynamic_update_slice_in_dim(scores, trained, table.start, axis=-1)
    if isinstance(table, Int8Weight):
        return linear(x, table).astype(jnp.float32)
    contract = (((x.ndim - 1,), (1,)), ((), ()))
    return jax.lax.dot_general(x, table.astype(x.dtype), contract, preferred_element_type=jnp.float32)
