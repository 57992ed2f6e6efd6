"""What the tests of the language model share: small random models as files, and readings of them."""

import functools
import importlib.util
import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from selfrag_jax.models import attention, llama, llama_config, safetensors

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"

_spec = importlib.util.spec_from_file_location("make_llama", GOLDEN / "make_llama.py")
assert _spec is not None and _spec.loader is not None
make_llama = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_llama)
CASES = make_llama.CASES
TOLERANCE = 1e-4  # largest difference over largest magnitude


def hf_shapes(config: llama_config.LlamaConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor of the Hugging Face checkpoint, written out by hand, [out, in]."""
    D, F, C = config.hidden_size, config.intermediate_size, config.head_dim
    Q, K = config.num_heads * C, config.num_kv_heads * C
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config.vocab_size, D),
        "model.norm.weight": (D,),
    }
    if not config.tie_embeddings:
        shapes["lm_head.weight"] = (config.vocab_size, D)
    matrices = {
        "self_attn.q_proj": (Q, D),
        "self_attn.k_proj": (K, D),
        "self_attn.v_proj": (K, D),
        "self_attn.o_proj": (D, Q),
        "mlp.gate_proj": (F, D),
        "mlp.up_proj": (F, D),
        "mlp.down_proj": (D, F),
    }
    for layer in range(config.num_layers):
        at = f"model.layers.{layer}"
        shapes[f"{at}.input_layernorm.weight"] = shapes[f"{at}.post_attention_layernorm.weight"] = (D,)
        for name, shape in matrices.items():
            shapes[f"{at}.{name}.weight"] = shape
            if config.attention_bias if name.startswith("self_attn") else config.mlp_bias:
                shapes[f"{at}.{name}.bias"] = shape[:1]
    return shapes


def hf_tensors(hf_config: dict[str, Any], seed: int = 0) -> dict[str, np.ndarray]:
    """The random weights that the golden files were made with."""
    config = llama_config.from_hf(hf_config, "test")
    return {name: make_llama.tensor(name, shape, seed) for name, shape in hf_shapes(config).items()}


def write_hf(directory: pathlib.Path, hf_config: dict[str, Any], tensors: dict[str, np.ndarray] | None = None) -> None:
    """A Hugging Face directory of a small random model."""
    directory.mkdir(exist_ok=True)
    (directory / "config.json").write_text(json.dumps(hf_config))
    safetensors.write(directory / "model.safetensors", hf_tensors(hf_config) if tensors is None else tensors)


def read_at(params: Any, config: llama_config.LlamaConfig, tokens: np.ndarray, offset: int = 0) -> np.ndarray:
    """Logits of the tokens at positions offset, offset + 1, …"""
    return np.asarray(_read(params, config, jnp.asarray(tokens), offset + jnp.arange(len(tokens))))


@functools.partial(jax.jit, static_argnums=1)
def _read(params, config, tokens, positions):
    mask = attention.causal_mask(positions, positions, config.sliding_window)
    x, _ = llama.forward(params, config, tokens, positions, llama.attend_without_cache(mask))
    return llama.logits(params, config, x)


def distance(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference as a share of the largest magnitude."""
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())
