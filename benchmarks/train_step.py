"""The training step's speed beside the arithmetic floor, for LoRA and for full fine-tuning.

    python benchmarks/train_step.py                       # the shapes of SmolLM2-135M, batch 8 × 256, LoRA
    python benchmarks/train_step.py --batch=8 --length=160 --modes=lora,full
    python benchmarks/train_step.py --layers=4            # quicker; per layer the same

Random weights, rows that fill nine tenths of every sequence, a quarter of the tokens learnt, as in packed demo rows.
The floor is the arithmetic that nothing can avoid (below) at the rate of a matrix product measured in the same run;
the two alternate and both are medians. Useful tokens are those that are not padding.

    LoRA   4 P per token (forward, and backward to the activations), full 6 P; P: numbers in the blocks' matrices
    head   4 V D per learnt token (scores, and back to the hidden states), full 6 V D
"""

import argparse
import functools
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
from floors import product_rate

from selfrag_jax.config import TrainConfig
from selfrag_jax.models import llama, lora
from selfrag_jax.models.llama_config import LlamaConfig, RopeConfig
from selfrag_jax.training import optimizer, step

NEW_TOKENS = {f"[{number}]": 49152 + number for number in range(16)}
VOCAB_ROWS = 49280


def model_config(layers: int) -> LlamaConfig:
    """SmolLM2-135M with the reflection tokens."""
    return LlamaConfig(
        vocab_size=49168, hidden_size=576, intermediate_size=1536, num_layers=layers, num_heads=9, num_kv_heads=3,
        head_dim=64, max_positions=8192, rope=RopeConfig(theta=1e5), tie_embeddings=True,
    )  # fmt: skip


def make_batch(batch: int, length: int) -> dict[str, np.ndarray]:
    """Three rows in every sequence, then padding."""
    rng = np.random.default_rng(0)
    row = max(1, length * 3 // 10)
    order = np.arange(length)
    segments = np.where(order < 3 * row, order // row + 1, 0).astype(np.int32)
    tokens = rng.integers(0, 49168, (batch, length + 1), dtype=np.int32)
    return {
        "tokens": tokens[:, :-1],
        "targets": tokens[:, 1:],
        "loss_mask": (rng.random((batch, length)) < 0.25) & (segments > 0),
        "segment_ids": np.tile(segments, (batch, 1)),
        "positions": np.tile((order % row).astype(np.int32), (batch, 1)),
    }


def make_step(mode: str, config: LlamaConfig, rank: int, batch: dict[str, np.ndarray], remat: bool):
    """(function of state → (state, metrics), fresh state, bytes of temporaries)."""
    shapes = llama.abstract_params(config, VOCAB_ROWS)
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda x: jnp.asarray(0.02 * rng.standard_normal(x.shape, np.float32)), shapes)
    if mode == "lora":
        meta = lora.make_meta(params, config, rank=rank, alpha=16.0, tokens=NEW_TOKENS, base_name="random")
        trained, base = lora.init_adapter(params, config, meta, jax.random.key(0)), params
        network = step.Network(config, lambda b, t: lora.attach(b, t, meta), True, ("text",), remat=remat)
    else:
        trained, base = params, {}
        network = step.Network(config, lambda b, t: t, True, ("text",), remat=remat)
    adamw = optimizer.make_optimizer(TrainConfig(lora_rank=rank if mode == "lora" else 0))
    state = step.init_state(trained, adamw)
    kinds = jnp.zeros(VOCAB_ROWS, jnp.int32)
    function = functools.partial(step.train_step, network, adamw, 1)
    compiled = jax.jit(function, donate_argnums=0).lower(state, base, batch, kinds).compile()
    return lambda state: compiled(state, base, batch, kinds), state, compiled.memory_analysis().temp_size_in_bytes


def floor_operations(mode: str, config: LlamaConfig, batch: dict[str, np.ndarray]) -> int:
    """Additions and multiplications of a step that nothing can avoid; padding is not counted."""
    D, F, C = config.hidden_size, config.intermediate_size, config.head_dim
    matrices = config.num_layers * (D * C * 2 * (config.num_heads + config.num_kv_heads) + 3 * D * F)
    passes = 4 if mode == "lora" else 6
    tokens, learnt = int((batch["segment_ids"] > 0).sum()), int(batch["loss_mask"].sum())
    return passes * (matrices * tokens + config.vocab_size * D * learnt)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", default="lora", help="lora, full, or both with a comma")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--remat", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    config = model_config(options.layers)
    batch = make_batch(options.batch, options.length)
    useful = int((batch["segment_ids"] > 0).sum())
    print(f"batch {options.batch} × {options.length}: {useful} tokens, {int(batch['loss_mask'].sum())} learnt")
    print("| | tokens/s | step | matrix product | floor, tokens/s | share of floor | temporaries |")
    print("|---|---|---|---|---|---|---|")
    for mode in options.modes.split(","):
        run, state, temporaries = make_step(mode, config, options.rank, batch, options.remat)
        state, metrics = run(state)
        jax.block_until_ready(metrics)
        times, rates = [], []
        for _ in range(options.rounds):
            rates.append(product_rate())
            start = time.perf_counter()
            state, metrics = run(state)
            jax.block_until_ready((state, metrics))
            times.append(time.perf_counter() - start)
        seconds, rate = statistics.median(times), statistics.median(rates)
        floor = useful * rate / floor_operations(mode, config, batch)
        speed = useful / seconds
        print(
            f"| {mode} | {speed:,.0f} | {seconds:.2f} s | {rate / 1e9:.0f} GFLOP/s | {floor:,.0f} |"
            f" {speed / floor:.0%} | {temporaries / 1e9:.1f} GB |",
            flush=True,
        )


if __name__ == "__main__":
    main()
