"""The learning rate's course, and rates of their own for token rows."""

import jax
import numpy as np
import pytest
from training_helpers import quick_jit

from selfrag_jax.config import TrainConfig
from selfrag_jax.errors import UserError
from selfrag_jax.training.optimizer import make_optimizer, schedule


def test_linear_schedule_warms_up_and_ends_near_zero():
    rate = schedule(TrainConfig(steps=100, warmup_ratio=0.1), 2.0)
    rates = np.array([rate(step) for step in range(100)])
    np.testing.assert_allclose(rates[:10], 0.2 * np.arange(1, 11), rtol=1e-6)
    np.testing.assert_allclose(rates[10:], 2.0 * (100 - np.arange(10, 100)) / 90, rtol=1e-6)
    assert float(rate(100)) == 0.0


def test_cosine_schedule_is_half_way_in_the_middle():
    rate = schedule(TrainConfig(steps=110, warmup_ratio=10 / 110, schedule="cosine"), 1.0)
    assert float(rate(60)) == pytest.approx(0.5, abs=1e-6)


def test_other_names_are_refused():
    with pytest.raises(UserError, match="schedule='cubic'"):
        make_optimizer(TrainConfig(schedule="cubic"))
    with pytest.raises(UserError, match="token_learning_rate"):
        make_optimizer(TrainConfig(token_learning_rate=1e-3, lora_rank=0))


def test_token_rows_follow_their_own_rate_and_the_norm_is_clipped_over_all():
    adapter = {"blocks": {"q": {"a": np.ones((1, 2, 1), np.float32)}}, "tokens": {"embed": np.ones((2, 2), np.float32)}}
    config = TrainConfig(steps=10, warmup_ratio=0.0, learning_rate=1e-3, token_learning_rate=1e-2, lora_rank=1)
    optimizer = make_optimizer(config)
    gradients = {
        "blocks": {"q": {"a": np.full((1, 2, 1), 3.0, np.float32)}},
        "tokens": {"embed": np.full((2, 2), 3.0, np.float32)},
    }
    updates = quick_jit(lambda g, p: optimizer.update(g, optimizer.init(p), p)[0])(gradients, adapter)
    # Adam's first update is the rate times the sign.
    np.testing.assert_allclose(updates["blocks"]["q"]["a"], -1e-3, rtol=1e-4)
    np.testing.assert_allclose(updates["tokens"]["embed"], -1e-2, rtol=1e-4)


def test_clipping():
    optimizer = make_optimizer(TrainConfig(clip_norm=1.0, lora_rank=1))
    big, small = ({"x": np.array([s * 3.0, s * 4.0], np.float32)} for s in (1e6, 1.0))
    update = quick_jit(lambda g: optimizer.update(g, optimizer.init(g), g)[1])
    states = [update(g) for g in (big, small)]
    for x, y in zip(jax.tree.leaves(states[0]), jax.tree.leaves(states[1]), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)
