"""The shape of a Llama: read from a Hugging Face config, every field of it consumed or refused by name."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from selfrag_jax.errors import UserError


@dataclasses.dataclass(frozen=True)
class RopeConfig:
    """Rotary position embedding (Su et al. 2021) and the ways its frequencies are stretched for longer contexts."""

    theta: float = 10000.0
    kind: str = "default"  # default | linear | llama3 | yarn
    factor: float = 1.0
    original_max_positions: int = 0
    low_freq_factor: float = 1.0  # llama3
    high_freq_factor: float = 4.0  # llama3
    beta_fast: float = 32.0  # yarn
    beta_slow: float = 1.0  # yarn
    attention_factor: float = 1.0  # yarn: multiplies cos and sin
    truncate: bool = True  # yarn: whole-numbered ramp ends
    freq_factors: tuple[float, ...] = ()  # one divisor per frequency, as GGUF files carry them


@dataclasses.dataclass(frozen=True)
class LlamaConfig:
    """The hyper-parameters of a `LlamaForCausalLM` or `MistralForCausalLM`; hashable, so a static argument of `jit`."""

    vocab_size: int  # ids in use; tables may hold more rows, which are masked
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_positions: int
    rms_eps: float = 1e-5
    rope: RopeConfig = RopeConfig()
    tie_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    sliding_window: int = 0  # 0: every earlier position is seen
    initializer_range: float = 0.02


# Fields that change nothing in a forward pass, or that only describe where the weights came from.
_WITHOUT_EFFECT = frozenset(
    "_name_or_path architectures attention_dropout bos_token_id eos_token_id pad_token_id dtype torch_dtype model_type "
    "transformers_version use_cache pretraining_tp output_attentions output_hidden_states return_dict "
    "chunk_size_feed_forward id2label label2id is_encoder_decoder problem_type is_llama_config rope_interleaved "
    "unsloth_version unsloth_fixed transformers.js_config".split()
)
_REFUSED_VALUE = {"pretraining_tp": 1, "rope_interleaved": False, "is_encoder_decoder": False}
_CONSUMED = frozenset(
    "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim "
    "max_position_embeddings rms_norm_eps rope_theta rope_scaling rope_parameters tie_word_embeddings attention_bias "
    "mlp_bias sliding_window initializer_range hidden_act partial_rotary_factor".split()
)
_ARCHITECTURES = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "mistral"}


def from_hf(config: Mapping[str, Any], source: str) -> LlamaConfig:
    """The configuration in a Hugging Face `config.json`.

    Args:
        config: the parsed file, of transformers 4 or 5.
        source: where it came from, for messages.

    Raises:
        UserError: another architecture, a field that is not known here, or a value that the model does not implement.
    """
    names = config.get("architectures") or [None]
    if names[0] not in _ARCHITECTURES:
        raise UserError(f"{source}: architecture {names[0]} is not supported; expected {' or '.join(_ARCHITECTURES)}")
    family = _ARCHITECTURES[names[0]]
    for name, value in config.items():
        if name not in _CONSUMED and name not in _WITHOUT_EFFECT:
            raise UserError(f"{source}: the field {name}={value!r} is not known to this Llama; it would be ignored")
        if name in _REFUSED_VALUE and value not in (None, _REFUSED_VALUE[name]):
            raise UserError(f"{source}: {name}={value!r} is not supported; only {_REFUSED_VALUE[name]!r} is")
    if config.get("hidden_act", "silu") != "silu":
        raise UserError(f"{source}: hidden_act={config['hidden_act']!r} is not supported; only 'silu' is")
    if config.get("partial_rotary_factor") not in (None, 1.0):
        raise UserError(f"{source}: partial_rotary_factor={config['partial_rotary_factor']!r} is not supported")
    heads = config["num_attention_heads"]
    positions = config.get("max_position_embeddings", 2048 if family == "llama" else 131072)
    window = config.get("sliding_window", 4096 if family == "mistral" else None)
    return LlamaConfig(
        vocab_size=config["vocab_size"],
        hidden_size=config["hidden_size"],
        intermediate_size=config["intermediate_size"],
        num_layers=config["num_hidden_layers"],
        num_heads=heads,
        num_kv_heads=config.get("num_key_value_heads") or (heads if family == "llama" else 8),
        head_dim=config.get("head_dim") or config["hidden_size"] // heads,
        max_positions=positions,
        rms_eps=config.get("rms_norm_eps", 1e-6),
        rope=_rope(config, positions, source),
        tie_embeddings=bool(config.get("tie_word_embeddings", False)),
        attention_bias=bool(config.get("attention_bias", False)),
        mlp_bias=bool(config.get("mlp_bias", False)),
        sliding_window=int(window or 0),
        initializer_range=config.get("initializer_range", 0.02),
    )


_ROPE_FIELDS = {
    "default": frozenset(),
    "linear": frozenset({"factor"}),
    "llama3": frozenset({"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}),
    "yarn": frozenset(
        {
            "factor",
            "original_max_position_embeddings",
            "attention_factor",
            "beta_fast",
            "beta_slow",
            "mscale",
            "mscale_all_dim",
            "truncate",
        }
    ),
}


def _rope(config: Mapping[str, Any], max_positions: int, source: str) -> RopeConfig:
    """The rotary settings, from `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling` (4)."""
    given = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    theta = given.pop("rope_theta", None) or config.get("rope_theta") or 10000.0
    kind = given.pop("rope_type", None) or given.pop("type", None) or "default"
    given.pop("type", None)
    if given.pop("partial_rotary_factor", 1.0) not in (None, 1.0):
        raise UserError(f"{source}: partial_rotary_factor is not supported")
    if kind not in _ROPE_FIELDS:
        raise UserError(f"{source}: rope type {kind!r} is not supported; expected one of {', '.join(_ROPE_FIELDS)}")
    unknown = sorted(set(given) - _ROPE_FIELDS[kind] - {"factor"})
    if unknown:
        raise UserError(f"{source}: the rope field {unknown[0]} is not known for rope type {kind!r}")
    if kind == "default":
        return RopeConfig(theta=float(theta))
    factor = float(given.get("factor") or 1.0)
    return RopeConfig(
        theta=float(theta),
        kind=kind,
        factor=factor,
        original_max_positions=int(given.get("original_max_position_embeddings") or max_positions),
        low_freq_factor=float(given.get("low_freq_factor") or 1.0),
        high_freq_factor=float(given.get("high_freq_factor") or 4.0),
        beta_fast=float(given.get("beta_fast") or 32.0),
        beta_slow=float(given.get("beta_slow") or 1.0),
        attention_factor=_yarn_attention_factor(given, factor) if kind == "yarn" else 1.0,
        truncate=bool(given.get("truncate", True)),
    )


def _yarn_attention_factor(given: Mapping[str, Any], factor: float) -> float:
    """The temperature of YaRN (Peng et al. 2023, §3.4), by which cos and sin are multiplied."""
    import math

    def mscale(scale: float, weight: float = 1.0) -> float:
        return 1.0 if scale <= 1 else 0.1 * weight * math.log(scale) + 1.0

    if given.get("attention_factor") is not None:
        return float(given["attention_factor"])
    if given.get("mscale") and given.get("mscale_all_dim"):
        return mscale(factor, given["mscale"]) / mscale(factor, given["mscale_all_dim"])
    return mscale(factor)


def to_hf(config: LlamaConfig, *, vocab_size: int | None = None) -> dict[str, Any]:
    """The Hugging Face `config.json` of a configuration (the inverse of `from_hf`, GGUF-only fields refused)."""
    rope = config.rope
    if rope.freq_factors:
        raise UserError("rope frequencies taken from a GGUF file have no Hugging Face form; convert from the original")
    parameters: dict[str, Any] = {"rope_theta": rope.theta, "rope_type": rope.kind}
    if rope.kind != "default":
        parameters["factor"] = rope.factor
    if rope.kind in ("llama3", "yarn"):
        parameters["original_max_position_embeddings"] = rope.original_max_positions
    if rope.kind == "llama3":
        parameters |= {"low_freq_factor": rope.low_freq_factor, "high_freq_factor": rope.high_freq_factor}
    if rope.kind == "yarn":
        names = ("beta_fast", "beta_slow", "attention_factor", "truncate")
        parameters |= {name: getattr(rope, name) for name in names}
    mistral = config.sliding_window > 0
    hf = {
        "architectures": ["MistralForCausalLM" if mistral else "LlamaForCausalLM"],
        "model_type": "mistral" if mistral else "llama",
        "vocab_size": vocab_size or config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.max_positions,
        "rms_norm_eps": config.rms_eps,
        "rope_parameters": parameters,
        "tie_word_embeddings": config.tie_embeddings,
        "hidden_act": "silu",
        "initializer_range": config.initializer_range,
    }
    if mistral:
        return hf | {"sliding_window": config.sliding_window}
    return hf | {"attention_bias": config.attention_bias, "mlp_bias": config.mlp_bias}
