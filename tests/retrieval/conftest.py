"""A corpus of random texts and the tiny encoder, shared by the tests of retrieval."""

import json
import pathlib

import numpy as np
import pytest
from tiny_encoder import random_text, write_encoder

from selfrag_jax.config import RetrievalConfig


@pytest.fixture(scope="session")
def encoder_dir(tmp_path_factory) -> pathlib.Path:
    return write_encoder(tmp_path_factory.mktemp("encoder") / "tiny", seed=0)


@pytest.fixture
def config(encoder_dir, tmp_path) -> RetrievalConfig:
    """300 passages in a JSONL file; the index goes to tmp_path / "index"."""
    rng = np.random.default_rng(5)
    path = tmp_path / "passages.jsonl"
    with path.open("w") as file:
        for n in range(300):
            text = random_text(rng, int(rng.integers(3, 40)))
            file.write(json.dumps({"id": f"p{n}", "title": f"{random_text(rng, 2)} {n}", "text": text}) + "\n")
    return RetrievalConfig(
        encoder=str(encoder_dir),
        max_length=48,
        corpus=str(path),
        index_dir=str(tmp_path / "index"),
        batch_tokens=256,
    )
