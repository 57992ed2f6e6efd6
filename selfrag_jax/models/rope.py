"""Rotary position embedding: the frequencies of a config, and the rotation of queries and keys."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from selfrag_jax.models.llama_config import LlamaConfig, RopeConfig


def frequencies(config: LlamaConfig) -> np.ndarray:
    """Radians per position of each of the head's C/2 planes, float32 [C/2]."""
    rope, half = config.rope, config.head_dim // 2
    base = rope.theta ** (-np.arange(half, dtype=np.float64) / half)
    if rope.freq_factors:
        base = base / np.asarray(rope.freq_factors)
    scaled = {"default": lambda: base, "linear": lambda: base / rope.factor}.get(rope.kind)
    if scaled is None:
        scaled = {"llama3": lambda: _llama3(base, rope), "yarn": lambda: _yarn(base, rope, half)}[rope.kind]
    return scaled().astype(np.float32)


def _llama3(base: np.ndarray, rope: RopeConfig) -> np.ndarray:
    """Llama 3.1: long wavelengths are divided by the factor, short ones kept, those between blended."""
    turns = rope.original_max_positions * base / (2 * math.pi)  # in the original context
    blend = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    blend = np.clip(blend, 0.0, 1.0)
    return (1 - blend) * base / rope.factor + blend * base


def _yarn(base: np.ndarray, rope: RopeConfig, half: int) -> np.ndarray:
    """YaRN (Peng et al. 2023, §3.2): a linear ramp over planes between interpolation and extrapolation."""

    def plane(turns: float) -> float:
        return half * math.log(rope.original_max_positions / (turns * 2 * math.pi)) / math.log(rope.theta)

    low, high = plane(rope.beta_fast), plane(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, 2 * half - 1)
    ramp = np.clip((np.arange(half) - low) / max(high - low, 1e-3), 0.0, 1.0)
    return base / rope.factor * ramp + base * (1 - ramp)


def cos_sin(config: LlamaConfig, positions: jax.Array) -> tuple[jax.Array, jax.Array]:
    """cos and sin of every plane at positions [..., T] → float32 [..., T, 1, C/2] (the 1 stands for the heads)."""
    angles = positions[..., None, None].astype(jnp.float32) * frequencies(config)
    scale = config.rope.attention_factor
    return jnp.cos(angles) * scale, jnp.sin(angles) * scale


def rotate(x: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    """Turn x [..., T, H, C] in the planes (i, i + C/2), as Hugging Face lays them out."""
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return turned.astype(x.dtype)
