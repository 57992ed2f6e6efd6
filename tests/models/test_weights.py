"""Weights from and to Hugging Face directories, the vocabulary, int8, and what is refused."""

import dataclasses
import json
import types

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from llama_helpers import CASES, distance, hf_tensors, make_llama, read_at, write_hf

from selfrag_jax.errors import UserError
from selfrag_jax.models import llama, llama_config, weights
from selfrag_jax.models import safetensors as own
from selfrag_jax.models.linear import Int8Weight, embed, linear, quantize_int8, unembed

DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.int8, np.uint8, np.bool_]


def _same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    jax.tree.map(np.testing.assert_array_equal, one, other)


# The file format


@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.float8_e4m3fn])
def test_each_tensor_keeps_its_own_dtype(dtype, tmp_path):
    values = np.random.RandomState(0).randint(0, 2, (3, 5)).astype(dtype)
    tensors = {"a": values, "odd": np.arange(3, dtype=np.int8), "scalar": np.array(2.5, np.float32)}
    own.write(tmp_path / "x.safetensors", tensors, {"format": "pt"})
    file = own.SafetensorsFile(tmp_path / "x.safetensors")
    assert file.metadata == {"format": "pt"}
    for name, tensor in tensors.items():
        assert file.view(name).dtype == tensor.dtype
        np.testing.assert_array_equal(file.view(name), tensor)
    assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]


def test_the_safetensors_package_reads_ours_and_we_read_its(tmp_path):
    tensors = {"b": np.random.RandomState(0).randn(4, 3).astype(np.float16), "a": np.arange(7.0)}
    own.write(tmp_path / "x.safetensors", tensors)
    for name, tensor in safetensors.numpy.load_file(tmp_path / "x.safetensors").items():
        np.testing.assert_array_equal(tensor, tensors[name])
    safetensors.numpy.save_file(tensors, tmp_path / "y.safetensors")
    file = own.SafetensorsFile(tmp_path / "y.safetensors")
    assert all((file.view(name) == tensor).all() for name, tensor in tensors.items())


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.safetensors"
    own.write(path, {"a": np.zeros(3)})
    with pytest.raises(KeyError):
        own.write(path, {"a": np.zeros(3, np.complex64)})
    assert own.SafetensorsFile(path).view("a").shape == (3,)
    assert len(list(tmp_path.iterdir())) == 1


def test_reading_into_a_turned_buffer_of_another_dtype(tmp_path, monkeypatch):
    monkeypatch.setattr(own, "_PIECE_BYTES", 64)  # several pieces
    values = np.random.RandomState(0).randn(37, 11).astype(ml_dtypes.bfloat16)
    own.write(tmp_path / "x.safetensors", {"a": values})
    out = np.empty((11, 37), np.float32)
    own.SafetensorsFile(tmp_path / "x.safetensors").read("a", out.T)
    np.testing.assert_array_equal(out.T, values.astype(np.float32))
    with pytest.raises(ValueError, match="does not fit"):
        own.SafetensorsFile(tmp_path / "x.safetensors").read("a", out)


# Directories


