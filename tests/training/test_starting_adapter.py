"""What a run starts from."""

import dataclasses
import json
import pathlib

import jax
import numpy as np
import pytest
import tiny_run

from selfrag_jax.errors import UserError
from selfrag_jax.models import lora
from selfrag_jax.training import card, setup


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
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(run.state["trained"]), adapter)


@pytest.mark.parametrize(
    ("rank", "said"), [(3, "has rank 2, but this run trains rank 3"), (0, "set config.train.lora_rank")]
)
def test_an_adapter_that_does_not_fit_the_run_is_refused(started, monkeypatch, rank, said):
    config, _ = started
    monkeypatch.setattr(config.train, "lora_rank", rank)
    with pytest.raises(UserError, match=said):
        setup.make_run(config)


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
