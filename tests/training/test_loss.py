"""The loss at gathered positions against scores at every position."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from training_helpers import KINDS_V, ROWS, assert_trees_close, quick_jit

from selfrag_jax.models.linear import TokenRows
from selfrag_jax.training.loss import cross_entropy

VOCAB = 61


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    hidden = jnp.asarray(rng.normal(size=(3, 10, 8)), jnp.float32)
    head = TokenRows(
        jnp.asarray(rng.normal(size=(ROWS, 8)), jnp.float32), jnp.asarray(rng.normal(size=(4, 8)), jnp.float32), 57
    )
    targets = jnp.asarray(rng.integers(0, VOCAB, (3, 10)), jnp.int32)
    return hidden, head, targets, jnp.asarray(rng.random((3, 10)) < 0.5)


def plain(hidden, head, targets, mask):
    table = head.base.at[57:61].set(head.rows)
    log_probs = jax.nn.log_softmax((hidden @ table.T)[..., :VOCAB])
    return -jnp.sum(jnp.where(mask, jnp.take_along_axis(log_probs, targets[..., None], -1)[..., 0], 0.0))


def gathered(hidden, head, targets, mask, chunk):
    return cross_entropy(hidden, head, targets, mask, KINDS_V, 2, VOCAB, chunk=chunk)


@pytest.mark.parametrize("chunk", [1, 7, 256])  # 7 divides nothing; 256 is larger than the batch
def test_value_and_gradients_equal_full_scores(parts, chunk):
    hidden, head, targets, mask = parts

    def of(function):
        both = jax.value_and_grad(lambda h, rows, m: function(h, TokenRows(head.base, rows, 57), m), (0, 1))
        return quick_jit(both)

    fast = of(lambda h, t, m: gathered(h, t, targets, m, chunk).loss)
    slow = of(lambda h, t, m: plain(h, t, targets, m))
    for learnt in (mask, jnp.zeros_like(mask), jnp.ones_like(mask)):
        value, grads = fast(hidden, head.rows, learnt)
        expected, expected_grads = slow(hidden, head.rows, learnt)
        assert value == pytest.approx(float(expected), rel=1e-6)
        assert_trees_close(grads, expected_grads, 1e-5)


def test_whole_table_gets_its_gradient(parts):
    hidden, head, targets, mask = parts
    table = head.base.at[57:61].set(head.rows)
    got = quick_jit(jax.grad(lambda t: gathered(hidden, t, targets, mask, 4).loss))(table)
    expected = quick_jit(jax.grad(lambda t: plain(hidden, TokenRows(t, t[57:61], 57), targets, mask)))(table)
    assert_trees_close(got, expected, 1e-5)
    assert not np.any(got[VOCAB:])


def test_counts_and_kinds(parts):
    hidden, head, targets, mask = parts
    sums = quick_jit(gathered, static_argnums=4)(hidden, head, targets, mask, 4)
    scores = np.asarray(hidden @ head.base.at[57:61].set(head.rows).T)[..., :VOCAB]
    learnt, right = np.asarray(mask), scores.argmax(-1) == np.asarray(targets)
    for kind, chosen in enumerate([np.asarray(targets) < 57, np.asarray(targets) >= 57]):
        assert sums.kind_count[kind] == (learnt & chosen).sum()
        assert sums.kind_correct[kind] == (learnt & chosen & right).sum()
    assert sums.learnt == learnt.sum() == sums.kind_count.sum()
    assert float(sums.kind_loss.sum()) == pytest.approx(float(sums.loss), rel=1e-6)


def test_targets_without_loss_change_nothing(parts):
    hidden, head, targets, mask = parts
    other = jnp.where(mask, targets, (targets + 5) % VOCAB)
    fast = quick_jit(gathered, static_argnums=4)
    assert fast(hidden, head, targets, mask, 4).loss == fast(hidden, head, other, mask, 4).loss


def test_frozen_head_gets_no_gradient(parts):
    hidden, head, targets, mask = parts

    def loss(table):
        return cross_entropy(hidden, table, targets, mask, KINDS_V, 2, VOCAB, train_head=False).loss

    assert not np.any(quick_jit(jax.grad(loss))(head.base))
