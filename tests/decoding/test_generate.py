"""The device functions against plain readings of whole sequences."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from selfrag_jax.decoding import cache, generate
from selfrag_jax.decoding.model import Model
from selfrag_jax.models import llama, weights
from selfrag_jax.tokenizer import Tokenizer
from tests.decoding.tiny import EOS, tiny

BUCKET, MAX_NEW, SIZE = 16, 16, 64
PROMPTS = [[3, 1, 4, 1, 5], [9, 2, 6, 5, 3, 5, 8, 9, 7]]
SUFFIXES = [[[42, 46, 10, 11, 47], [42, 46, 7, 8, 9, 1, 2, 3, 47], []], [[41], [42, 46, 30, 47], [43, 5, 6]]]


def extend(model: Model, prefix, parents, tokens):
    width = 16
    block = np.array([[*ids, *[0] * (width - len(ids))] for ids in tokens], np.int32)
    counts = np.array([len(ids) for ids in tokens], np.int32)
    return generate.extend(
        model.params, prefix, np.array(parents), block, counts, model.control(), config=model.config, size=SIZE
    )


BUDGETS = [[16, 16, 9], [9, 4, 16]]  # of each row's candidates


def two_prefixes(model: Model):
    return extend(model, cache.empty_prefix(model.config, 2, SIZE, model.dtype), [0, 1], PROMPTS)


def run(model: Model, prefix, suffixes, budget, valid=None):
    """Prefill and decode rows × candidates; the readout, the counts, and the last hidden states of the prefill."""
    rows, most = len(suffixes), len(suffixes[0])
    tokens = np.zeros((rows, most, BUCKET), np.int32)
    lengths = np.zeros((rows, most), np.int32)
    for r, row in enumerate(suffixes):
        for n, ids in enumerate(row):
            tokens[r, n, : len(ids)], lengths[r, n] = ids, len(ids)
    k, v = cache.empty_suffix(model.config, rows, most, BUCKET + MAX_NEW, model.dtype)
    # What lies in the padding must never be seen.
    k, v = k + 1e3, v - 1e3
    last, k, v = generate.prefill(model.params, prefix, tokens, lengths, k, v, config=model.config)
    valid = np.ones((rows, most), bool) if valid is None else valid
    out, counts, _, _ = generate.decode(
        model.params, prefix, last, lengths, valid, np.asarray(budget, np.int32), model.control(), k, v,
        config=model.config, bucket=BUCKET, max_new=MAX_NEW,
    )  # fmt: skip
    return jax.device_get((out, counts, last))


def plain_greedy(model: Model, context: list[int], budget: int):
    """Greedy tokens and the scores they were chosen from, by reading the whole sequence anew for every token."""
    ids, rows = list(context), []
    width = 64
    while True:
        padded = np.array(ids + [0] * (width - len(ids)), np.int32)
        rows.append(np.asarray(plain_logits(model, padded))[len(ids) - 1])
        ids.append(int(rows[-1].argmax()))
        if ids[-1] in (41, 42, 43, EOS) or len(rows) == budget:
            return ids[len(context) :], np.stack(rows)


def plain_logits(model: Model, tokens):
    return _plain(model.params, model.config, tokens)


_plain = jax.jit(llama.causal_lm, static_argnums=1)


def check_against_plain(model: Model, out, counts, contexts, budget):
    for (r, n), context in contexts.items():
        tokens, rows = plain_greedy(model, context, budget[r][n])
        count = counts[r, n]
        assert out.token[r, n, :count].tolist() == tokens
        np.testing.assert_allclose(out.reflection[r, n, :count], rows[:, model.ids.array], rtol=1e-4, atol=1e-4)
        normaliser = np.log(np.exp(rows - rows.max(-1, keepdims=True)).sum(-1)) + rows.max(-1)
        np.testing.assert_allclose(out.log_norm[r, n, :count], normaliser, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(out.logprob[r, n, :count], rows.max(-1) - normaliser, atol=1e-4)


@pytest.mark.parametrize("window", [0, 6])
def test_cached_is_uncached_and_a_shared_prefix_is_a_copied_one(window):
    """Every candidate decoded from shared prefix and own suffix equals prefix + suffix read as one sequence."""
    model = tiny(1, window=window)
    prefix, first = two_prefixes(model)
    budget = BUDGETS
    out, counts, _ = run(model, prefix, SUFFIXES, budget)
    contexts = {(r, n): PROMPTS[r] + SUFFIXES[r][n] for r in range(2) for n in range(3)}
    check_against_plain(model, out, counts, contexts, budget)
    for r, prompt in enumerate(PROMPTS):
        rows = np.asarray(plain_logits(model, np.array(prompt + [0] * (64 - len(prompt)), np.int32)))[len(prompt) - 1]
        np.testing.assert_allclose(first.reflection[r], rows[model.ids.array], rtol=1e-4, atol=1e-4)
        assert first.token[r] == rows.argmax()


def test_extending_is_reading_at_once_and_rows_follow_their_parents():
    model = tiny(1)
    prefix, _ = two_prefixes(model)
    longer, readout = extend(model, prefix, [1, 0], [[20, 21, 22], []])
    assert longer.length_R.tolist() == [len(PROMPTS[1]) + 3, len(PROMPTS[0])]
    at_once, wanted = extend(model, cache.empty_prefix(model.config, 2, SIZE, model.dtype), [0, 1], [
        PROMPTS[1] + [20, 21, 22], PROMPTS[0]
    ])  # fmt: skip
    np.testing.assert_allclose(readout.reflection, wanted.reflection, atol=1e-4)
    np.testing.assert_allclose(longer.last_RD, at_once.last_RD, atol=1e-4)
    filled = np.moveaxis(np.asarray(longer.k), cache.PREFIX_ORDER.index("S"), 1)
    both = np.moveaxis(np.asarray(at_once.k), cache.PREFIX_ORDER.index("S"), 1)
    for r, length in enumerate(longer.length_R):
        np.testing.assert_allclose(filled[r, :length], both[r, :length], atol=1e-4)
    budget = BUDGETS
    out, counts, _ = run(model, longer, SUFFIXES, budget)
    prompts = [PROMPTS[1] + [20, 21, 22], PROMPTS[0]]
    check_against_plain(
        model, out, counts, {(r, n): prompts[r] + SUFFIXES[r][n] for r in range(2) for n in range(3)}, budget
    )


def test_a_batch_is_one_by_one_and_padding_is_ignored():
    model = tiny(1)
    prefix, _ = two_prefixes(model)
    out, counts, _ = run(model, prefix, SUFFIXES, BUDGETS)
    for r in range(2):
        for n in range(3):
            # The candidate alone, among others that are padding full of other tokens.
            alone = [[SUFFIXES[r][n]] + [[30 + i] * 9 for i in range(2)], [[5] * 12] * 3]
            one, _ = extend(model, prefix, [r, 1 - r], [[], []])
            valid = np.zeros((2, 3), bool)
            valid[0, 0] = True
            found, one_count, _ = run(model, one, alone, [[BUDGETS[r][n], 16, 16], [16] * 3], valid)
            count = counts[r, n]
            assert one_count[0].tolist() == [count, 0, 0] and one_count[1].tolist() == [0, 0, 0]
            assert found.token[0, 0, :count].tolist() == out.token[r, n, :count].tolist()
            np.testing.assert_allclose(found.reflection[0, 0, :count], out.reflection[r, n, :count], atol=1e-4)


def test_padded_vocabulary_rows_are_never_chosen():
    model = tiny(1)
    loud = model.params | {"head": model.params["head"].at[model.config.vocab_size :].set(100.0)}
    padded = Model(loud, model.config, model.tokenizer, model.dtype)
    prefix, _ = two_prefixes(padded)
    out, counts, _ = run(padded, prefix, SUFFIXES, BUDGETS)
    assert out.token.max() < model.config.vocab_size
    assert np.isfinite(out.logprob).all() and counts.min() >= 1


def test_the_loop_has_no_temporary_the_size_of_a_cache():
    model = tiny(1)
    c = dataclasses.replace(model.config, num_layers=8)  # so that one layer is little beside the whole
    params = llama.abstract_params(c)
    size = 2048
    k = jax.ShapeDtypeStruct(cache.shape(c, cache.SUFFIX_ORDER, R=2, N=3, S=size), jnp.float32)
    prefix = jax.eval_shape(lambda: cache.empty_prefix(c, 2, SIZE, model.dtype))
    integers = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.int32)  # noqa: E731
    compiled = generate.decode.lower(
        params, prefix, jax.ShapeDtypeStruct((2, 3, c.hidden_size), jnp.float32), integers(2, 3),
        jax.ShapeDtypeStruct((2, 3), jnp.bool_), integers(2, 3), model.control(), k, k,
        config=c, bucket=size - MAX_NEW, max_new=MAX_NEW,
    ).compile()  # fmt: skip
    memory = compiled.memory_analysis()
    cache_bytes = k.size * 4
    assert memory.temp_size_in_bytes < cache_bytes, "a whole cache (k or v) is copied"
    assert memory.alias_size_in_bytes >= 2 * cache_bytes, "the caches are not donated"


def test_greedy_story(assets):
    """A trained model through prefix, suffix and loop, character for character (MANIFEST.md)."""
    folder = assets / "stories260K"
    tokenizer = Tokenizer.load(folder)
    begin = json.loads((folder / "config.json").read_text())["bos_token_id"]
    config, params = weights.load(folder, new_tokens=tokenizer.num_added, vocab_multiple=8)
    # The added rows are the mean of the others; a story holds none of them.
    model = Model(jax.tree.map(jnp.asarray, params), config, tokenizer, jnp.dtype(jnp.float32))
    wanted = (folder / "greedy.txt").read_text()
    prefix, _ = extend(model, cache.empty_prefix(config, 1, SIZE, model.dtype), [0], [[begin]])
    k, v = cache.empty_suffix(config, 1, 1, 1 + 256, model.dtype)
    zero = np.zeros((1, 1), np.int32)
    last, k, v = generate.prefill(model.params, prefix, zero[..., None], zero, k, v, config=config)
    out, counts, _, _ = generate.decode(
        model.params, prefix, last, zero, np.ones((1, 1), bool), np.array([[256]], np.int32), model.control(), k, v,
        config=config, bucket=1, max_new=256,
    )  # fmt: skip
    story = tokenizer.decode(out.token[0, 0, : counts[0, 0]], first=True)
    assert len(wanted) > 500 and story[: len(wanted)] == wanted
