"""Two steps on eight (pretended) devices against the same on one. Run by test_sharding.py."""

import dataclasses
import pathlib
import tempfile

import jax
import numpy as np
import tiny_run
import training_helpers as helpers

from selfrag_jax import sharding
from selfrag_jax.training import setup


def trained(config, mesh):
    """What two steps lead to, and the metrics."""
    run = setup.make_run(config, mesh)
    lengths = [9, 20, 3, 31, 12, 7, 16, 25]
    batch = helpers.packed([[row] for row in helpers.random_rows(lengths)], config.data.sequence_length)
    metrics = [jax.device_get(run.step(batch)) for _ in range(2)]
    return run, metrics


def compare(name, config, fsdp, tensor):
    """Asserts that two steps on an fsdp × tensor mesh give the moments and metrics of one device."""
    # Moments are compared, not parameters: Adam's step is noise where a gradient is nearly zero.
    one, expected = trained(config, sharding.make_mesh(devices=jax.devices()[:1]))
    many, found = trained(config, sharding.make_mesh(fsdp, tensor))
    split = [x for x in jax.tree.leaves((many.base, many.state)) if not x.is_fully_replicated]
    assert len(split) > 10
    for left, right in zip(found, expected, strict=True):
        for key in right:
            np.testing.assert_allclose(left[key], right[key], rtol=1e-5, atol=1e-5, err_msg=key)
    helpers.assert_trees_close(many.state["optimizer"], one.state["optimizer"], 1e-4)
    print(f"{name} {fsdp} × {tensor} agrees")


def main():
    """LoRA on 4 × 2 devices, full fine-tuning on 2 × 4."""
    with tempfile.TemporaryDirectory() as folder:
        config = tiny_run.make_config(pathlib.Path(folder))
        config.data.sequence_length = 32
        compare("lora", config, 4, 2)
        full = dataclasses.replace(config, train=dataclasses.replace(config.train, lora_rank=0, microbatches=2))
        full.train.learning_rate = 1e-4
        compare("full", full, 2, 4)


if __name__ == "__main__":
    main()
