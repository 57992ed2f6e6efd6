"""What the machine can do at best: bytes read and operations done per second, measured beside what is compared."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np


def bandwidth(megabytes: int = 512) -> float:
    """Bytes per second read from memory by all cores together, the best of five readings of a large array."""
    array = np.ones(megabytes << 18, np.float32)
    parts = np.array_split(array, (os.cpu_count() or 1) * 4)
    with ThreadPoolExecutor(os.cpu_count()) as pool:

        def once() -> float:
            began = time.perf_counter()
            list(pool.map(lambda part: float(part @ part), parts))
            return array.nbytes / (time.perf_counter() - began)

        return max(once() for _ in range(5))


def product_rate(rows: int = 2048, inputs: int = 576, outputs: int = 1536) -> float:
    """Operations a second of a large float32 matrix product, a few in a row."""
    left, right = jnp.ones((rows, inputs)), jnp.ones((inputs, outputs))
    product = jax.jit(lambda x, y: x @ y)
    product(left, right).block_until_ready()
    began = time.perf_counter()
    for _ in range(4):
        product(left, right).block_until_ready()
    return 4 * 2 * rows * inputs * outputs / (time.perf_counter() - began)
