"""BERT encoders (MiniLM, Contriever, any Hugging Face `BertModel`) as sentence embedders.

Flax NNX defines the modules: structure, shapes, initialisation and the arithmetic. The parameters live outside it as a
plain nested dict of arrays in which every layer parameter is stacked on a leading `L`; `hidden_states` puts them back
into the modules at trace time and walks the layers with `lax.scan`, so that these functions need only `jax.jit`.

Shape letters: B batch, T tokens, L layers, D model, H heads, C head size, F hidden, V vocabulary, P positions.
"""

import dataclasses
import functools
import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from selfrag_jax.errors import UserError
from selfrag_jax.models.safetensors import SafetensorsDirectory

Params = dict[str, Any]

# Full float32 products everywhere: accelerators otherwise round the operands, and embeddings then stop agreeing
# with those that other machines put into an index.
PRECISION = jax.lax.Precision.HIGHEST

# Fields of a Hugging Face config that change nothing in inference, or say where the file came from.
_IGNORED = {
    "_name_or_path", "architectures", "attention_probs_dropout_prob", "bos_token_id", "chunk_size_feed_forward",
    "classifier_dropout", "directionality", "dtype", "eos_token_id", "finetuning_task", "gradient_checkpointing",
    "hidden_dropout_prob", "id2label", "label2id", "model_type", "pooler_fc_size", "pooler_num_attention_heads",
    "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "problem_type", "sep_token_id",
    "tie_word_embeddings", "tokenizer_class", "torch_dtype", "transformers_version", "use_cache",
}  # fmt: skip

# Fields that are fine at one value and another model at any other.
_REQUIRED = {
    "position_embedding_type": "absolute",
    "hidden_act": "gelu",
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "pruned_heads": {},
    "output_attentions": False,
    "output_hidden_states": False,
    "torchscript": False,
    "return_dict": True,
}

