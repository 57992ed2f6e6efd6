"""One step against its slow twins: unpacked rows, the whole batch, autodiff of the plain network."""

import dataclasses
import functools

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import training_helpers as helpers
from training_helpers import CONFIG, KINDS_V, assert_trees_close, quick_jit

from selfrag_jax.models import lora
from selfrag_jax.training import step

LENGTHS = [5, 7, 3, 9, 4, 6, 11, 2]


@pytest.fixture(scope="module")
def batch():
    rows = helpers.random_rows(LENGTHS)
    return helpers.packed([rows[0:3], rows[3:5], rows[5:6], rows[6:8]], 16)


def summed(network, trained, batch, microbatches=1):
    function = functools.partial(step.sum_gradients, network, microbatches=microbatches)
    return quick_jit(function)(helpers.base(), trained, batch, KINDS_V)


@pytest.mark.parametrize("remat", [False, True])
def test_lora_gradients_equal_autodiff_of_the_merged_network(batch, remat):
    trained, meta = helpers.adapter()
    gradients, sums = summed(helpers.lora_network(meta, remat=remat), trained, batch)

    def plain(trained):
        return helpers.plain_loss(CONFIG, lora.merge(jax.tree.map(jnp.asarray, helpers.base()), trained, meta), batch)

    expected, expected_gradients = quick_jit(jax.value_and_grad(plain))(trained)
    assert float(sums.loss) == pytest.approx(float(expected), rel=1e-5)
    assert_trees_close(gradients, expected_gradients, 5e-5)
    assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(gradients))


@pytest.mark.parametrize("tied", [True, False])
def test_full_gradients_equal_autodiff_of_the_plain_network(batch, tied):
    config = dataclasses.replace(CONFIG, tie_embeddings=tied, sliding_window=4)
    params = helpers.base(config)
    gradients, _ = quick_jit(functools.partial(step.sum_gradients, helpers.full_network(config), microbatches=1))(
        {}, params, batch, KINDS_V
    )
    assert_trees_close(gradients, quick_jit(jax.grad(lambda p: helpers.plain_loss(config, p, batch)))(params), 5e-5)


def test_packed_equals_unpacked():
    rows = helpers.random_rows(LENGTHS)
    trained, meta = helpers.adapter()
    network = helpers.lora_network(meta)
    together = summed(network, trained, helpers.packed([rows[0:3], rows[3:5], rows[5:6], rows[6:8]], 16))
    apart = summed(network, trained, helpers.packed([[row] for row in rows], 16))
    assert_trees_close(together, apart, 5e-5)


@pytest.mark.parametrize("microbatches", [2])
def test_microbatches_equal_the_whole_batch_with_uneven_masks(batch, microbatches):
    uneven = batch | {"loss_mask": batch["loss_mask"] & (np.arange(4)[:, None] != 1)}  # one sequence learns nothing
    trained, meta = helpers.adapter()
    optimizer = optax.adam(1e-2)
    states = []
    for parts in (1, microbatches):
        function = functools.partial(step.train_step, helpers.lora_network(meta), optimizer, parts)
        states.append(quick_jit(function)(step.init_state(trained, optimizer), helpers.base(), uneven, KINDS_V))
    (_, metrics), (_, expected) = states[1], states[0]
    assert metrics["loss"] == pytest.approx(float(expected["loss"]), rel=1e-6)
    assert metrics["grad_norm"] == pytest.approx(float(expected["grad_norm"]), rel=1e-5)
    assert metrics["learnt"] == uneven["loss_mask"].sum()
    assert metrics["tokens"] == sum(LENGTHS)
    assert_trees_close(states[1][0]["optimizer"], states[0][0]["optimizer"], 5e-5)


def test_token_rows_learn_as_embedding_and_as_head():
    """With the new token only read, and only to be predicted, its row gets a gradient either way."""
    trained, meta = helpers.adapter()
    network = helpers.lora_network(meta)
    row = {
        "tokens": np.array([3, 58, 4], np.int32),
        "targets": np.array([5, 6, 7], np.int32),
        "loss_mask": np.array([0, 0, 1], bool),
    }
    read, _ = summed(network, trained, helpers.packed([[row]], 4))
    target = {
        "tokens": np.array([3, 4, 5], np.int32),
        "targets": np.array([4, 5, 60], np.int32),
        "loss_mask": np.array([0, 0, 1], bool),
    }
    predicted, _ = summed(network, trained, helpers.packed([[target]], 4))
    rows = [np.abs(gradient["tokens"]["embed"]).max(axis=1) for gradient in (read, predicted)]
    assert rows[0].argmax() == 1 and rows[1].argmax() == 3


def test_no_gradient_crosses_segments_or_runs_ahead():
    """d loss(position) / d embedding(token): zero for later tokens and for tokens of other segments."""
    params = helpers.base()
    rows = helpers.random_rows([6, 5])
    batch = helpers.packed([rows], 12)
    network = dataclasses.replace(helpers.full_network(), train_head=False)

    # Distinct ids make the embedding's gradient one row a token; with a frozen head only the input side adds to it.
    used = batch | {"tokens": np.arange(12, dtype=np.int32)[None], "targets": np.full((1, 12), 40, np.int32)}

    @quick_jit
    @jax.grad
    def influence(embed, position):
        only = used | {"loss_mask": jnp.arange(12)[None] == position}
        return step.batch_loss(network, params | {"embed": embed}, only, KINDS_V).loss

    seen = np.array([np.abs(influence(params["embed"], position))[:12].max(axis=1) > 0 for position in range(11)])
    for position in range(11):
        start = 0 if position < 6 else 6
        assert seen[position].tolist() == [start <= token <= position for token in range(12)]


def test_base_is_unchanged_and_not_donated(batch):
    trained, meta = helpers.adapter()
    optimizer = optax.sgd(1e-2)
    base = jax.tree.map(lambda x: jnp.array(x, copy=True), helpers.base())
    function = quick_jit(functools.partial(step.train_step, helpers.lora_network(meta), optimizer, 1), donate_argnums=0)
    state = step.init_state(jax.tree.map(jnp.array, trained), optimizer)
    state, _ = function(state, base, batch, KINDS_V)
    assert state["step"] == 1
    assert all(
        np.array_equal(x, y) for x, y in zip(jax.tree.leaves(base), jax.tree.leaves(helpers.base()), strict=True)
    )
    assert any(
        not np.array_equal(x, y)
        for x, y in zip(jax.tree.leaves(state["trained"]), jax.tree.leaves(trained), strict=True)
    )


def test_no_gradient_of_a_frozen_matrix_is_formed(batch):
    """No product in the backward pass of an adapter has the shape of the table or of a weight of a block."""
    trained, meta = helpers.adapter()
    function = functools.partial(step.sum_gradients, helpers.lora_network(meta), microbatches=1)
    three = {name: array[:3] for name, array in batch.items()}  # 48 tokens, a size that no weight has
    jaxpr = jax.make_jaxpr(function)(helpers.base(), trained, three, KINDS_V)
    products = [equation for equation in equations(jaxpr.jaxpr) if equation.primitive.name == "dot_general"]
    over_tokens = [e for e in products if e.invars[0].aval.shape[e.params["dimension_numbers"][0][0][0]] == 48]
    over_tokens = [e for e in over_tokens if e.outvars[0].aval.ndim == 2]  # not the sums by kind
    assert len(over_tokens) == 2 * 7 + 1  # for a and b of seven matrices, and for the token rows
    assert all(min(equation.outvars[0].aval.shape) <= 4 for equation in over_tokens)


def equations(jaxpr):
    """Every equation, those of inner programs too."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            yield from equations(inner)
