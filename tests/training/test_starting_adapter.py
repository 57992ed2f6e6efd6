"""What a run starts from."""

import dataclasses
import json
import pathlib

import jax
import numpy as np
import pytest
import tiny_run

from selfrag_jax.config_check import validate
from selfrag_jax.errors import UserError
from selfrag_jax.models import lora
from selfrag_jax.training import card, setup, trainer


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A config that goes on from an adapter, and that adapter."""
    folder = tmp_path_factory.mktemp("run")
    config = tiny_run.make_config(folder)
    config.train.lora_rank = 2
    fresh = setup.make_run(config)
    rng = np.random.default_rng(3)
    adapter = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(np.float32), fresh.state["trained"])
    lora.save_adapter(folder / "adapter", adapter, fresh.meta, dtype=np.float32)
    config.model.adapter = str(folder / "adapter")
    return config, adapter


def test_training_goes_on_from_the_adapter_of_the_config(started):
    config, adapter = started
    run = setup.make_run(config)
    assert jax.tree.all(jax.tree.map(np.array_equal, jax.device_get(run.state["trained"]), adapter))


@pytest.mark.parametrize(
    ("rank", "said"), [(3, "has rank 2, but this run trains rank 3"), (0, "set config.train.lora_rank")]
)
def test_an_adapter_that_does_not_fit_the_run_is_refused(started, monkeypatch, rank, said):
    config, _ = started
    monkeypatch.setattr(config.train, "lora_rank", rank)
    with pytest.raises(UserError, match=said):
        setup.make_run(config)


def test_a_blend_is_of_the_trained_adapter_and_the_one_before(started, tmp_path):
    config, adapter = started
    config = dataclasses.replace(config, train=dataclasses.replace(config.train, steps=2, checkpoint_every=2))

    def written(share):
        config.train.blend = share
        trainer.train(config, tmp_path)
        found, meta = lora.load_adapter(tmp_path / "adapter")
        assert meta.training["steps"] == 2 and meta.training.get("blend", 1) == share
        told = (tmp_path / "adapter" / "README.md").read_text(encoding="utf-8")
        assert ("0.25 of the trained ones, 0.75 of those it goes on from" in told) == (share < 1)
        return found

    trained, blended, again = written(1.0), written(0.25), written(1.0)
    moved = jax.tree.map(lambda x, y: np.abs(x - y).max(), trained, adapter)
    assert max(jax.tree.leaves(moved)) > 0.01  # or a blend would show nothing
    jax.tree.map(np.testing.assert_array_equal, trained, again)
    expected = jax.tree.map(lambda before, after: 0.75 * before + 0.25 * after, adapter, trained)
    # What is written is in half precision.
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-3), blended, expected)


def test_the_product_of_blended_factors():
    rng = np.random.default_rng(0)
    (a0, b0), (a1, b1) = (({"a": rng.normal(size=(5, 2)), "b": rng.normal(size=(2, 7))}).values() for _ in range(2))
    mixed = lora.blend({"a": a0, "b": b0}, {"a": a1, "b": b1}, 0.3)
    mean = 0.7 * a0 @ b0 + 0.3 * a1 @ b1
    np.testing.assert_allclose(mixed["a"] @ mixed["b"], mean - 0.3 * 0.7 * (a1 - a0) @ (b1 - b0))


def test_a_blend_with_nothing_is_refused(started):
    config, _ = started
    without = dataclasses.replace(config, train=dataclasses.replace(config.train, blend=0.5))
    validate(without)
    with pytest.raises(UserError, match="or leave train"):
        validate(dataclasses.replace(without, model=dataclasses.replace(config.model, adapter="")))


def test_the_card_says_what_a_run_went_on_from(started):
    config, _ = started
    kinds = {"text": {"count": 2, "loss": 0.5, "accuracy": 1.0}}
    record = {"step": 1, "loss": 0.5, "tokens": 4, "learnt": 2, "kinds": kinds}
    facts = card.facts(config, [record], 1, "0" * 64)
    digest = json.loads(pathlib.Path(config.model.adapter, "adapter.json").read_text())["weights_sha256"]
    assert facts["started_from"]["weights_sha256"] == digest
    assert digest[:16] in card.render(config, facts, adapter=True)
    config = dataclasses.replace(config, model=dataclasses.replace(config.model, adapter=""))
    assert "started_from" not in card.facts(config, [record], 1, "0" * 64)
