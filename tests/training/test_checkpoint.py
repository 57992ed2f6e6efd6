"""Checkpoints: the newest whole one is taken, and only by its own run."""

import shutil

import grain
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from selfrag_jax.errors import UserError
from selfrag_jax.training.checkpoint import Checkpoints


def numbers():
    """A data stream that gives 1, 2, 3, …"""
    return iter(grain.MapDataset.range(1, 100).to_iter_dataset())


def state_at(step):
    return {"trained": {"a": jnp.full((3,), float(step))}, "step": jnp.int32(step)}


@pytest.fixture
def saved(tmp_path):
    checkpoints = Checkpoints(tmp_path / "c", 2, {"seed": 0})
    data = numbers()
    for step in (1, 2, 3):
        next(data)
        checkpoints.save(step, state_at(step), data)
    checkpoints.close()
    return tmp_path / "c"


def restored(directory, identity=None):
    checkpoints = Checkpoints(directory, 2, identity or {"seed": 0})
    data = numbers()
    try:
        step, state = checkpoints.restore(jax.tree.map(jnp.zeros_like, state_at(0)), data)
    finally:
        checkpoints.close()
    return step, state, next(data)


def test_newest_is_restored_with_the_data_and_old_ones_go(saved):
    step, state, at = restored(saved)
    assert (step, int(state["step"]), at) == (3, 3, 4)
    np.testing.assert_array_equal(state["trained"]["a"], np.full(3, 3.0))
    assert sorted(path.name for path in saved.iterdir()) == ["2", "3"]


def test_nothing_saved_is_a_fresh_start(tmp_path):
    step, state, at = restored(tmp_path / "c")
    assert (step, int(state["step"]), at) == (0, 0, 1)


@pytest.mark.parametrize("part", ["state", "data"])
def test_damaged_newest_is_named_and_the_one_before_is_taken(saved, part, capfd):
    shutil.rmtree(saved / "3" / part)
    step, state, at = restored(saved)
    assert (step, int(state["step"]), at) == (2, 2, 3)
    assert "checkpoint 3 is damaged" in capfd.readouterr().err
    assert sorted(path.name.split("-")[0] for path in saved.iterdir()) == ["2", "damaged"]


def test_none_that_can_be_read_is_an_error_and_nothing_is_deleted(saved):
    for step in ("2", "3"):
        shutil.rmtree(saved / step / "state")
    with pytest.raises(UserError, match="no checkpoint can be read, 3 because"):
        restored(saved)
    assert sorted(path.name for path in saved.iterdir()) == ["2", "3"]


def test_half_written_is_not_seen(saved):
    (saved / "3").rename(saved / "3.orbax-checkpoint-tmp-7")
    assert restored(saved)[0] == 2


def test_another_run_is_refused(saved):
    with pytest.raises(UserError, match="seed=0, this one has 1"):
        restored(saved, {"seed": 1})
