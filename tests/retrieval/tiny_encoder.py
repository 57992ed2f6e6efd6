"""A small random BERT with a tokenizer of its own, so that most tests here need no download and little time."""

import json
import pathlib

import numpy as np
import tokenizers

from selfrag_jax.models import safetensors

WORDS = "the of in is capital city airport river mountain element north south old new great small red blue".split()
DIM = 16
LAYERS = 2


def write_encoder(directory: pathlib.Path, seed: int) -> pathlib.Path:
    """A Hugging Face directory of a random BERT over letters and a few words."""
    directory.mkdir(parents=True)
    letters = list("abcdefghijklmnopqrstuvwxyz0123456789.,[]")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    words = tokenizers.models.WordPiece({word: n for n, word in enumerate(vocabulary)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens(vocabulary[:4])
    tokenizer.enable_padding(length=40)  # as published files do; the encoder must not keep it
    tokenizer.save(str(directory / "tokenizer.json"))
    config = {
        "model_type": "bert",
        "vocab_size": len(vocabulary),
        "hidden_size": DIM,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 64,
    }
    (directory / "config.json").write_text(json.dumps(config))
    rng = np.random.default_rng(seed)
    safetensors.write(directory / "model.safetensors", _random_tensors(rng, len(vocabulary)))
    return directory


def _random_tensors(rng: np.random.Generator, vocab_size: int) -> dict[str, np.ndarray]:
    shapes = {
        "embeddings.word_embeddings.weight": (vocab_size, DIM),
        "embeddings.position_embeddings.weight": (64, DIM),
        "embeddings.token_type_embeddings.weight": (2, DIM),
        "embeddings.LayerNorm.weight": (DIM,),
        "embeddings.LayerNorm.bias": (DIM,),
    }
    dense = {
        **{f"attention.self.{part}": (DIM, DIM) for part in ("query", "key", "value")},
        "attention.output.dense": (DIM, DIM),
        "intermediate.dense": (24, DIM),
        "output.dense": (DIM, 24),
    }
    for layer in range(LAYERS):
        for name, shape in dense.items():
            shapes[f"encoder.layer.{layer}.{name}.weight"] = shape
            shapes[f"encoder.layer.{layer}.{name}.bias"] = shape[:1]
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"encoder.layer.{layer}.{name}.weight"] = (DIM,)
            shapes[f"encoder.layer.{layer}.{name}.bias"] = (DIM,)
    return {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def random_text(rng: np.random.Generator, words: int) -> str:
    return " ".join(rng.choice(WORDS, words))
