"""The adapter: what is trained, attached = merged, and its files."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from llama_helpers import CASES, distance, make_llama, read_at, write_hf

from selfrag_jax.errors import UserError
from selfrag_jax.models import llama, lora, weights
from selfrag_jax.models.linear import LoraWeight, TokenRows

TOKENS = {f"[new {i}]": 64 + i for i in range(5)}
IDS = np.concatenate([make_llama.tokens(CASES["gqa"])[:20], list(TOKENS.values())]).astype(np.int32)


def _model(tmp_path, case="gqa", dtype=np.float32, **more):
    write_hf(tmp_path, CASES[case])
    config, params = weights.load(tmp_path, new_tokens=len(TOKENS), vocab_multiple=16, dtype=dtype)
    options = {"rank": 4, "alpha": 8.0, "tokens": TOKENS, "base_name": "tiny"} | more
    return config, params, lora.make_meta(params, config, **options)


def _trained(params, config, meta):
    """An adapter as training might leave it: every value away from where it began."""
    fresh = lora.init_adapter(params, config, meta, jax.random.key(0))
    random = np.random.RandomState(1)
    return jax.tree.map(lambda leaf: leaf + 0.1 * random.standard_normal(leaf.shape).astype(np.float32), fresh)


@pytest.mark.parametrize("case", ["gqa", "tied"])
def test_a_fresh_adapter_changes_nothing(case, tmp_path):
    config, params, meta = _model(tmp_path, case)
    adapter = lora.init_adapter(params, config, meta, jax.random.key(0))
    assert set(adapter["blocks"]) == set(lora.TARGETS)
    assert adapter["blocks"]["down"]["a"].shape == (2, 80, 4)
    assert adapter["blocks"]["k"]["b"].shape == (2, 4, 24)
    assert set(adapter["tokens"]) == ({"embed", "head"} if case == "gqa" else {"embed"})
    np.testing.assert_array_equal(adapter["tokens"]["embed"], params["embed"][64:69])
    a = np.asarray(adapter["blocks"]["gate"]["a"])
    assert 0.8 * 48**-0.5 < np.abs(a).max() <= 48**-0.5
    wanted = read_at(params, config, IDS)
    attached = lora.attach(params, adapter, meta)
    assert distance(read_at(attached, config, IDS)[:, :69], wanted[:, :69]) < 1e-6


@pytest.mark.parametrize("case", ["gqa", "tied", "biases"])
def test_attached_equals_merged(case, tmp_path):
    config, params, meta = _model(tmp_path, case)
    adapter = _trained(params, config, meta)
    attached = lora.attach(params, adapter, meta)
    assert isinstance(attached["blocks"]["q"], LoraWeight)
    assert isinstance(attached["embed"], TokenRows)
    assert attached["blocks"]["q"].base is params["blocks"]["q"]
    before = jax.tree.map(np.copy, params)
    merged = lora.merge(params, adapter, meta)
    jax.tree.map(np.testing.assert_array_equal, params, before)
    assert {type(leaf) for leaf in jax.tree.leaves(merged)} == {np.ndarray}
    found, wanted = (read_at(tree, config, IDS)[:, :69] for tree in (attached, merged))
    assert distance(found, wanted) < 1e-5
    assert distance(found, read_at(params, config, IDS)[:, :69]) > 0.05
    on_device = lora.merge(jax.device_put(params), adapter, meta)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), on_device, merged)
    in_place = lora.merge(params, adapter, meta, in_place=True)
    assert in_place["blocks"]["q"] is params["blocks"]["q"]
    jax.tree.map(np.testing.assert_array_equal, in_place, merged)


def test_merged_weights_by_hand(tmp_path):
    config, params, meta = _model(tmp_path, targets=("up",))
    adapter = _trained(params, config, meta)
    merged = lora.merge(params, adapter, meta)
    a, b = (np.asarray(adapter["blocks"]["up"][part], np.float64) for part in ("a", "b"))
    for layer in range(2):
        wanted = params["blocks"]["up"][layer] + 8.0 / 4 * a[layer] @ b[layer]
        np.testing.assert_allclose(merged["blocks"]["up"][layer], wanted, atol=1e-6)
    assert merged["blocks"]["q"] is params["blocks"]["q"]
    np.testing.assert_array_equal(merged["head"][64:69], adapter["tokens"]["head"])
    np.testing.assert_array_equal(merged["head"][:64], params["head"][:64])


def test_an_adapter_on_int8_weights(tmp_path):
    config, params, meta = _model(tmp_path)
    adapter = _trained(params, config, meta)
    attached = lora.attach(weights.quantize(params, config), adapter, meta)
    wanted = read_at(lora.merge(params, adapter, meta), config, IDS)[:, :69]
    assert distance(read_at(attached, config, IDS)[:, :69], wanted) < 0.15


@pytest.mark.parametrize("case", ["gqa", "tied"])
def test_gradients_reach_all_of_the_adapter_and_match_differences(case, tmp_path):
    config, params, meta = _model(tmp_path, case)
    adapter, params = _trained(params, config, meta), jax.device_put(params)

    @jax.jit
    def loss(adapter):
        logits = llama.causal_lm(lora.attach(params, adapter, meta), config, jnp.asarray(IDS))
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(IDS) - 1), IDS[1:]])

    gradient = jax.jit(jax.grad(loss))(adapter)
    assert jax.tree.structure(gradient) == jax.tree.structure(adapter)
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradient):
        assert np.isfinite(leaf).all(), path
        assert np.abs(leaf).max() > 1e-5, path
    directions = jax.tree.map(lambda g: g / jnp.linalg.norm(g), gradient)
    for path in ("blocks", "tokens"):
        step = 1e-3
        moved = [{**adapter, path: jax.tree.map(lambda x, d, s=s: x + s * d, adapter[path], directions[path])}
                 for s in (step, -step)]  # fmt: skip
        slope = (loss(moved[0]) - loss(moved[1])) / (2 * step)
        wanted = sum(
            jnp.vdot(g, d) for g, d in zip(*map(jax.tree.leaves, (gradient[path], directions[path])), strict=True)
        )
        np.testing.assert_allclose(slope, wanted, rtol=2e-2)


# Files


def test_the_files_give_the_adapter_back(tmp_path):
    config, params, meta = _model(tmp_path / "base", training={"steps": 3})
    adapter = _trained(params, config, meta)
    lora.save_adapter(tmp_path / "adapter", adapter, meta)
    assert sorted(path.name for path in (tmp_path / "adapter").iterdir()) == ["adapter.json", "adapter.safetensors"]
    again, again_meta = lora.load_adapter(tmp_path / "adapter")
    assert again_meta == meta
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, np.asarray(b).astype(np.float16)), again, adapter)
    lora.save_adapter(tmp_path / "adapter", adapter, meta, dtype=np.float32)
    jax.tree.map(np.testing.assert_array_equal, lora.load_adapter(tmp_path / "adapter")[0], adapter)
    lora.check_fits(again_meta, params, config, "tiny", TOKENS)
    adapter["blocks"]["q"]["a"] = adapter["blocks"]["q"]["a"].at[0, 0, 0].set(1e6)
    with pytest.raises(ValueError, match=r"blocks\.q\.a holds values that are not finite in float16"):
        lora.save_adapter(tmp_path / "adapter", adapter, meta)


def test_an_adapter_of_smollm2s_size_fits_in_six_megabytes(tmp_path):
    hf = CASES["tied"] | {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
    }
    config = weights.llama_config.from_hf(hf, "test")
    meta = lora.AdapterMeta(8, 16.0, lora.TARGETS, {f"[{i}]": 48 + i for i in range(16)}, "x", "y", {})
    tables = {"embed": np.zeros((64, 576), np.float32)}
    adapter = lora.init_adapter(tables, config, meta, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(adapter)) == 2_442_240 + 16 * 576
    lora.save_adapter(tmp_path, adapter, meta)
    assert (tmp_path / "adapter.safetensors").stat().st_size < 5_000_000


def test_the_fingerprint_is_of_the_weights_alone(tmp_path):
    config, params, meta = _model(tmp_path)
    same = meta.base_fingerprint
    bare_config, bare = weights.load(tmp_path)
    assert lora.fingerprint(bare, bare_config) == same
    half_config, half = weights.load(tmp_path, dtype=ml_dtypes.bfloat16)
    assert lora.fingerprint(half, half_config) == same
    assert lora.fingerprint(jax.device_put(params), config) == same
    for name in ("q", "down", "attn_norm"):
        changed = {**params, "blocks": {**params["blocks"], name: params["blocks"][name] * 1.05}}
        assert lora.fingerprint(changed, config) != same
    assert lora.fingerprint({**params, "embed": params["embed"] * 1.05}, config) != same


def test_the_fingerprint_ignores_the_added_rows(tmp_path):
    config, params, meta = _model(tmp_path)
    adapter = _trained(params, config, meta)
    changed = {**params, "embed": lora.merge(params, adapter, meta)["embed"]}
    assert lora.fingerprint(changed, config) == meta.base_fingerprint


def test_unfit_adapters_are_refused(tmp_path):
    config, params, meta = _model(tmp_path)
    other = {**params, "blocks": {**params["blocks"], "q": params["blocks"]["q"] * 1.05}}
    cases = [
        (meta, other, config, None, r"trained on tiny .* but here holds other weights .* set model\.path"),
        (meta, params, dataclasses.replace(config, num_layers=3), None, "num_layers 2.* here has 3"),
        (meta, params, config, {**TOKENS, "[new 1]": 3}, r"has \[new 1\] at id 65, but the tokenizer of here has not"),
        (meta, params, dataclasses.replace(config, vocab_size=64), None, r"has \[new 0\] at id 64"),
    ]
    for wrong_meta, tree, wrong_config, tokens, message in cases:
        with pytest.raises(UserError, match=message) as caught:
            lora.check_fits(wrong_meta, tree, wrong_config, "here", tokens)
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="not consecutive"):
        lora.make_meta(params, config, rank=4, alpha=8.0, tokens={"a": 64, "b": 66}, base_name="tiny")


def test_missing_truncated_and_mixed_files(tmp_path):
    config, params, meta = _model(tmp_path / "base")
    folder = tmp_path / "adapter"
    lora.save_adapter(folder, _trained(params, config, meta), meta)
    file, card = folder / "adapter.safetensors", folder / "adapter.json"
    whole, text = file.read_bytes(), card.read_text()

    def refused(message):
        with pytest.raises(UserError, match=message) as caught:
            lora.load_adapter(folder)
        assert "\n" not in str(caught.value)

    file.write_bytes(whole[:-10])
    refused(r"adapter\.safetensors: truncated")
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    refused(r"not the file that adapter\.json was written with")
    file.unlink()
    refused(r"adapter\.safetensors: cannot be read")
    file.write_bytes(whole)
    card.write_text(text[:-20])
    refused(r"adapter\.json: not valid JSON")
    card.write_text(json.dumps(json.loads(text) | {"format_version": 99}))
    refused("format version 99, but this program reads 1")
    card.write_text(json.dumps(json.loads(text) | {"invented": 1}))
    refused("fields missing or unknown")
    card.write_text("[]")
    refused(r"adapter\.json: .*fetch the adapter again")
    card.unlink()
    refused(r"adapter\.json: cannot be read")
