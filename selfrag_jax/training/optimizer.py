"""AdamW with warm-up, decay and clipping, as the config says."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from selfrag_jax.config import TrainConfig
from selfrag_jax.errors import UserError


def schedule(config: TrainConfig, peak: float) -> optax.Schedule:
    """Learning rate at a step (from 0): linear warm-up over `warmup_ratio` of the run, then linear or cosine to 0.

    Raises UserError for another name.
    """
    if config.schedule not in ("linear", "cosine"):
        raise UserError(f"config.train.schedule={config.schedule!r}; expected linear or cosine")
    warmup = max(1, round(config.warmup_ratio * config.steps))

    def rate(step: jax.typing.ArrayLike) -> jax.Array:
        step = jnp.asarray(step, jnp.float32)
        left = jnp.clip((config.steps - step) / max(1, config.steps - warmup), 0.0, 1.0)
        decay = left if config.schedule == "linear" else 0.5 * (1 - jnp.cos(jnp.pi * left))
        return peak * jnp.where(step < warmup, (step + 1) / warmup, decay)

    return rate


def make_optimizer(config: TrainConfig) -> optax.GradientTransformation:
    """Clipping by the norm over everything trained, then AdamW; an adapter's token rows may have a rate of their own.

    Raises UserError where `token_learning_rate` is given and there is no adapter.
    """

    def adamw(peak: float) -> optax.GradientTransformation:
        return optax.adamw(schedule(config, peak), weight_decay=config.weight_decay)

    clip = optax.clip_by_global_norm(config.clip_norm) if config.clip_norm > 0 else optax.identity()
    if config.token_learning_rate <= 0:
        return optax.chain(clip, adamw(config.learning_rate))
    if config.lora_rank == 0:
        raise UserError("config.train.token_learning_rate is for adapters; leave it 0 where train.lora_rank is 0")
    parts = {"blocks": adamw(config.learning_rate), "tokens": adamw(config.token_learning_rate)}
    return optax.chain(clip, optax.multi_transform(parts, _parts_of))


def _parts_of(adapter: dict[str, Any]) -> Any:
    return {name: jax.tree.map(lambda _, n=name: n, tree) for name, tree in adapter.items()}