# Tensors of a checkpoint that sentence embeddings do not use: a buffer, the pooler, and pre-training heads.
_UNUSED_TENSORS = ("embeddings.position_ids", "pooler.", "cls.")


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """What a BERT encoder's shapes and arithmetic depend on; names as in a Hugging Face config.json."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    pad_token_id: int = 0

    @classmethod
    def from_dict(cls, fields: dict[str, Any], source: str) -> "BertConfig":
        """The config in a parsed config.json; `source` names it in errors.

        Raises UserError for another model type, a missing field, or any field this encoder would get wrong.
        """
        if fields.get("model_type", "bert") != "bert":
            raise UserError(f"{source}: model_type {fields['model_type']!r} is not supported; expected 'bert'")
        own = {field.name: field for field in dataclasses.fields(cls)}
        for name, value in fields.items():
            if name in _REQUIRED and value != _REQUIRED[name]:
                raise UserError(f"{source}: {name} {value!r} is not supported; expected {_REQUIRED[name]!r}")
            if name not in own and name not in _REQUIRED and name not in _IGNORED:
                raise UserError(f"{source}: the field {name} ({value!r}) is not supported by this encoder")
        missing = [n for n, field in own.items() if field.default is dataclasses.MISSING and n not in fields]
        if missing:
            raise UserError(f"{source}: the field {missing[0]} is missing; is this the config.json of a BERT model?")
        config = cls(**{name: fields[name] for name in own if fields.get(name) is not None})
        if config.hidden_size % config.num_attention_heads:
            raise UserError(f"{source}: hidden_size {config.hidden_size} is not a multiple of num_attention_heads")
        return config

    @classmethod
    def from_directory(cls, directory: pathlib.Path) -> "BertConfig":
        """The config of a Hugging Face directory. Raises UserError when it is missing, broken or not supported."""
        path = directory / "config.json"
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UserError(f"{path}: no such file; config.retrieval.encoder names a Hugging Face directory") from None
        except ValueError as error:
            raise UserError(f"{path}: not valid JSON ({error})") from None
        if not isinstance(fields, dict):
            raise UserError(f"{path}: expected a JSON object")
        return cls.from_dict(fields, str(path))


class Dense(nnx.Module):
    """y = x·kernel + bias, kernel [in, out]."""

    def __init__(self, fan_in: int, fan_out: int, scale: float, rngs: nnx.Rngs):
        self.kernel = nnx.Param(nnx.initializers.normal(scale)(rngs.params(), (fan_in, fan_out)))
        self.bias = nnx.Param(jnp.zeros(fan_out))

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.matmul(x, self.kernel[...], precision=PRECISION) + self.bias[...]


class LayerNorm(nnx.Module):
    """Normalisation over the last axis with scale and bias."""

    def __init__(self, size: int, eps: float):
        self.scale = nnx.Param(jnp.ones(size))
        self.bias = nnx.Param(jnp.zeros(size))
        self.eps = eps

    def __call__(self, x: jax.Array) -> jax.Array:
        mean = jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(jnp.square(x - mean), axis=-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + self.eps) * self.scale[...] + self.bias[...]


class BertEmbeddings(nnx.Module):
    """Word + position + type embedding, normalised. Every token is of type 0: texts are encoded one at a time."""

    def __init__(self, config: BertConfig, rngs: nnx.Rngs):
        def table(rows: int) -> nnx.Param:
            init = nnx.initializers.normal(config.initializer_range)
            return nnx.Param(init(rngs.params(), (rows, config.hidden_size)))

        self.word = table(config.vocab_size)
        self.position = table(config.max_position_embeddings)
        self.type = table(config.type_vocab_size)
        self.norm = LayerNorm(config.hidden_size, config.layer_norm_eps)

    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        x_BTD = self.word[...][tokens_BT] + self.type[...][0] + self.position[...][: tokens_BT.shape[1]]
        return self.norm(x_BTD)


class BertLayer(nnx.Module):
    """Self-attention and feed-forward, each followed by the sum and its norm (post-norm, as in the original)."""

    def __init__(self, config: BertConfig, rngs: nnx.Rngs):
        D, F, scale = config.hidden_size, config.intermediate_size, config.initializer_range
        self.heads = config.num_attention_heads
        self.qkv = Dense(D, 3 * D, scale, rngs)  # one product instead of three; columns are q, k, v
        self.out = Dense(D, D, scale, rngs)
        self.attention_norm = LayerNorm(D, config.layer_norm_eps)
        self.up = Dense(D, F, scale, rngs)
        self.down = Dense(F, D, scale, rngs)
        self.output_norm = LayerNorm(D, config.layer_norm_eps)

    def __call__(self, x_BTD: jax.Array, bias_B11T: jax.Array) -> jax.Array:
        x_BTD = self.attention_norm(x_BTD + self.out(self._attend(self.qkv(x_BTD), bias_B11T)))
        return self.output_norm(x_BTD + self.down(gelu(self.up(x_BTD))))

    def _attend(self, qkv: jax.Array, bias_B11T: jax.Array) -> jax.Array:
        B, T, width = qkv.shape
        C = width // 3 // self.heads
        q_BTHC, k_BTHC, v_BTHC = jnp.moveaxis(qkv.reshape(B, T, 3, self.heads, C), 2, 0)
        scores_BHTT = jnp.einsum("BTHC,BSHC->BHTS", q_BTHC, k_BTHC, precision=PRECISION) / C**0.5
        weights_BHTT = jax.nn.softmax(scores_BHTT + bias_B11T, axis=-1)
        return jnp.einsum("BHTS,BSHC->BTHC", weights_BHTT, v_BTHC, precision=PRECISION).reshape(B, T, width // 3)


class Bert(nnx.Module):
    """The whole encoder; `layers` is one BertLayer whose parameters are stacked on a leading L."""

    def __init__(self, config: BertConfig, rngs: nnx.Rngs):
        self.embeddings = BertEmbeddings(config, rngs)
        make = nnx.vmap(lambda r: BertLayer(config, r), in_axes=0, out_axes=0)
        self.layers = make(rngs.split(config.num_hidden_layers))


def gelu(x: jax.Array) -> jax.Array:
    """The exact GELU, x·Φ(x), through erf (BERT's `hidden_act: gelu`; not the tanh approximation)."""
    return 0.5 * x * (1.0 + jax.lax.erf(x * 0.5**0.5))


def init_params(config: BertConfig, seed: int) -> Params:
    """Fresh parameters as a plain nested dict; layer parameters are [L, …]."""
    return nnx.to_pure_dict(nnx.state(Bert(config, nnx.Rngs(seed)), nnx.Param))


def param_shapes(config: BertConfig) -> Params:
    """The parameters' tree with a jax.ShapeDtypeStruct at every leaf; allocates nothing."""
    return nnx.to_pure_dict(nnx.state(nnx.eval_shape(lambda: Bert(config, nnx.Rngs(0))), nnx.Param))


@functools.cache
def _definitions(config: BertConfig) -> tuple[Any, Any]:
    """The NNX graph definitions of the embeddings and of a single layer, which hold no arrays."""
    embeddings = nnx.graphdef(nnx.eval_shape(lambda: BertEmbeddings(config, nnx.Rngs(0))))
    return embeddings, nnx.graphdef(nnx.eval_shape(lambda: BertLayer(config, nnx.Rngs(0))))


def hidden_states(params: Params, config: BertConfig, tokens_BT: jax.Array, lengths_B: jax.Array) -> jax.Array:
    """The last layer's states x_BTD.

    tokens_BT: ids, padded at the end to T ≤ max_position_embeddings. lengths_B: how many of each row are real;
    positions after them are never attended to, and their own states mean nothing.
    """
    embeddings, layer = _definitions(config)
    mask_BT = jnp.arange(tokens_BT.shape[1]) < lengths_B[:, None]
    bias_B11T = jnp.where(mask_BT, 0.0, jnp.finfo(jnp.float32).min)[:, None, None, :]

    def step(x_BTD: jax.Array, layer_params: Params) -> tuple[jax.Array, None]:
        return nnx.merge(layer, nnx.State(layer_params))(x_BTD, bias_B11T), None

    x_BTD = nnx.merge(embeddings, nnx.State(params["embeddings"]))(tokens_BT)
    return jax.lax.scan(step, x_BTD, params["layers"])[0]


def embed(params: Params, config: BertConfig, tokens_BT: jax.Array, lengths_B: jax.Array, normalize: bool) -> jax.Array:
    """Sentence embeddings [B, D]: the mean of the last states over the real tokens, of unit length if `normalize`."""
    x_BTD = hidden_states(params, config, tokens_BT, lengths_B)
    mask_BT = (jnp.arange(tokens_BT.shape[1]) < lengths_B[:, None]).astype(x_BTD.dtype)
    mean_BD = jnp.einsum("BTD,BT->BD", x_BTD, mask_BT, precision=PRECISION) / jnp.maximum(lengths_B, 1)[:, None]
    if not normalize:
        return mean_BD
    return mean_BD / jnp.maximum(jnp.linalg.norm(mean_BD, axis=-1, keepdims=True), 1e-12)


# Our leaf → its tensors in a Hugging Face checkpoint, joined on the last axis; matrices are stored [out, in] there.
_EMBEDDING_SOURCES = {
    "word": "embeddings.word_embeddings.weight",
    "position": "embeddings.position_embeddings.weight",
    "type": "embeddings.token_type_embeddings.weight",
    "norm": "embeddings.LayerNorm",
}
_LAYER_SOURCES = {
    "qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "out": ("attention.output.dense",),
    "attention_norm": ("attention.output.LayerNorm",),
    "up": ("intermediate.dense",),
    "down": ("output.dense",),
    "output_norm": ("output.LayerNorm",),
}


def params_from_tensors(tensors: dict[str, np.ndarray], config: BertConfig, source: str) -> Params:
    """The parameter tree (NumPy, float32) from a checkpoint's tensors by name; `source` names the file in errors.

    Raises UserError for a missing tensor, a tensor of another shape than the config says, and an unknown tensor.
    """
    tensors = {name.removeprefix("bert."): tensor for name, tensor in tensors.items()}
    taken: set[str] = set()

    def take(name: str) -> np.ndarray:
        if name not in tensors:
            raise UserError(f"{source}: the tensor {name} is missing; is the file complete?")
        taken.add(name)
        return np.asarray(tensors[name], np.float32)

    def norm(name: str) -> Params:
        # Checkpoints converted from the first TensorFlow release say gamma and beta.
        weight, bias = ("gamma", "beta") if f"{name}.gamma" in tensors else ("weight", "bias")
        return {"scale": take(f"{name}.{weight}"), "bias": take(f"{name}.{bias}")}

    def layer(index: int) -> Params:
        found: Params = {}
        for leaf, parts in _LAYER_SOURCES.items():
            names = [f"encoder.layer.{index}.{part}" for part in parts]
            if leaf.endswith("norm"):
                found[leaf] = norm(names[0])
            else:
                kernel = np.concatenate([take(f"{name}.weight").T for name in names], axis=-1)
                found[leaf] = {"kernel": kernel, "bias": np.concatenate([take(f"{name}.bias") for name in names])}
        return found

    embeddings = {leaf: norm(name) if leaf == "norm" else take(name) for leaf, name in _EMBEDDING_SOURCES.items()}
    layers = jax.tree.map(lambda *leaves: np.stack(leaves), *[layer(i) for i in range(config.num_hidden_layers)])
    unknown = sorted(name for name in tensors.keys() - taken if not name.startswith(_UNUSED_TENSORS))
    if unknown:
        raise UserError(f"{source}: {len(unknown)} tensors do not belong to the BERT of its config, first {unknown[0]}")
    params = {"embeddings": embeddings, "layers": layers}
    _check_shapes(params, config, source)
    return params


def _check_shapes(params: Params, config: BertConfig, source: str) -> None:
    def check(path: Any, want: jax.ShapeDtypeStruct, got: np.ndarray) -> None:
        if want.shape != got.shape:
            where = jax.tree_util.keystr(path, simple=True, separator=".")
            raise UserError(f"{source}: {where} has shape {got.shape}, but config.json makes it {want.shape}")

    jax.tree_util.tree_map_with_path(check, param_shapes(config), params)


def load_params(directory: pathlib.Path, config: BertConfig) -> Params:
    """The parameters in a directory's safetensors. Raises UserError when a file is missing, truncated or unfit."""
    file = SafetensorsDirectory(directory)
    return params_from_tensors({name: file.view(name) for name in file.shapes}, config, file.source)
