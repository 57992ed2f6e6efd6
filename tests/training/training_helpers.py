"""A tiny random Llama, a batch of packed sequences, and the step's loss written the plain way."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from selfrag_jax.models import attention, llama, lora
from selfrag_jax.models.llama_config import LlamaConfig
from selfrag_jax.training.step import Network

CONFIG = LlamaConfig(
    vocab_size=61, hidden_size=16, intermediate_size=32, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8,
    max_positions=64, tie_embeddings=True, initializer_range=0.3,
)  # fmt: skip
ROWS = 64  # vocabulary rows; the last three are padding
TOKENS = {f"[{i}]": 57 + i for i in range(4)}  # the trained token rows
KINDS = ("text", "reflection")
KINDS_V = jnp.asarray(np.arange(ROWS) >= 57, jnp.int32)


# Compiling is most of what these tests do; unoptimised code computes the same.
quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@functools.cache
def base(config: LlamaConfig = CONFIG) -> Any:
    """Random parameters, the same for a config."""
    return _filled(llama.abstract_params(config, ROWS), 0, 0.3)


def adapter(config: LlamaConfig = CONFIG, rank: int = 3) -> tuple[Any, lora.AdapterMeta]:
    """A LoRA adapter whose factors are all random, so that every gradient is visible."""
    meta = lora.make_meta(base(config), config, rank=rank, alpha=6.0, tokens=TOKENS, base_name="tiny")
    shapes = jax.eval_shape(lambda: lora.init_adapter(base(config), config, meta, jax.random.key(0)))
    return _filled(shapes, 1, 0.2), meta


def _filled(shapes: Any, seed: int, scale: float) -> Any:
    """Random arrays, by NumPy: JAX would compile a program for every shape."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda x: jnp.asarray(scale * rng.normal(size=x.shape), jnp.float32), shapes)


def lora_network(meta: lora.AdapterMeta, config: LlamaConfig = CONFIG, **options: Any) -> Network:
    """What a step trains with LoRA."""
    return Network(config, lambda frozen, made: lora.attach(frozen, made, meta), True, KINDS, **options)


def full_network(config: LlamaConfig = CONFIG, **options: Any) -> Network:
    """What a step trains where every parameter is trained."""
    return Network(config, lambda frozen, trained: trained, True, KINDS, **options)


def random_rows(lengths: list[int], seed: int = 0, learnt: float = 0.4) -> list[dict[str, np.ndarray]]:
    """Rows as `pipeline.example` gives them."""
    rng = np.random.default_rng(seed)
    rows = []
    for length in lengths:
        ids = rng.integers(0, CONFIG.vocab_size, length + 1, dtype=np.int32)
        rows.append({"tokens": ids[:-1], "targets": ids[1:], "loss_mask": rng.random(length) < learnt})
    return rows


def packed(groups: list[list[dict[str, np.ndarray]]], length: int) -> dict[str, np.ndarray]:
    """Each group of rows as one sequence, written out by hand."""
    batch = {
        name: np.zeros((len(groups), length), np.int32) for name in ("tokens", "targets", "segment_ids", "positions")
    }
    batch["loss_mask"] = np.zeros((len(groups), length), bool)
    for b, rows in enumerate(groups):
        start = 0
        for number, row in enumerate(rows, 1):
            place = slice(start, start + len(row["tokens"]))
            for name in ("tokens", "targets", "loss_mask"):
                batch[name][b, place] = row[name]
            batch["segment_ids"][b, place] = number
            batch["positions"][b, place] = np.arange(len(row["tokens"]))
            start = place.stop
    return batch


def plain_loss(config: LlamaConfig, params: Any, batch: dict[str, np.ndarray]) -> jax.Array:
    """Σ −log p(target) over learnt positions, from scores at every position: the slow twin of `step.batch_loss`."""
    order = jnp.arange(batch["tokens"].shape[1])
    segments = batch["segment_ids"]
    mask = attention.causal_mask(order, order, config.sliding_window) & (segments[:, :, None] == segments[:, None, :])
    hidden, _ = llama.forward(params, config, batch["tokens"], batch["positions"], llama.attend_without_cache(mask))
    log_probs = jax.nn.log_softmax(llama.logits(params, config, hidden))
    picked = jnp.take_along_axis(log_probs, batch["targets"][..., None], axis=-1)[..., 0]
    return -jnp.sum(jnp.where(batch["loss_mask"], picked, 0.0))


def assert_trees_close(left: Any, right: Any, tolerance: float = 2e-5) -> None:
    """Largest difference over the largest magnitude, leaf by leaf."""
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(left), jax.tree.leaves(right), strict=True):
        scale = max(float(np.abs(y).max()), 1e-6)
        assert float(np.abs(np.asarray(x) - np.asarray(y)).max()) <= tolerance * scale, jax.tree_util.keystr(path)
