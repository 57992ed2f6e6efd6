"""GGUF files: every quantisation, the order of query and key rows, hyper-parameters, and what is refused."""

import pathlib
import struct
from typing import Any

import gguf
import numpy as np
import pytest
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from llama_helpers import CASES, distance, hf_tensors, make_llama, read_at, write_hf

from selfrag_jax.errors import UserError
from selfrag_jax.models import llama_config, rope, weights
from selfrag_jax.models.gguf_file import GgufFile

# Wide enough for one block of every quantisation.
_WIDE = CASES["gqa"] | {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "vocab_size": 8}

_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def _gguf_name(name: str) -> str:
    for hf, ours in _NAMES.items():
        name = name.replace(hf, ours)
    return name.replace("model.layers.", "blk.")


def _interleaved(tensor: np.ndarray, heads: int) -> np.ndarray:
    """Row by row: plane i's two halves, rows i and i + C/2 of a head, become rows 2i and 2i + 1."""
    out, size = np.empty_like(tensor), len(tensor) // heads
    for head in range(heads):
        for plane in range(size // 2):
            out[head * size + 2 * plane] = tensor[head * size + plane]
            out[head * size + 2 * plane + 1] = tensor[head * size + plane + size // 2]
    return out


def _metadata(hf: dict[str, Any]) -> dict[str, Any]:
    return {
        "llama.block_count": hf["num_hidden_layers"],
        "llama.context_length": hf["max_position_embeddings"],
        "llama.embedding_length": hf["hidden_size"],
        "llama.feed_forward_length": hf["intermediate_size"],
        "llama.attention.head_count": hf["num_attention_heads"],
        "llama.attention.head_count_kv": hf["num_key_value_heads"],
        "llama.attention.layer_norm_rms_epsilon": hf["rms_norm_eps"],
        "llama.rope.freq_base": hf["rope_parameters"]["rope_theta"],
        "llama.vocab_size": hf["vocab_size"],
    }


def _write(
    path: pathlib.Path,
    hf: dict[str, Any],
    metadata: dict[str, Any] | None = None,
    *,
    kind: GGMLQuantizationType | None = None,
    extra: dict[str, np.ndarray] | None = None,
    architecture: str = "llama",
) -> dict[str, np.ndarray]:
    """A GGUF file as llama.cpp's converter lays it out; returns each tensor as stored. With `kind`, matrices are
    random bytes of that quantisation."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in (_metadata(hf) | (metadata or {})).items():
        if value is None:
            continue
        add: Any = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string, bool: writer.add_bool}
        add.get(type(value), writer.add_array)(key, value)
    stored, rng = {}, np.random.RandomState(3)
    for name, tensor in hf_tensors(hf).items():
        for part, heads in (("q_proj", hf["num_attention_heads"]), ("k_proj", hf["num_key_value_heads"])):
            tensor = _interleaved(tensor, heads) if part in name else tensor
        if kind is not None and tensor.ndim == 2:
            block, size = GGML_QUANT_SIZES[kind]
            tensor = rng.randint(0, 256, (len(tensor), tensor.shape[1] // block * size)).astype(np.uint8)
            writer.add_tensor(_gguf_name(name), tensor, raw_dtype=kind)
        else:
            writer.add_tensor(_gguf_name(name), tensor)
        stored[_gguf_name(name)] = tensor
    for name, tensor in (extra or {}).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return stored


# F64 and the integer types hold no weights; the rest is what the package can dequantise.
_KINDS = [kind for kind in GGMLQuantizationType if kind.name in ("F32", "F16") or hasattr(quants, kind.name)]


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.name)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")  # random bytes hold infinite scales
def test_every_quantisation_is_read(kind, tmp_path):
    stored = _write(tmp_path / "m.gguf", _WIDE, kind=kind)
    config, params = weights.load(tmp_path / "m.gguf")
    wanted = {name: quants.dequantize(data, kind) for name, data in stored.items() if data.dtype == np.uint8}
    assert len(wanted) == 9
    assert config.hidden_size == 256
    same = lambda found, name: np.testing.assert_array_equal(found, wanted[name])  # noqa: E731
    same(params["embed"], "token_embd.weight")
    same(params["head"], "output.weight")
    for name, stem in {
        "v": "attn_v",
        "o": "attn_output",
        "gate": "ffn_gate",
        "up": "ffn_up",
        "down": "ffn_down",
    }.items():
        same(params["blocks"][name][0].T, f"blk.0.{stem}.weight")
    # Interleaving what was read must give what is stored.
    same(_interleaved(params["blocks"]["q"][0].T, config.num_heads), "blk.0.attn_q.weight")
    same(_interleaved(params["blocks"]["k"][0].T, config.num_kv_heads), "blk.0.attn_k.weight")


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_quantised_matrices_of_many_pieces(tmp_path, monkeypatch):
    from selfrag_jax.models import gguf_file

    stored = _write(tmp_path / "m.gguf", _WIDE, kind=GGMLQuantizationType.Q4_1)
    _, whole = weights.load(tmp_path / "m.gguf")
    monkeypatch.setattr(gguf_file, "_PIECE_WEIGHTS", 3 * 256)  # three rows at a time
    _, pieces = weights.load(tmp_path / "m.gguf")
    assert stored
    for name in ("q", "k", "down"):
        np.testing.assert_array_equal(whole["blocks"][name], pieces["blocks"][name])


@pytest.mark.parametrize("case", ["mha", "gqa", "tied", "biases", "head_size", "theta"])
def test_gguf_and_hugging_face_give_the_same_tree(case, tmp_path):
    hf = CASES[case]
    head_dim = hf.get("head_dim")
    _write(tmp_path / "m.gguf", hf, {f"llama.attention.{part}_length": head_dim for part in ("key", "value")})
    write_hf(tmp_path / "hf", hf)
    gguf_config, gguf_params = weights.load(tmp_path / "m.gguf")
    hf_config, hf_params = weights.load(tmp_path / "hf")
    assert gguf_config == hf_config
    _assert_same_tree(gguf_params, hf_params)


def _assert_same_tree(one, other):
    import jax

    assert jax.tree.structure(one) == jax.tree.structure(other)
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize(
    ("case", "metadata"),
    [
        ("linear", {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}),
        ("linear", {"llama.rope.scaling.type": "linear", "llama.rope.scale_linear": 4.0}),
        (
            "yarn",
            {
                "llama.rope.scaling.type": "yarn",
                "llama.rope.scaling.factor": 4.0,
                "llama.rope.scaling.original_context_length": 16,
            },
        ),
    ],
)
def test_rope_scaling_of_the_metadata(case, metadata, tmp_path):
    _write(tmp_path / "m.gguf", CASES[case], metadata)
    config, params = weights.load(tmp_path / "m.gguf")
    golden = np.load(pathlib.Path(make_llama.HERE) / "llama_small.npz")[case]
    assert distance(read_at(params, config, make_llama.tokens(CASES[case])), golden) < 1e-4


def test_rope_factors_of_llama3(tmp_path):
    # The converter turns Llama 3.1's scaling into one divisor per frequency.
    plain = llama_config.from_hf(CASES["theta"], "test")
    scaled = llama_config.from_hf(CASES["llama3"], "test")
    factors = (rope.frequencies(plain) / rope.frequencies(scaled)).astype(np.float32)
    assert factors.max() > 7
    _write(tmp_path / "m.gguf", CASES["theta"], extra={"rope_freqs.weight": factors})
    config, params = weights.load(tmp_path / "m.gguf")
    golden = np.load(pathlib.Path(make_llama.HERE) / "llama_small.npz")["llama3"]
    assert distance(read_at(params, config, make_llama.tokens(CASES["llama3"])), golden) < 1e-4


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"llama.expert_count": 8}, "llama.expert_count=8"),
        ({"llama.attention.clamp_kqv": 8.0}, "llama.attention.clamp_kqv=8.0"),
        ({"llama.new_invention": 1}, "llama.new_invention=1"),
        ({"llama.rope.scaling.type": "longrope"}, "'longrope' is not supported"),
        ({"llama.rope.dimension_count": 6}, "llama.rope.dimension_count=6 differs from the head size 12"),
        ({"llama.vocab_size": 65}, "has 64 rows, but llama.vocab_size=65"),
        ({"llama.feed_forward_length": None}, "the key llama.feed_forward_length is missing"),
        ({"llama.feed_forward_length": [80, 81]}, "differs from layer to layer"),
        ({"llama.feed_forward_length": 96}, r"blk\.0\.ffn_gate\.weight has shape \(80, 48\)"),
        ({"llama.block_count": 3}, r"blk\.2\.attn_norm\.weight is missing"),
        ({"llama.block_count": 1}, "9 tensors do not belong to a Llama"),
    ],
)
def test_what_would_change_the_forward_pass_is_refused(metadata, message, tmp_path):
    _write(tmp_path / "m.gguf", CASES["gqa"], metadata)
    with pytest.raises(UserError, match=message):
        weights.load(tmp_path / "m.gguf")


def test_harmless_values_of_such_keys_are_accepted(tmp_path):
    _write(tmp_path / "m.gguf", CASES["gqa"], {"llama.expert_count": 0, "llama.attention.causal": True})
    weights.load(tmp_path / "m.gguf")


def test_other_architectures_are_refused_by_name(tmp_path):
    _write(tmp_path / "m.gguf", CASES["gqa"], architecture="qwen2")
    with pytest.raises(UserError, match="architecture 'qwen2' is not supported"):
        weights.load(tmp_path / "m.gguf")


def test_types_without_dequantisation_are_refused_by_name(tmp_path):
    _write(tmp_path / "m.gguf", CASES["gqa"], extra={"spare.weight": np.zeros((4, 4), np.int32)})
    with pytest.raises(UserError, match=r"spare\.weight has type I32"):
        weights.load(tmp_path / "m.gguf")


def test_truncated_and_missing_files(tmp_path):
    path = tmp_path / "m.gguf"
    with pytest.raises(UserError, match="no such file or directory; give"):
        weights.load(path)
    _write(path, CASES["gqa"])
    whole = path.read_bytes()
    path.write_bytes(whole[:-1000])
    with pytest.raises(UserError, match=r"m\.gguf: truncated .* download the file again"):
        weights.load(path)
    for cut in (10, 60, 400):
        path.write_bytes(whole[:cut])
        with pytest.raises(UserError, match="the header is damaged or ends early; download"):
            weights.load(path)
    path.write_bytes(b"")
    with pytest.raises(UserError, match="not a GGUF file"):
        weights.load(path)
    path.write_bytes(whole[:4] + struct.pack("<I", 9) + whole[8:])
    with pytest.raises(UserError, match="version 9"):
        weights.load(path)


def test_a_wrong_buffer_is_our_own_fault(tmp_path):
    _write(tmp_path / "m.gguf", CASES["gqa"])
    file = GgufFile(tmp_path / "m.gguf")
    with pytest.raises(ValueError, match="does not fit"):
        file.read("output.weight", np.empty((3, 3)))
