"""One optimiser step as a pure function of (state, frozen base, batch), compiled once.

The state is `{"trained", "optimizer", "step"}`. What is trained is whatever tree the caller hands over: a LoRA adapter
with token rows, or every parameter; `merge(base, trained)` makes the network's parameters of it while tracing. The
frozen base is an argument of its own, so it is neither donated nor differentiated.

The loss is the mean over the learnt tokens of the whole batch: microbatches add up sums and gradients of sums, and the
count divides once.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from selfrag_jax.models import attention, llama
from selfrag_jax.models.llama_config import LlamaConfig
from selfrag_jax.training.attention import attend_whole
from selfrag_jax.training.loss import Sums, cross_entropy

Tree = Any
Batch = dict[str, jax.Array]


@dataclasses.dataclass(frozen=True)
class Network:
    """What the step needs to know of the model; static."""

    config: LlamaConfig
    merge: Callable[[Tree, Tree], Tree]  # (base, trained) → parameters
    train_head: bool  # whether the head (or the tied embedding, or its token rows) is among what is trained
    kinds: tuple[str, ...]  # names of the kinds of token, for the metrics
    dtype: Any = None  # of activations; None: that of the embedding
    remat: bool = False


def batch_loss(network: Network, params: Tree, batch: Batch, kinds_V: jax.Array) -> Sums:
    """The sums of `loss.cross_entropy` over one batch of packed sequences.

    Args:
        batch: `tokens`, `targets`, `segment_ids`, `positions` int32 [B, T] and `loss_mask` bool [B, T]. A query sees
            the keys of its own segment that are not after it; positions restart in every segment.
    """
    order_T = jnp.arange(batch["tokens"].shape[1])
    segment_BT = batch["segment_ids"]
    mask_BTT = attention.causal_mask(order_T, order_T, network.config.sliding_window)
    mask_BTT = mask_BTT & (segment_BT[:, :, None] == segment_BT[:, None, :])
    hidden_BTD, _ = llama.forward(
        params,
        network.config,
        batch["tokens"],
        batch["positions"],
        attend_whole(mask_BTT),
        dtype=network.dtype,
        remat=network.remat,
    )
    return cross_entropy(
        hidden_BTD,
        params["embed"] if network.config.tie_embeddings else params["head"],
        batch["targets"],
        batch["loss_mask"],
        kinds_V,
        len(network.kinds),
        network.config.vocab_size,
        train_head=network.train_head,
    )


def init_state(trained: Tree, optimizer: optax.GradientTransformation) -> Tree:
    """What a step changes and a checkpoint keeps: the trained tree, the optimizer's state, the steps taken."""
    return {"trained": trained, "optimizer": optimizer.init(trained), "step": jnp.zeros((), jnp.int32)}


def sum_gradients(network: Network, base: Tree, trained: Tree, batch: Batch, kinds_V, microbatches: int):
    """Sums over the batch and the gradient of the summed loss; the batch is walked in `microbatches` equal parts."""

    def loss(trained, part):
        sums = batch_loss(network, network.merge(base, trained), part, kinds_V)
        return sums.loss, sums

    gradient = jax.grad(loss, has_aux=True)
    if microbatches == 1:
        return gradient(trained, batch)
    # Every microbatch takes each m-th row: with the batch axis sharded, each device keeps its own rows.
    parts = jax.tree.map(lambda x: jnp.moveaxis(x.reshape(-1, microbatches, *x.shape[1:]), 1, 0), batch)

    def accumulate(total, part):
        return jax.tree.map(jnp.add, total, gradient(trained, part)), None

    zeros = jax.tree.map(
        lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(gradient, trained, jax.tree.map(lambda x: x[0], parts))
    )
    return jax.lax.scan(accumulate, zeros, parts)[0]


def train_step(
    network: Network,
    optimizer: optax.GradientTransformation,
    microbatches: int,
    state: Tree,
    base: Tree,
    batch: Batch,
    kinds_V: jax.Array,
) -> tuple[Tree, dict[str, jax.Array]]:
    """(state, batch) → (state after one optimiser step, metrics). Wrap it with `functools.partial` and `jax.jit`.

    Metrics, float32: `loss` (mean in nats over learnt tokens), `grad_norm` before clipping, `learnt` and `tokens`
    (counts without padding), and for each kind of token the sums `kind_loss`, `kind_correct` and `kind_count`, [G].
    """
    gradients, sums = sum_gradients(network, base, state["trained"], batch, kinds_V, microbatches)
    count = jnp.maximum(sums.learnt, 1.0)
    gradients = jax.tree.map(lambda g: (g / count).astype(g.dtype), gradients)
    updates, optimizer_state = optimizer.update(gradients, state["optimizer"], state["trained"])
    trained = optax.apply_updates(state["trained"], updates)
    metrics = {
        "loss": sums.loss / count,
        "grad_norm": optax.tree.norm(gradients),
        "learnt": sums.learnt,
        "tokens": jnp.sum(batch["segment_ids"] > 0, dtype=jnp.float32),
        "kind_loss": sums.kind_loss,
        "kind_correct": sums.kind_correct,
        "kind_count": sums.kind_count,
    }
    return {"trained": trained, "optimizer": optimizer_state, "step": state["step"] + 1}, metrics
