"""Where arrays lie, and that eight devices compute what one does."""

import os
import pathlib
import subprocess
import sys

import jax
import pytest
from jax.sharding import PartitionSpec

from selfrag_jax import sharding
from selfrag_jax.errors import UserError
from selfrag_jax.models import llama
from selfrag_jax.models.llama_config import LlamaConfig

SCRIPT = pathlib.Path(__file__).parent / "training" / "eight_devices.py"


def test_every_parameter_has_axes():
    config = LlamaConfig(64, 16, 32, 2, 4, 2, 8, 64, attention_bias=True, mlp_bias=True)
    mesh = sharding.make_mesh()
    shapes = llama.abstract_params(config)
    placed = sharding.tree_shardings(mesh, sharding.params_axes(config), shapes)
    assert jax.tree.structure(placed) == jax.tree.structure(shapes)
    assert placed["embed"].spec == PartitionSpec("tensor", "fsdp")
    assert placed["blocks"]["q"].spec == PartitionSpec(None, "fsdp", "tensor")
    assert placed["blocks"]["down"].spec == PartitionSpec(None, "tensor", "fsdp")


def test_a_mesh_uses_every_device():
    with pytest.raises(UserError, match="fsdp 3 × tensor 5 does not fit"):
        sharding.make_mesh(3, 5)


def test_eight_devices_equal_one():
    """LoRA and full fine-tuning on meshes of both kinds, two steps each; the script compares and prints."""
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run([sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == ["lora 4 × 2 agrees", "full 2 × 4 agrees"]
