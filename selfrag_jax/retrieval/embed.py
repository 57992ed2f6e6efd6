"""Embedding a corpus so that an interruption loses little.

The batches of `plan_batches` are grouped into shards; each finished shard is written beside and renamed. A run that
finds the shards of an earlier one, with the same plan, computes only what is missing, in the same batches, so the
result is bitwise that of an uninterrupted run.
"""

import hashlib
import json
import os
import pathlib
import shutil
from collections.abc import Sequence

import numpy as np

from selfrag_jax.retrieval.encoder import Batch, Encoder, encoding_bar, plan_batches

SHARD_BATCHES = 16  # with 1024 tokens a batch: two or three seconds of two cores


def embed_texts(encoder: Encoder, texts: Sequence[str], directory: pathlib.Path, progress: bool = True) -> np.ndarray:
    """Embeddings f32 [N, D] of `texts` in their order, kept in `directory` as shards while the work goes on.

    Shards there are reused if the same encoder, settings and texts made them, and thrown away otherwise.
    """
    ids = encoder.tokenize(texts)
    batches = plan_batches([len(row) for row in ids], encoder.batch_tokens)
    shards = [batches[i : i + SHARD_BATCHES] for i in range(0, len(batches), SHARD_BATCHES)]
    _prepare(directory, _plan_key(encoder, texts))
    embeddings_ND = np.zeros((len(ids), encoder.dim), np.float32)
    missing = []
    for number, shard in enumerate(shards):
        rows = _rows(shard)
        found = _read_shard(_shard_path(directory, number), (len(rows), encoder.dim))
        if found is None:
            missing.append(number)
        else:
            embeddings_ND[rows] = found
    left = sum(len(_rows(shards[number])) for number in missing)
    with encoding_bar(len(ids), len(ids) - left, shown=progress and left > 0) as bar:
        for number in missing:
            parts = []
            for batch in shards[number]:
                parts.append(encoder.embed_batch(ids, batch))
                bar.update(len(batch.rows))
            embeddings_ND[_rows(shards[number])] = part = np.concatenate(parts)
            _write_shard(_shard_path(directory, number), part)
    return embeddings_ND


def _rows(shard: list[Batch]) -> np.ndarray:
    return np.concatenate([batch.rows for batch in shard])


def _plan_key(encoder: Encoder, texts: Sequence[str]) -> str:
    digest = hashlib.sha256(f"{encoder.fingerprint()} {encoder.batch_tokens} {SHARD_BATCHES}".encode())
    for text in texts:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def _prepare(directory: pathlib.Path, key: str) -> None:
    plan = directory / "plan.json"
    if not plan.is_file() or plan.read_text(encoding="utf-8") != json.dumps({"key": key}):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        plan.write_text(json.dumps({"key": key}), encoding="utf-8")


def _shard_path(directory: pathlib.Path, number: int) -> pathlib.Path:
    return directory / f"shard-{number:05d}.npy"


def _read_shard(path: pathlib.Path, shape: tuple[int, int]) -> np.ndarray | None:
    try:
        shard = np.load(path, allow_pickle=False)
    except (FileNotFoundError, ValueError, EOFError):  # not there, or torn by a crash of the machine
        return None
    return shard if shard.shape == shape else None


def _write_shard(path: pathlib.Path, shard: np.ndarray) -> None:
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.save(file, shard, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