def _shards(directory, tensors, *, index: bool):
    (directory / "model.safetensors").unlink()
    names = sorted(tensors)
    weight_map = {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        file = f"model-0000{number}-of-00002.safetensors"
        own.write(directory / file, {name: tensors[name] for name in part})
        weight_map |= dict.fromkeys(part, file)
    if index:
        (directory / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


@pytest.mark.parametrize("index", [True, False])
def test_sharded_directories_equal_whole_ones(index, tmp_path):
    write_hf(tmp_path, CASES["biases"])
    whole = weights.load(tmp_path)
    _shards(tmp_path, hf_tensors(CASES["biases"]), index=index)
    config, params = weights.load(tmp_path)
    assert config == whole[0]
    _same(params, whole[1])


def test_a_missing_shard_is_named(tmp_path):
    write_hf(tmp_path, CASES["gqa"])
    _shards(tmp_path, hf_tensors(CASES["gqa"]), index=True)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(UserError, match=r"model-00002-of-00002\.safetensors: cannot be read"):
        weights.load(tmp_path)
    (tmp_path / "model.safetensors.index.json").unlink()
    with pytest.raises(UserError, match=r"the tensor .* is missing; is the download complete"):
        weights.load(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("[]")
    with pytest.raises(UserError, match="not a safetensors index"):
        weights.load(tmp_path)


def test_truncated_and_damaged_files_are_named(tmp_path):
    write_hf(tmp_path, CASES["gqa"])
    file = tmp_path / "model.safetensors"
    whole = file.read_bytes()
    cuts = {len(whole) - 1: "truncated", 1000: "ends within its header", 5: "only 5 bytes long"}
    for size, message in cuts.items():
        file.write_bytes(whole[:size])
        with pytest.raises(UserError, match=rf"model\.safetensors: {message}.*download .* again") as caught:
            weights.load(tmp_path)
        assert "\n" not in str(caught.value)
    file.write_bytes(whole[:8] + b"x" * (len(whole) - 8))
    with pytest.raises(UserError, match="not a safetensors file"):
        weights.load(tmp_path)
    file.unlink()
    with pytest.raises(UserError, match=r"no \*\.safetensors file"):
        weights.load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config\.json: not valid JSON"):
        weights.load(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(UserError, match=r"config\.json: cannot be read"):
        weights.load(tmp_path)


def test_tensors_that_are_missing_misshapen_or_unknown(tmp_path):
    tensors = hf_tensors(CASES["gqa"])
    name = "model.layers.1.mlp.up_proj.weight"

    def refused(changed, message):
        write_hf(tmp_path, CASES["gqa"], changed)
        with pytest.raises(UserError, match=message):
            weights.load(tmp_path)

    refused({key: tensor for key, tensor in tensors.items() if key != name}, f"{name} is missing")
    refused(tensors | {name: tensors[name][1:]}, rf"{name} has shape \(79, 48\), .* says \(80, 48\)")
    refused(tensors | {"model.layers.0.self_attn.q_norm.weight": np.ones(12)}, "1 tensors do not belong .*q_norm")
    harmless = {"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(6, np.float32)}
    write_hf(tmp_path, CASES["gqa"], tensors | harmless)
    weights.load(tmp_path)


def test_dtypes_on_the_way_in(tmp_path):
    half = {name: tensor.astype(ml_dtypes.bfloat16) for name, tensor in hf_tensors(CASES["gqa"]).items()}
    write_hf(tmp_path, CASES["gqa"], half)
    _, wide = weights.load(tmp_path)
    assert {leaf.dtype for leaf in jax.tree.leaves(wide)} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(wide["embed"], half["model.embed_tokens.weight"].astype(np.float32))
    _, narrow = weights.load(tmp_path, dtype=ml_dtypes.bfloat16)
    assert {leaf.dtype for leaf in jax.tree.leaves(narrow)} == {np.dtype(ml_dtypes.bfloat16)}
    _same(jax.tree.map(lambda x: x.astype(np.float32), narrow), wide)


def test_device_put_takes_loaded_arrays_without_a_copy(tmp_path):
    write_hf(tmp_path, CASES["gqa"])
    for leaf in jax.tree.leaves(weights.load(tmp_path)[1]):
        assert leaf.ctypes.data % 64 == 0


@pytest.mark.parametrize("case", ["gqa", "tied", "biases", "llama3", "yarn_options", "head_size", "mistral_window"])
def test_export_and_load_again(case, tmp_path):
    write_hf(tmp_path / "in", CASES[case])
    config, params = weights.load(tmp_path / "in", new_tokens=3, vocab_multiple=32)
    weights.export_hf(params, config, tmp_path / "out")
    again, exported = weights.load(tmp_path / "out", vocab_multiple=32)
    assert again == config
    _same(exported, params)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["config.json", "model.safetensors"]
    held = own.SafetensorsFile(tmp_path / "out" / "model.safetensors")
    assert held.header["model.embed_tokens.weight"]["shape"] == [config.vocab_size, config.hidden_size]
    weights.export_hf(params, config, tmp_path / "half", dtype=ml_dtypes.bfloat16)
    assert json.loads((tmp_path / "half" / "config.json").read_text())["dtype"] == "bfloat16"
    _, half = weights.load(tmp_path / "half", vocab_multiple=32)
    assert distance(half["blocks"]["q"], params["blocks"]["q"]) < 2**-8


# Shapes


@pytest.mark.parametrize("case", CASES)
def test_the_network_has_the_shapes_of_the_table(case, tmp_path):
    write_hf(tmp_path, CASES[case])
    config, params = weights.load(tmp_path, vocab_multiple=48)
    rows = params["embed"].shape[0]
    assert rows == 96
    wanted = llama.abstract_params(config, rows)
    assert jax.tree.structure(wanted) == jax.tree.structure(params)
    assert jax.tree.map(lambda x: x.shape, wanted) == jax.tree.map(lambda x: x.shape, params)


def test_fresh_weights_are_those_of_the_config():
    config = llama_config.from_hf(CASES["gqa"], "test")
    fresh = llama.init(config, jax.random.key(0))
    assert abs(float(jnp.std(fresh["blocks"]["q"])) - config.initializer_range) < 0.003
    assert not np.allclose(fresh["blocks"]["q"][0], fresh["blocks"]["q"][1])


# Vocabulary


@pytest.mark.parametrize("case", ["gqa", "tied"])
def test_new_rows_are_the_mean_and_padding_is_masked(case, tmp_path):
    write_hf(tmp_path, CASES[case])
    base_config, base = weights.load(tmp_path)
    config, params = weights.load(tmp_path, new_tokens=5, vocab_multiple=40)
    assert (base_config.vocab_size, config.vocab_size) == (64, 69)
    for table in ("embed", "head") if case == "gqa" else ("embed",):
        assert params[table].shape == (80, 48)
        np.testing.assert_array_equal(params[table][:64], base[table])
        np.testing.assert_allclose(params[table][64:69], np.tile(base[table].mean(0), (5, 1)), atol=1e-6)
        assert not params[table][69:].any()
    prepared, prepared_config = weights.prepare_vocabulary(base, base_config, 5, 40)
    assert prepared_config == config
    _same(prepared, params)
    assert base["embed"].shape == (64, 48)
    tokens = make_llama.tokens(CASES[case])
    logits, wanted = read_at(params, config, tokens), read_at(base, base_config, tokens)
    assert distance(logits[:, :64], wanted) < 1e-6
    assert np.isfinite(logits[:, 64:69]).all()
    assert np.isneginf(logits[:, 69:]).all()
    np.testing.assert_allclose(logits[:, 64], wanted.mean(-1), atol=1e-4)  # the mean row scores the mean


@pytest.mark.parametrize(("ids", "table_rows"), [(60, 64), (66, 66), (70, 70)])
def test_added_ids_start_at_the_mean_wherever_they_fall(ids, table_rows, tmp_path):
    """Below the end of a table longer than its tokenizer, across that end, beyond it."""
    write_hf(tmp_path, CASES["gqa"])
    _, base = weights.load(tmp_path)
    config, params = weights.load_with(tmp_path, types.SimpleNamespace(vocab_size=ids, num_added=6))
    assert config.vocab_size == table_rows
    first = ids - 6
    for table in ("embed", "head"):
        before = base[table][: min(first, 64)]
        np.testing.assert_array_equal(params[table][: len(before)], before)
        np.testing.assert_allclose(params[table][first:ids], np.tile(before.mean(0), (6, 1)), atol=1e-6)
        np.testing.assert_array_equal(params[table][ids:], base[table][ids:])


# int8


def test_int8_rounds_each_output_channel_on_its_own():
    w = np.random.RandomState(0).randn(2, 40, 12).astype(np.float32) * np.logspace(-3, 3, 12, dtype=np.float32)
    q = quantize_int8(jnp.asarray(w))
    assert q.q.dtype == jnp.int8
    error = np.abs(np.asarray(q.q * q.scale) - w)
    assert (error <= np.abs(w).max(1, keepdims=True) / 127 * 0.501).all()
    assert (np.abs(np.asarray(q.q)).max(1) == 127).all()
    x = np.random.RandomState(1).randn(5, 40).astype(np.float32)
    exact = x @ np.asarray(q.q[0] * q.scale[0])
    np.testing.assert_allclose(linear(jnp.asarray(x), Int8Weight(q.q[0], q.scale[0])), exact, rtol=1e-4, atol=1e-4)
    dynamic = linear(jnp.asarray(x), Int8Weight(q.q[0], q.scale[0], dynamic=True))
    # Activations are rounded to within half a step of their row's largest value.
    bound = np.abs(x).max(1, keepdims=True) / 127 * 0.51 * np.abs(np.asarray(q.q[0] * q.scale[0])).sum(0)
    assert (np.abs(dynamic - exact) <= bound).all()


@pytest.mark.parametrize("outputs", [128, 700, 1025])
def test_a_large_int8_matrix_is_widened_a_few_columns_at_a_time(outputs, monkeypatch):
    random = np.random.RandomState(0)
    q = quantize_int8(jnp.asarray(random.randn(40, outputs), jnp.float32))
    x = jnp.asarray(random.randn(2, 3, 40), jnp.float32)
    whole = linear(x, q)
    monkeypatch.setattr("selfrag_jax.models.linear._WIDENED_BYTES", 40 * 4 * 256)
    for parts in (linear(x, q), jax.vmap(jax.vmap(lambda x_I: linear(x_I, q)))(x)):
        np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="only a CPU widens whole matrices")
def test_no_float_copy_of_an_int8_vocabulary_table():
    table = Int8Weight(jnp.ones((128, 65536), jnp.int8), jnp.ones((1, 65536)))

    def loop(x, table):
        return jax.lax.fori_loop(0, 3, lambda _, x: x + unembed(x, table)[..., :128], x)

    compiled = jax.jit(loop).lower(jnp.ones((5, 128)), table).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < table.q.nbytes * 4 / 2


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("case", ["gqa", "tied", "biases"])
def test_int8_models_agree_with_their_float_selves(case, dynamic, tmp_path):
    write_hf(tmp_path, CASES[case])
    config, params = weights.load(tmp_path, new_tokens=2, vocab_multiple=32)
    quantized = weights.quantize(params, config, "int8", dynamic=dynamic)
    table = llama.block_table(config)
    for name, leaf in quantized["blocks"].items():
        assert isinstance(leaf, Int8Weight) == table[name].transposed
    assert quantized["embed"].q.shape == (48, 96)
    np.testing.assert_allclose(
        embed(quantized["embed"], jnp.asarray([[3, 5]]))[0],
        params["embed"][[3, 5]],
        atol=np.abs(params["embed"][[3, 5]]).max() / 127,
    )
    tokens = make_llama.tokens(CASES[case])
    found, wanted = read_at(quantized, config, tokens), read_at(params, config, tokens)
    assert np.isneginf(found[:, config.vocab_size :]).all()
    used = slice(config.vocab_size)
    # A random network is the worst case; SmolLM2 is held to closer bounds.
    assert distance(found[:, used], wanted[:, used]) < (0.25 if dynamic else 0.15)
    if not dynamic:  # the slow twin: the same rounded weights as plain floats
        plain = jax.tree.map(_dequantized, quantized, is_leaf=lambda leaf: isinstance(leaf, Int8Weight))
        plain |= {name: plain[name].T for name in ("embed", "head") if name in plain}
        assert distance(found[:, used], read_at(plain, config, tokens)[:, used]) < 1e-5


def _dequantized(leaf):
    return leaf.q * leaf.scale if isinstance(leaf, Int8Weight) else leaf


def test_unknown_quantisations_are_refused(tmp_path):
    write_hf(tmp_path, CASES["gqa"])
    config, params = weights.load(tmp_path)
    with pytest.raises(UserError, match="'int3' is not a quantisation"):
        weights.quantize(params, config, "int3")


# Configurations


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architectures": ["Qwen2ForCausalLM"]}, "Qwen2ForCausalLM is not supported"),
        ({"architectures": None}, "architecture None is not supported"),
        ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping=50.0 is not known"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"pretraining_tp": 2}, "pretraining_tp=2 is not supported"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5 is not supported"),
        ({"rope_parameters": {"rope_type": "longrope", "rope_theta": 1.0}}, "rope type 'longrope' is not supported"),
        ({"rope_parameters": {"rope_type": "linear", "factor": 2.0, "twist": 1}}, "rope field twist is not known"),
    ],
)
def test_configs_with_other_networks_in_them_are_refused(change, message):
    with pytest.raises(UserError, match=message) as caught:
        llama_config.from_hf(CASES["gqa"] | change, "some/config.json")
    assert str(caught.value).startswith("some/config.json: ")


def test_configs_of_transformers_4():
    old = {key: value for key, value in CASES["llama3"].items() if key != "rope_parameters"}
    scaling = dict(CASES["llama3"]["rope_parameters"])
    theta = scaling.pop("rope_theta")
    old |= {"rope_theta": theta, "rope_scaling": scaling, "torch_dtype": "bfloat16", "head_dim": None}
    assert llama_config.from_hf(old, "old") == llama_config.from_hf(CASES["llama3"], "new")


@pytest.mark.parametrize("case", CASES)
def test_configs_survive_the_round_trip(case):
    config = llama_config.from_hf(CASES[case], "test")
    assert llama_config.from_hf(llama_config.to_hf(config), "again") == config
    assert hash(config) == hash(dataclasses.replace(config))
