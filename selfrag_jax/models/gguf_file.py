"""Weights and hyper-parameters of a GGUF file of architecture "llama", as llama.cpp's converters write them.

llama.cpp turns neighbouring elements (2i, 2i+1) of a head where Hugging Face turns (i, i + C/2), so its converters
interleave the rows of the query and key matrices; reading puts them back.
"""

import dataclasses
import mmap
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from selfrag_jax.errors import UserError
from selfrag_jax.gguf import TensorInfo, read_header
from selfrag_jax.models.llama_config import LlamaConfig, RopeConfig

_PIECE_WEIGHTS = 1 << 17  # dequantising this many at a time stays in the cache: four times faster than row by row
_ROPE_FACTORS = "rope_freqs.weight"

# Keys under "llama." that change nothing in the forward pass.
_WITHOUT_EFFECT = frozenset({"context_length", "tensor_data_layout", "rope.scaling.finetuned"})
# Keys that other members of the family use to change it, with the value that leaves it as it is here.
_REFUSED_UNLESS: dict[str, Any] = {
    "expert_count": 0,
    "expert_used_count": 0,
    "use_parallel_residual": False,
    "attention.causal": True,
    "attention.clamp_kqv": 0.0,
    "attention.max_alibi_bias": 0.0,
    "rope.scaling.yarn_log_multiplier": 0.0,
    "rope.scaling.yarn_ext_factor": 1.0,
    "rope.scaling.yarn_attn_factor": 1.0,
    "logit_scale": 1.0,
    "embedding_scale": 1.0,
    "residual_scale": 1.0,
}


