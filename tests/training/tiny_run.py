"""A model directory, rows and a config small enough to train in a test."""

import dataclasses
import json
import pathlib

import jax
import numpy as np
import tokenizers
from training_helpers import CONFIG

from selfrag_jax.config import Config
from selfrag_jax.models import llama, weights

ANSWERS = ("Rome", "Lima", "Oslo", "Bern", "Kyiv")


def write_model(directory: pathlib.Path) -> None:
    """A random two-layer model whose tokenizer has a token for each byte, and an end token."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocab = {letter: number for number, letter in enumerate(letters)} | {"<end>": 256}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<end>"])
    config = dataclasses.replace(CONFIG, vocab_size=257)
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda x: (0.3 * rng.normal(size=x.shape)).astype(np.float32), llama.abstract_params(config))
    weights.export_hf(params, config, directory)
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))


def write_rows(path: pathlib.Path, count: int = 40) -> None:
    """Generator rows, two of three with a passage."""
    rows = [
        {
            "instruction": f"Capital {i}?",
            "output": f"[Retrieval]<paragraph>T{i}\n{ANSWERS[i % 5]} it is.</paragraph>[Relevant]{ANSWERS[i % 5]}."
            f"[Fully supported][Utility:{1 + i % 5}]" if i % 3 else f"[No Retrieval]No {i}.[Utility:5]",
            "id": f"row{i}",
        }
        for i in range(count)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_config(folder: pathlib.Path) -> Config:
    """Writes model and rows into the folder; a run of 12 steps, a checkpoint every 4."""
    write_model(folder / "model")
    write_rows(folder / "rows.jsonl")
    config = Config()
    config.model.path = str(folder / "model")
    config.model.vocab_multiple = 16
    config.data.rows = str(folder / "rows.jsonl")
    config.data.data_dir = str(folder / "data")
    config.data.sequence_length = 144
    config.data.batch_size = 8
    config.train.steps = 12
    config.train.checkpoint_every = 4
    config.train.learning_rate = 1e-2
    config.train.lora_rank = 2
    return config
