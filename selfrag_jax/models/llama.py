"""Llama 2/3 and Mistral: NNX modules give structure, shapes and initialisation; the weights live in a plain tree.

The tree is `{"embed", "blocks": {name: [L, …]}, "final_norm", "head" (untied)}`, one for training and decoding.
`forward` merges it into the modules while tracing and walks the layers with `lax.scan`. How queries meet keys is the
caller's: `attend` receives each layer's q, k, v with the cache (carried through the scan) and returns the output.

Shape letters: T tokens, L layers, D model, H heads, K kv heads, C head size, F hidden, V vocabulary. Leading axes of
any number are allowed everywhere, so a training batch [B, T] and one candidate's [T] under `vmap` use the same code.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from flax import nnx

from selfrag_jax.models import attention, rope
from selfrag_jax.models.linear import embed, linear, unembed
from selfrag_jax.models.llama_config import LlamaConfig

Params = dict[str, Any]
Cache = TypeVar("Cache")
Attend = Callable[[jax.Array, jax.Array, jax.Array, jax.Array, Cache], tuple[jax.Array, Cache]]


@dataclasses.dataclass(frozen=True)
class ParamSpec:
    """One parameter: its logical axes (which give shape and sharding) and its name in files.

    Files keep matrices as [out, in]; `transposed` says that ours is the other way round.
    """

    axes: tuple[str, ...]
    hf: str
    gguf: str
    transposed: bool = False
    norm: bool = False


def _matrix(axes: str, hf: str, gguf: str) -> ParamSpec:
    hf_name, gguf_name = f"model.layers.{{}}.{hf}.weight", f"blk.{{}}.{gguf}.weight"
    return ParamSpec(("layers", *axes.split()), hf_name, gguf_name, transposed=True)


def _vector(axis: str, hf: str, gguf: str, *, norm: bool = False) -> ParamSpec:
    kind = "weight" if norm else "bias"
    return ParamSpec(("layers", axis), f"model.layers.{{}}.{hf}.{kind}", f"blk.{{}}.{gguf}.{kind}", norm=norm)


_BLOCK = {
    "attn_norm": _vector("embed", "input_layernorm", "attn_norm", norm=True),
    "q": _matrix("embed heads", "self_attn.q_proj", "attn_q"),
    "k": _matrix("embed kv_heads", "self_attn.k_proj", "attn_k"),
    "v": _matrix("embed kv_heads", "self_attn.v_proj", "attn_v"),
    "o": _matrix("heads embed", "self_attn.o_proj", "attn_output"),
    "mlp_norm": _vector("embed", "post_attention_layernorm", "ffn_norm", norm=True),
    "gate": _matrix("embed mlp", "mlp.gate_proj", "ffn_gate"),
    "up": _matrix("embed mlp", "mlp.up_proj", "ffn_up"),
    "down": _matrix("mlp embed", "mlp.down_proj", "ffn_down"),
}
_ATTENTION_BIAS = {
    "q_bias": _vector("heads", "self_attn.q_proj", "attn_q"),
    "k_bias": _vector("kv_heads", "self_attn.k_proj", "attn_k"),
    "v_bias": _vector("kv_heads", "self_attn.v_proj", "attn_v"),
    "o_bias": _vector("embed", "self_attn.o_proj", "attn_output"),
}
_MLP_BIAS = {
    "gate_bias": _vector("mlp", "mlp.gate_proj", "ffn_gate"),
    "up_bias": _vector("mlp", "mlp.up_proj", "ffn_up"),
    "down_bias": _vector("embed", "mlp.down_proj", "ffn_down"),
}


def block_table(config: LlamaConfig) -> dict[str, ParamSpec]:
    """The parameters of the stacked layers, by name in `params["blocks"]`."""
    return _BLOCK | (_ATTENTION_BIAS if config.attention_bias else {}) | (_MLP_BIAS if config.mlp_bias else {})


def top_table(config: LlamaConfig) -> dict[str, ParamSpec]:
    """The parameters outside the layers, by name in `params`. Both tables are [V, D], so that rows are tokens."""
    table = {
        "embed": ParamSpec(("vocab", "embed"), "model.embed_tokens.weight", "token_embd.weight"),
        "final_norm": ParamSpec(("embed",), "model.norm.weight", "output_norm.weight", norm=True),
    }
    if not config.tie_embeddings:
        table["head"] = ParamSpec(("vocab", "embed"), "lm_head.weight", "output.weight")
    return table


def axis_sizes(config: LlamaConfig, vocab_rows: int | None = None) -> dict[str, int]:
    """The length of every logical axis."""
    return {
        "layers": config.num_layers,
        "vocab": vocab_rows or config.vocab_size,
        "embed": config.hidden_size,
        "heads": config.num_heads * config.head_dim,
        "kv_heads": config.num_kv_heads * config.head_dim,
        "mlp": config.intermediate_size,
    }


class Block(nnx.Module):
    """One layer: pre-norm attention and SwiGLU, each with a residual. Its parameters are those of `block_table`."""

    attn_norm: nnx.Param
    mlp_norm: nnx.Param

    def __init__(self, config: LlamaConfig, rngs: nnx.Rngs):
        self.config = config
        sizes = axis_sizes(config)
        for name, spec in block_table(config).items():
            setattr(self, name, _init_param(spec, [sizes[a] for a in spec.axes[1:]], config, rngs))

    def __call__(self, x_TD, cos, sin, attend_layer):
        """x [..., T, D] → the same; `attend_layer(q, k, v)` answers the queries."""
        config = self.config
        x_TD = x_TD + self._attention(rms_norm(x_TD, self.attn_norm[...], config.rms_eps), cos, sin, attend_layer)
        h_TD = rms_norm(x_TD, self.mlp_norm[...], config.rms_eps)
        h_TF = swiglu(self._linear("gate", h_TD), self._linear("up", h_TD))
        return x_TD + self._linear("down", h_TF)

    def _attention(self, h_TD, cos, sin, attend_layer):
        heads = lambda h, n: h.reshape(*h.shape[:-1], n, self.config.head_dim)  # noqa: E731
        q_THC = rope.rotate(heads(self._linear("q", h_TD), self.config.num_heads), cos, sin)
        k_TKC = rope.rotate(heads(self._linear("k", h_TD), self.config.num_kv_heads), cos, sin)
        v_TKC = heads(self._linear("v", h_TD), self.config.num_kv_heads)
        out_THC = attend_layer(q_THC, k_TKC, v_TKC)
        return self._linear("o", out_THC.reshape(*h_TD.shape[:-1], -1))

    def _linear(self, name, x):
        bias = getattr(self, f"{name}_bias", None)
        return linear(x, getattr(self, name).get_value(), None if bias is None else bias.get_value())


class Llama(nnx.Module):
    """The whole network; `vocab_rows` may exceed the vocabulary in use, for even sharding."""

    def __init__(self, config: LlamaConfig, rngs: nnx.Rngs, vocab_rows: int | None = None):
        sizes = axis_sizes(config, vocab_rows)
        for name, spec in top_table(config).items():
            setattr(self, name, _init_param(spec, [sizes[a] for a in spec.axes], config, rngs))
        keys = jax.random.split(rngs.params(), config.num_layers)
        self.blocks = nnx.vmap(lambda key: Block(config, nnx.Rngs(params=key)))(keys)


def _init_param(spec: ParamSpec, shape, config: LlamaConfig, rngs: nnx.Rngs) -> nnx.Param:
    if spec.norm:
        return nnx.Param(jnp.ones(shape))
    if spec.hf.endswith("bias"):
        return nnx.Param(jnp.zeros(shape))
    return nnx.Param(config.initializer_range * jax.random.normal(rngs.params(), shape))


def init(config: LlamaConfig, key: jax.Array, vocab_rows: int | None = None) -> Params:
    """Fresh float32 parameters as the plain stacked tree."""
    return nnx.to_pure_dict(nnx.state(Llama(config, nnx.Rngs(params=key), vocab_rows)))


def abstract_params(config: LlamaConfig, vocab_rows: int | None = None) -> Params:
    """The tree of shapes, nothing allocated."""
    return jax.eval_shape(lambda: init(config, jax.random.key(0), vocab_rows))


@functools.cache
def _block_definition(config: LlamaConfig):
    return nnx.split(nnx.eval_shape(lambda: Block(config, nnx.Rngs(params=0))))[0]


@jax.custom_vjp
def swiglu(gate: jax.Array, up: jax.Array) -> jax.Array:
    """silu(gate) · up (Shazeer 2020). Its backward pass keeps these two and nothing else of their width."""
    return jax.nn.silu(gate) * up


def _swiglu_backward(kept, d):
    gate, up = kept
    sigmoid = jax.nn.sigmoid(gate)
    silu = gate * sigmoid
    return d * up * (sigmoid + silu * (1 - sigmoid)), d * silu


swiglu.defvjp(lambda gate, up: (swiglu(gate, up), (gate, up)), _swiglu_backward)


def rms_norm(x: jax.Array, weight: jax.Array, eps: float) -> jax.Array:
    """Root-mean-square normalisation over the last axis, in float32 (Zhang & Sennrich 2019)."""
    x32 = x.astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(jnp.square(x32), axis=-1, keepdims=True) + eps)
    return (x32 * scale).astype(x.dtype) * weight.astype(x.dtype)


def forward(
    params: Params,
    config: LlamaConfig,
    tokens_T: jax.Array,
    positions_T: jax.Array,
    attend: Attend,
    cache: Any = None,
    *,
    dtype: jnp.dtype | None = None,
    remat: bool = False,
) -> tuple[jax.Array, Any]:
    """Hidden states after the final norm.

    Args:
        params: the stacked tree; leaves may be any kind that `linear` knows.
        config: static.
        tokens_T, positions_T: int32 [..., T].
        attend: `(q_THC, k_TKC, v_TKC, layer, cache) -> (out_THC, cache)`; q and k are rotated already, `layer` is a
            traced index, the cache may be None.
        cache: any pytree; carried through the layers, never stacked as an output of the scan (that would copy it).
        dtype: of the activations; by default that of the embedding.
        remat: recompute each layer in the backward pass instead of keeping its activations.

    Returns:
        Hidden states [..., T, D] and the cache.
    """
    x_TD = embed(params["embed"], tokens_T)
    x_TD = x_TD if dtype is None else x_TD.astype(dtype)
    cos, sin = rope.cos_sin(config, positions_T)
    definition = _block_definition(config)

    def layer_step(carry, layer_params):
        x_TD, cache, layer = carry
        attended = cache

        def attend_layer(q, k, v):
            nonlocal attended
            out, attended = attend(q, k, v, layer, cache)
            return out

        x_TD = nnx.merge(definition, layer_params)(x_TD, cos, sin, attend_layer)
        return (x_TD, attended, layer + 1), None

    step = jax.checkpoint(layer_step) if remat else layer_step
    (x_TD, cache, _), _ = jax.lax.scan(step, (x_TD, cache, jnp.int32(0)), params["blocks"])
    return rms_norm(x_TD, params["final_norm"], config.rms_eps), cache


def logits(params: Params, config: LlamaConfig, x_TD: jax.Array) -> jax.Array:
    """Scores over the vocabulary rows, float32 [..., T, V]; rows beyond the vocabulary in use are -inf."""
    scores_TV = unembed(x_TD, params["embed"] if config.tie_embeddings else params["head"])
    rows = scores_TV.shape[-1]
    if rows == config.vocab_size:
        return scores_TV
    return jnp.where(jnp.arange(rows) < config.vocab_size, scores_TV, -jnp.inf)


def attend_without_cache(mask_TT: jax.Array) -> Attend:
    """Attention among the tokens given, under a mask [..., T, T]: for training and for reading whole texts."""

    def attend_layer(q_THC, k_TKC, v_TKC, layer, cache):
        return attention.attend(q_THC, k_TKC, v_TKC, mask_TT)[0], cache

    return attend_layer


def causal_lm(params: Params, config: LlamaConfig, tokens_T: jax.Array) -> jax.Array:
    """Scores at every position of whole sequences [..., T] → float32 [..., T, V]: the plain, uncached reading."""
    positions_T = jnp.broadcast_to(jnp.arange(tokens_T.shape[-1]), tokens_T.shape)
    mask_TT = attention.causal_mask(positions_T, positions_T, config.sliding_window)
    x_TD, _ = forward(params, config, tokens_T, positions_T, attend_without_cache(mask_TT))
    return logits(params, config, x_TD)
