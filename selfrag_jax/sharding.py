"""Where arrays lie on a mesh of devices: one table from logical axes to mesh axes.

The mesh has two axes. Over "fsdp" the batch is split and parameters are stored in pieces; over "tensor" the width of
each layer is split. Parameters name their axes in `llama.block_table` and `llama.top_table`; nothing else says how they
lie.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from selfrag_jax.errors import UserError
from selfrag_jax.models import llama
from selfrag_jax.models.llama_config import LlamaConfig

MESH_AXES = ("fsdp", "tensor")
RULES: dict[str | None, str | None] = {
    "batch": "fsdp",
    "layers": None,
    "embed": "fsdp",
    "vocab": "tensor",
    "heads": "tensor",
    "kv_heads": "tensor",
    "mlp": "tensor",
    None: None,
}
Axes = tuple[str | None, ...]


def make_mesh(fsdp: int = -1, tensor: int = 1, devices: Sequence[Any] | None = None) -> Mesh:
    """A mesh over the devices (default: all), with automatic axes; -1 takes what is left.

    Raises UserError when the shape does not use every device.
    """
    devices = list(jax.devices()) if devices is None else list(devices)
    shape = (len(devices) // tensor if fsdp == -1 else fsdp, tensor)
    if shape[0] * shape[1] != len(devices):
        raise UserError(f"a mesh of fsdp {shape[0]} × tensor {shape[1]} does not fit {len(devices)} devices")
    return jax.make_mesh(shape, MESH_AXES, axis_types=(AxisType.Auto, AxisType.Auto), devices=devices)


def sharding(mesh: Mesh, axes: Axes, shape: Sequence[int]) -> NamedSharding:
    """The sharding of an array whose logical axes are `axes`; an axis that does not divide evenly is not split."""
    parts = []
    for axis, size in zip(axes, shape, strict=True):
        target = RULES[axis]
        parts.append(target if target is not None and size % mesh.shape[target] == 0 else None)
    return NamedSharding(mesh, PartitionSpec(*parts))


def replicated(mesh: Mesh) -> NamedSharding:
    """A whole copy on every device."""
    return NamedSharding(mesh, PartitionSpec())


def batch_sharding(mesh: Mesh) -> NamedSharding:
    """Of [B, T] arrays: the sequences of a batch are split over "fsdp"."""
    return NamedSharding(mesh, PartitionSpec(RULES["batch"]))


def params_axes(config: LlamaConfig) -> dict[str, Any]:
    """The logical axes of every parameter, in the shape of the tree."""
    blocks = {name: spec.axes for name, spec in llama.block_table(config).items()}
    return {name: spec.axes for name, spec in llama.top_table(config).items()} | {"blocks": blocks}


def adapter_axes(adapter: dict[str, Any], config: LlamaConfig) -> dict[str, Any]:
    """The logical axes of a LoRA adapter: the factors are split as the matrix they belong to, the rank is not."""
    table = llama.block_table(config)
    blocks = {}
    for name in adapter["blocks"]:
        layers, inputs, outputs = table[name].axes
        blocks[name] = {"a": (layers, inputs, None), "b": (layers, None, outputs)}
    return {"blocks": blocks, "tokens": {name: (None, "embed") for name in adapter["tokens"]}}


def tree_shardings(mesh: Mesh, axes: Any, tree: Any) -> Any:
    """A sharding for every leaf of `tree`, whose logical axes stand at the same place in `axes`."""
    return jax.tree.map(lambda a, x: sharding(mesh, a, x.shape), axes, tree, is_leaf=lambda a: isinstance(a, tuple))


def state_shardings(mesh: Mesh, state: Any, trained: Any) -> Any:
    """Shardings of a whole train state, given those of `state["trained"]`.

    An array of the optimiser state whose path ends in the path of a parameter, and which has its shape (a moment),
    lies as that parameter does; everything else is replicated.
    """
    by_path = {
        tuple(map(str, path)): (leaf, np.shape(array))
        for (path, leaf), array in zip(
            jax.tree_util.tree_leaves_with_path(trained), jax.tree.leaves(state["trained"]), strict=True
        )
    }

    def place(path: tuple[Any, ...], leaf: Any) -> NamedSharding:
        names = tuple(map(str, path))
        for start in range(len(names)):
            found = by_path.get(names[start:])
            if found is not None and found[1] == np.shape(leaf):
                return found[0]
        return replicated(mesh)

    return jax.tree_util.tree_map_with_path(place, state)
