"""From a config to all that a training loop needs: the network, what is trained, the optimiser, the compiled step."""

import dataclasses
import functools
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from selfrag_jax import paths, reflection, sharding
from selfrag_jax.config import Config
from selfrag_jax.errors import UserError
from selfrag_jax.models import lora, weights
from selfrag_jax.models.llama_config import LlamaConfig
from selfrag_jax.tokenizer import Tokenizer
from selfrag_jax.training import optimizer as optimizers
from selfrag_jax.training import step as steps
from selfrag_jax.training.metrics import KINDS, token_kinds

_DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16}


@dataclasses.dataclass
class Run:
    """One training run, ready to step."""

    tokenizer: Tokenizer
    llama_config: LlamaConfig
    mesh: Mesh
    meta: lora.AdapterMeta | None  # None: every parameter is trained
    base: Any  # frozen parameters, on the devices; empty where every parameter is trained
    state: Any  # fresh, on the devices
    compiled: Any  # (state, base, batch, kinds) → (state, metrics)
    kinds: jax.Array
    batch_sharding: jax.sharding.NamedSharding

    def step(self, batch: dict[str, np.ndarray]) -> dict[str, jax.Array]:
        """Take one step with this host's part of a batch; the state is replaced."""
        placed = {
            key: jax.make_array_from_process_local_data(self.batch_sharding, value) for key, value in batch.items()
        }
        self.state, metrics = self.compiled(self.state, self.base, placed, self.kinds)
        return metrics


def make_run(config: Config, mesh: Mesh | None = None) -> Run:
    """Load the model, shard it, make the state and compile the step.

    Raises:
        UserError: a model that cannot be trained, or sizes that do not divide.
    """
    if config.model.weights not in _DTYPES:
        raise UserError(f"config.model.weights={config.model.weights} cannot be trained; expected f32 or bf16")
    if config.model.adapter and not config.train.lora_rank:
        raise UserError("config.model.adapter is what a LoRA run goes on from; set config.train.lora_rank to its rank")
    mesh = sharding.make_mesh() if mesh is None else mesh
    _check_sizes(config, mesh)
    path = paths.resolve(config.model.path)
    tokenizer = Tokenizer.load(path)
    dtype = _DTYPES[config.model.weights]
    llama_config, params = weights.load_with(
        path,
        tokenizer,
        vocab_multiple=config.model.vocab_multiple,
        dtype=dtype if config.train.lora_rank else np.float32,  # what is trained is kept in float32
    )
    meta = make_meta(config, llama_config, params, tokenizer) if config.train.lora_rank else None
    if meta is None:
        base, trained, axes = {}, params, sharding.params_axes(llama_config)
    else:
        trained = _first_adapter(config, params, llama_config, meta, tokenizer)
        axes = sharding.adapter_axes(trained, llama_config)
        base = jax.device_put(params, sharding.tree_shardings(mesh, sharding.params_axes(llama_config), params))
    trained_shardings = sharding.tree_shardings(mesh, axes, trained)
    trained = jax.device_put(trained, trained_shardings)
    network = steps.Network(
        llama_config,
        functools.partial(_merge, meta),
        train_head=True,
        kinds=KINDS,
        dtype=None if dtype == jnp.float32 else dtype,
        remat=config.train.remat,
    )
    optimizer = optimizers.make_optimizer(config.train)
    state = jax.eval_shape(lambda t: steps.init_state(t, optimizer), trained)
    shardings = sharding.state_shardings(mesh, state, trained_shardings)
    state = jax.jit(lambda t: steps.init_state(t, optimizer), out_shardings=shardings)(trained)
    kinds = jax.device_put(token_kinds(tokenizer, params["embed"].shape[0]), sharding.replicated(mesh))
    batch_sharding = sharding.batch_sharding(mesh)
    compiled = _compile(config, network, optimizer, state, shardings, base, batch_sharding, kinds)
    return Run(tokenizer, llama_config, mesh, meta, base, state, compiled, kinds, batch_sharding)


def _first_adapter(
    config: Config, params: Any, llama_config: LlamaConfig, meta: lora.AdapterMeta, tokenizer: Tokenizer
) -> lora.Adapter:
    """What training starts from: the adapter of `model.adapter`, or a fresh one that changes nothing yet."""
    if not config.model.adapter:
        return lora.init_adapter(params, llama_config, meta, jax.random.key(config.seed))
    adapter, found = lora.load_adapter(paths.resolve(config.model.adapter))
    lora.check_fits(found, params, llama_config, config.model.path, tokenizer.vocabulary.special)
    mended = {"rank": "set config.train.lora_rank to it", "alpha": "set config.train.lora_alpha to it"}
    for name in ("rank", "alpha", "targets"):
        theirs, ours = getattr(found, name), getattr(meta, name)
        if theirs != ours:
            raise UserError(
                f"config.model.adapter={config.model.adapter} has {name} {theirs}, but this run trains {name} {ours};"
                f" {mended.get(name, 'leave it empty to begin anew')}"
            )
    return adapter


def _merge(meta: lora.AdapterMeta | None, base: Any, trained: Any) -> Any:
    return trained if meta is None else lora.attach(base, trained, meta)


def make_meta(config: Config, llama_config: LlamaConfig, params: Any, tokenizer: Tokenizer) -> lora.AdapterMeta:
    """The description of the adapter that a config trains."""
    return lora.make_meta(
        params,
        llama_config,
        rank=config.train.lora_rank,
        alpha=config.train.lora_alpha,
        tokens={token: tokenizer.reflection[token] for token in reflection.TOKENS},
        base_name=pathlib.PurePath(config.model.path).name,
    )


def _compile(config, network, optimizer, state, shardings, base, batch_sharding, kinds) -> Any:
    """The step, compiled once for the run's shapes; anything else it is called with is an error, not a compilation."""
    shape = (config.data.batch_size, config.data.sequence_length)
    dtypes = {"loss_mask": jnp.bool_}
    batch = {
        key: jax.ShapeDtypeStruct(shape, dtypes.get(key, jnp.int32), sharding=batch_sharding)
        for key in ("tokens", "targets", "loss_mask", "segment_ids", "positions")
    }
    function = functools.partial(steps.train_step, network, optimizer, config.train.microbatches)
    jitted = jax.jit(function, donate_argnums=0, out_shardings=(shardings, None))
    return jitted.lower(state, base, batch, kinds).compile()


def _check_sizes(config: Config, mesh: Mesh) -> None:
    parts = mesh.shape["fsdp"] * config.train.microbatches
    if config.data.batch_size % parts:
        raise UserError(
            f"config.data.batch_size={config.data.batch_size} does not divide into {config.train.microbatches}"
            f" microbatches over {mesh.shape['fsdp']} devices; a multiple of {parts} does"
        )