class GgufFile:
    """An open GGUF file; tensors are dequantised when they are read."""

    def __init__(self, path: pathlib.Path):
        """Raises UserError when the file is missing, truncated, of another architecture, or holds what is not known."""
        self.source = str(path)
        metadata, self._infos = read_header(path)
        self.config = config_from_metadata(metadata, self._infos, self.source)
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._kinds = {name: self._checked_kind(name) for name in self._infos}
        if _ROPE_FACTORS in self._infos:
            self.config = self._with_rope_factors(self.config)
        self.shapes = {name: info.shape for name, info in self._infos.items() if name != _ROPE_FACTORS}

    def read(self, name: str, out: np.ndarray) -> None:
        """Dequantise a tensor into `out` (its shape, any strides, any float dtype), the rows of q and k put back."""
        from gguf import quants

        info, kind = self._infos[name], self._kinds[name]
        if out.shape != info.shape:
            raise ValueError(f"{name} of shape {info.shape} does not fit a buffer of shape {out.shape}")
        row_bytes = self._bytes(name) // (info.shape[0] if len(info.shape) > 1 else 1)
        data = np.frombuffer(self._map, np.uint8, self._bytes(name), info.begin).reshape(-1, row_bytes)
        target = out.reshape(1, -1) if out.ndim == 1 else out
        order = self._row_order(name)
        if order is not None and out.ndim == 1:  # a bias: its elements are the rows
            out[order] = quants.dequantize(data, kind)[0].astype(out.dtype)
            return
        rows = max(1, _PIECE_WEIGHTS // max(1, target.shape[1]))
        for start in range(0, len(data), rows):
            # As one long row: the package would otherwise work through it sixteen rows at a time.
            piece = quants.dequantize(data[start : start + rows].reshape(1, -1), kind)
            piece = piece.reshape(-1, target.shape[1]).astype(out.dtype, copy=False)
            target[slice(start, start + rows) if order is None else order[start : start + rows]] = piece

    def _row_order(self, name: str) -> np.ndarray | None:
        """For each row of a query or key tensor in the file, which row of the plain order it is."""
        layer_part = name.split(".")[2:3] if name.startswith("blk.") else []
        heads = {"attn_q": self.config.num_heads, "attn_k": self.config.num_kv_heads}.get("".join(layer_part))
        if heads is None:
            return None
        plain = np.arange(self._infos[name].shape[0]).reshape(heads, 2, -1)  # head, half, plane
        return plain.swapaxes(1, 2).reshape(-1)

    def _with_rope_factors(self, config: LlamaConfig) -> LlamaConfig:
        factors = np.empty(self._infos[_ROPE_FACTORS].shape, np.float32)
        self.read(_ROPE_FACTORS, factors)
        if factors.shape != (config.head_dim // 2,):
            raise UserError(
                f"{self.source}: {_ROPE_FACTORS} holds {factors.size} values for {config.head_dim // 2} planes"
            )
        rope = dataclasses.replace(config.rope, freq_factors=tuple(factors.tolist()))
        return dataclasses.replace(config, rope=rope)

    def _bytes(self, name: str) -> int:
        from gguf.constants import GGML_QUANT_SIZES

        block, size = GGML_QUANT_SIZES[self._kinds[name]]
        return int(np.prod(self._infos[name].shape, dtype=np.int64)) // block * size

    def _checked_kind(self, name: str) -> Any:
        """The tensor's type as the `gguf` package's enum; its data must be inside the file."""
        from gguf import quants
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

        info = self._infos[name]
        try:
            kind = GGMLQuantizationType(info.kind)
        except ValueError:
            raise UserError(f"{self.source}: the tensor {name} has the unknown type {info.kind}; update gguf") from None
        block, size = GGML_QUANT_SIZES[kind]
        if kind.name not in ("F32", "F16") and not hasattr(quants, kind.name):
            raise UserError(
                f"{self.source}: the tensor {name} has type {kind.name}, which cannot be dequantised here; convert it"
            )
        end = info.begin + int(np.prod(info.shape, dtype=np.int64)) // block * size
        if end > len(self._map):
            raise UserError(
                f"{self.source}: truncated ({len(self._map)} bytes; the tensor {name} ends at {end});"
                " download the file again"
            )
        return kind


def config_from_metadata(metadata: Mapping[str, Any], tensors: Mapping[str, TensorInfo], source: str) -> LlamaConfig:
    """The configuration in a GGUF header.

    Tied embeddings and biases show in which tensors there are. `rope_freqs.weight` is not looked at.

    Raises:
        UserError: another architecture, a missing key, or one that would change the forward pass in an unknown way.
    """
    architecture = metadata.get("general.architecture")
    if architecture != "llama":
        raise UserError(f"{source}: architecture {architecture!r} is not supported; expected 'llama'")
    keys = {key.removeprefix("llama."): value for key, value in metadata.items() if key.startswith("llama.")}
    taken: set[str] = set()

    def take(key: str, default: Any = None) -> Any:
        taken.add(key)
        value = keys.get(key, default)
        if value is None:
            raise UserError(f"{source}: the key llama.{key} is missing; convert the model to GGUF again")
        if isinstance(value, np.ndarray):
            raise UserError(f"{source}: llama.{key} differs from layer to layer, which is not supported")
        return value

    heads, hidden = take("attention.head_count"), take("embedding_length")
    head_dim = take("attention.key_length", hidden // heads)
    for key in ("attention.value_length", "rope.dimension_count"):
        if take(key, head_dim) != head_dim:
            raise UserError(f"{source}: llama.{key}={keys[key]} differs from the head size {head_dim}: not supported")
    rows = tensors["token_embd.weight"].shape[0] if "token_embd.weight" in tensors else 0
    if take("vocab_size", rows) != rows:
        raise UserError(f"{source}: token_embd.weight has {rows} rows, but llama.vocab_size={keys['vocab_size']}")
    config = LlamaConfig(
        vocab_size=rows,
        hidden_size=hidden,
        intermediate_size=take("feed_forward_length"),
        num_layers=take("block_count"),
        num_heads=heads,
        num_kv_heads=take("attention.head_count_kv", heads),
        head_dim=head_dim,
        max_positions=keys.get("context_length", 2048),
        rms_eps=_shortest(take("attention.layer_norm_rms_epsilon")),
        rope=_rope(take, keys.get("context_length", 2048), source),
        tie_embeddings="output.weight" not in tensors,
        attention_bias="blk.0.attn_q.bias" in tensors,
        mlp_bias="blk.0.ffn_gate.bias" in tensors,
        sliding_window=take("attention.sliding_window", 0),
    )
    for key, value in keys.items():
        harmless = key in _REFUSED_UNLESS and value == _REFUSED_UNLESS[key]
        if key not in taken and key not in _WITHOUT_EFFECT and not harmless:
            raise UserError(f"{source}: the key llama.{key}={value!r} is not known to this Llama; it would be ignored")
    return config


def _rope(take: Any, context: int, source: str) -> RopeConfig:
    theta, kind = float(take("rope.freq_base", 10000.0)), take("rope.scaling.type", "none")
    # Old converters wrote the linear scale under a name of its own.
    factor = float(take("rope.scaling.factor", take("rope.scale_linear", 1.0)))
    original = int(take("rope.scaling.original_context_length", context))
    temperature = float(take("rope.scaling.attn_factor", 1.0))
    fast, slow = float(take("rope.scaling.yarn_beta_fast", 32.0)), float(take("rope.scaling.yarn_beta_slow", 1.0))
    if kind == "none":
        return RopeConfig(theta=theta)
    if kind == "linear":
        return RopeConfig(theta=theta, kind="linear", factor=factor, original_max_positions=original)
    if kind != "yarn":
        raise UserError(f"{source}: rope scaling {kind!r} is not supported; expected none, linear or yarn")
    return RopeConfig(
        theta=theta,
        kind="yarn",
        factor=factor,
        original_max_positions=original,
        beta_fast=fast,
        beta_slow=slow,
        attention_factor=temperature * (1.0 + 0.1 * float(np.log(max(factor, 1.0)))),
    )


def _shortest(value: float) -> float:
    """The shortest decimal that is the same float32: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(value)))
