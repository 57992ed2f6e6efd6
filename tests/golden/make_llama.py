"""Makes llama_*.npz: logits of Hugging Face PyTorch, which this package's forward pass must reproduce.

    python tests/golden/make_llama.py [path to SmolLM2-135M-Instruct.Q4_1.gguf]

needs torch, transformers, gguf and accelerate, and writes beside itself. Weights of the small models are not stored:
both sides draw them from `numpy`'s frozen legacy generator, seeded by the name of the tensor.
"""

import pathlib
import sys
import zlib
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).parent
LENGTH = 40
OFFSET = 1000  # some are read a second time, at positions OFFSET, OFFSET + 1, …
READ_TWICE = ("gqa", "llama3", "yarn")

_LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    "tie_word_embeddings": False,
    "hidden_act": "silu",
}
_GQA = _LLAMA | {"num_key_value_heads": 2}


def _rope(kind: str, **more: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 500.0, **more}}


# The original context is short, so that forty positions reach far beyond it.
_LLAMA3 = _rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
_YARN = _rope("yarn", factor=4.0, original_max_position_embeddings=16)
_MISTRAL = {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "head_dim": 12}

CASES: dict[str, dict[str, Any]] = {
    "mha": _LLAMA,
    "gqa": _GQA,
    "one_kv_head": _LLAMA | {"num_key_value_heads": 1},
    "tied": _GQA | {"tie_word_embeddings": True},
    "large_eps": _GQA | {"rms_norm_eps": 0.1},
    "theta": _GQA | _rope("default"),
    "linear": _GQA | _rope("linear", factor=4.0),
    "llama3": _GQA | _LLAMA3,
    "yarn": _GQA | _YARN,
    "yarn_options": _GQA
    | _rope(
        "yarn",
        factor=4.0,
        original_max_position_embeddings=16,
        beta_fast=8.0,
        beta_slow=2.0,
        truncate=False,
        mscale=0.7,
        mscale_all_dim=0.4,
    ),
    "biases": _GQA | {"attention_bias": True, "mlp_bias": True},
    "head_size": _GQA | {"head_dim": 20},
    "mistral_window": _GQA | _MISTRAL | {"sliding_window": 7},
    "mistral_no_window": _GQA | _MISTRAL | {"sliding_window": None},
}


def tokens(config: dict[str, Any]) -> np.ndarray:
    """The ids that are read, int32 [LENGTH]."""
    return np.random.RandomState(7).randint(0, config["vocab_size"], LENGTH).astype(np.int32)


def tensor(name: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """The value of a parameter, by its Hugging Face name: large enough that attention is far from uniform."""
    normal = np.random.RandomState((zlib.crc32(name.encode()) + seed) % 2**32).standard_normal(shape)
    if name.endswith("norm.weight"):
        return (1.0 + 0.3 * normal).astype(np.float32)
    return (normal * (0.5 if len(shape) == 1 else 1.5 * shape[-1] ** -0.5)).astype(np.float32)


def hf_logits(config: dict[str, Any], offset: int = 0, seed: int = 0) -> np.ndarray:
    """Logits at every position by Hugging Face PyTorch, float32 [LENGTH, V]."""
    import torch
    import transformers

    model_config = transformers.AutoConfig.for_model(**config)
    model = getattr(transformers, config["architectures"][0])._from_config(model_config, attn_implementation="eager")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(tensor(name, tuple(parameter.shape), seed)))
        ids = torch.from_numpy(tokens(config).astype(np.int64))[None]
        positions = torch.arange(offset, offset + LENGTH)[None]
        return model.float().eval()(input_ids=ids, position_ids=positions).logits[0].numpy()


SMOLLM2_TEXT = (
    "The capital of France is Paris, and its population was 2,102,650 in 2023. Henry Feilden was a politician;"
    " what did he do?\n\n### Response:\n"
)


def make_smollm2(gguf: pathlib.Path) -> None:
    """Logits over some ids, with the argmax and the log-normaliser over all, at every position of SMOLLM2_TEXT."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32, attn_implementation="eager"
    )
    ids = tokenizer(SMOLLM2_TEXT, return_tensors="pt").input_ids
    with torch.no_grad():
        logits = model.eval()(ids).logits[0].double()
    some = np.unique(np.concatenate([np.random.RandomState(0).randint(0, logits.shape[1], 280), ids[0].numpy()]))
    np.savez_compressed(
        HERE / "llama_smollm2.npz",
        tokens=ids[0].numpy().astype(np.int32),
        ids=some.astype(np.int32),
        logits=logits[:, some].numpy().astype(np.float32),
        argmax=logits.argmax(-1).numpy().astype(np.int32),
        logsumexp=logits.logsumexp(-1).numpy(),
        largest=logits.abs().max().numpy(),
    )


def main() -> None:
    found = {}
    for name, config in CASES.items():
        found[name] = hf_logits(config)
        if name in READ_TWICE:
            found[f"{name}_offset"] = hf_logits(config, OFFSET)
        print(name, found[name].shape, float(np.abs(found[name]).max()))
    np.savez_compressed(HERE / "llama_small.npz", **found)
    if len(sys.argv) > 1:
        make_smollm2(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
