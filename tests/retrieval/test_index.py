"""Searchers against exact search, and the index directory: whole, checked, resumable, never a pickle."""

import dataclasses
import json
import pathlib
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
from tiny_encoder import write_encoder

from selfrag_jax.config import RetrievalConfig
from selfrag_jax.errors import UserError
from selfrag_jax.retrieval import embed, index, searchers
from selfrag_jax.retrieval.build import ensure_index, recall_check
from selfrag_jax.retrieval.corpus import load_corpus
from selfrag_jax.retrieval.index import build_index, load_index
from selfrag_jax.retrieval.manifest import read_manifest
from selfrag_jax.retrieval.searchers import ExactSearcher, ScannSearcher, ScannSettings, choose_settings

needs_scann = pytest.mark.skipif(not searchers.scann_installed(), reason="there is no scann for this platform")
SMALL = {"brute": ScannSettings(), "hashing": ScannSettings(reorder=100), "tree": ScannSettings(60, 20, 100)}


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    """4000 unit vectors in 100 loose clusters."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(100, 32))
    rows = centres[rng.integers(0, 100, 4000)] + 0.6 * rng.normal(size=(4000, 32))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def queries(vectors) -> np.ndarray:
    rng = np.random.default_rng(1)
    return (vectors[:200] + 0.1 * rng.normal(size=(200, 32))).astype(np.float32)


def reference(vectors: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-(queries.astype(np.float64) @ vectors.astype(np.float64).T), axis=1, kind="stable")[:, :k]


def test_exact_search_is_exact(vectors, queries):
    searcher = ExactSearcher(vectors)
    for count in (1, 3, 200):
        rows, scores = searcher.search(queries[:count], 5)
        np.testing.assert_array_equal(rows, reference(vectors, queries[:count], 5))
        expected = np.take_along_axis(queries[:count] @ vectors.T, rows, axis=1)
        np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert searcher.search(queries[:2], 9999)[0].shape == (2, 4000)
    assert searcher.search(queries[:0], 5)[0].shape == (0, 5)


@needs_scann
@pytest.mark.parametrize("name", SMALL)
def test_scann_finds_what_exact_search_finds_and_survives_the_disk(vectors, queries, name, tmp_path):
    np.save(tmp_path / "embeddings.npy", vectors)
    built = ScannSearcher.build(vectors, SMALL[name])
    rows, scores = built.search(queries, 5)
    exact = reference(vectors, queries, 5)
    recall = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(rows, exact, strict=True)])
    assert recall >= (1.0 if name == "brute" else 0.98)
    np.testing.assert_allclose(scores, np.take_along_axis(queries @ vectors.T, rows, axis=1), atol=1e-4)
    built.save(tmp_path / "scann", tmp_path / "embeddings.npy")
    assert not list((tmp_path / "scann").glob("*.pkl")), "ScaNN must not write a pickle"
    assert not (tmp_path / "scann" / "dataset.npy").exists(), "the matrix is on disk once"
    shutil.copytree(tmp_path, tmp_path / "moved")  # the directory may be moved
    loaded = ScannSearcher.load(tmp_path / "moved" / "scann", len(vectors), SMALL[name])
    np.testing.assert_array_equal(loaded.search(queries, 5)[0], rows)
    assert loaded.search(queries[:0], 5)[0].shape == (0, 5)


@needs_scann
def test_rows_that_a_tree_does_not_reach_are_marked(vectors, queries):
    searcher = ScannSearcher.build(vectors, ScannSettings(leaves=60, leaves_to_search=2, reorder=100))
    rows, scores = searcher.search(queries[:4], 4000)
    assert rows.shape == (4, 4000) and (rows == -1).any() and (rows[:, 0] >= 0).all()
    assert np.isneginf(scores[rows == -1]).all() and np.isfinite(scores[rows >= 0]).all()


def test_method_follows_the_size():
    assert choose_settings(19_999).kind == "scann brute force"
    assert choose_settings(20_000).kind == "scann hashing" and choose_settings(99_999).leaves == 0
    settings = choose_settings(1_000_000)
    assert settings.kind == "scann tree" and settings.leaves == 1000 and settings.leaves_to_search == 100


def test_built_once_then_reused(config):
    first = ensure_index(config, progress=False)
    assert first.built == "everything" and len(first.index.passages) == 300
    directory = pathlib.Path(config.index_dir)
    assert sorted(path.name for path in directory.parent.iterdir()) == ["index", "passages.jsonl"], "left-overs"
    assert not list(directory.rglob("*.pkl"))
    corpus = load_corpus(config)
    assert [first.index.passages[row] for row in (0, 299)] == [corpus[0], corpus[299]]
    expected = first.encoder.encode([passage.encoder_text for passage in corpus], progress=False)
    np.testing.assert_allclose(first.index.embeddings(), expected, atol=2e-6)
    assert recall_check(first.encoder, first.index) == 1.0
    assert ensure_index(config, progress=False).built == "nothing"
    pathlib.Path(config.corpus).touch()
    assert ensure_index(config, progress=False).built == "nothing", "same content, new date"
    load_index(directory, config)


def test_recall_check_sees_a_bad_searcher(config):
    done = ensure_index(config, progress=False)
    shuffled = np.random.default_rng(0).permutation(np.asarray(done.index.embeddings()))
    assert recall_check(done.encoder, dataclasses.replace(done.index, searcher=ExactSearcher(shuffled[:150]))) < 0.9


@needs_scann
def test_another_searcher_reuses_the_embeddings(config, monkeypatch, capsys):
    exact = dataclasses.replace(config, searcher="exact")
    ensure_index(exact, progress=False)
    assert read_manifest(pathlib.Path(config.index_dir)).scann is None
    assert load_index(pathlib.Path(config.index_dir), config).method == "exact"
    assert "built without ScaNN, so search is exact" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"built without ScaNN.*selfrag_jax index"):
        load_index(pathlib.Path(config.index_dir), dataclasses.replace(config, searcher="scann"))
    assert ensure_index(config, progress=False).built == "searcher"
    assert load_index(pathlib.Path(config.index_dir), config).method == "scann brute force"
    assert load_index(pathlib.Path(config.index_dir), exact).method == "exact"
    assert capsys.readouterr().err == ""


def test_without_scann_search_is_exact_and_says_so(config, monkeypatch, capsys):
    monkeypatch.setattr(index, "scann_installed", lambda: False)
    done = ensure_index(config, progress=False)
    assert done.index.method == "exact" and done.index.manifest.scann is None
    assert "scann is not available on this platform" in capsys.readouterr().err
    with pytest.raises(UserError, match="scann is not installed"):
        ensure_index(dataclasses.replace(config, searcher="scann"), progress=False)


def test_another_encoder_is_refused_by_name(config, tmp_path):
    ensure_index(config, progress=False)
    directory = pathlib.Path(config.index_dir)
    other = write_encoder(tmp_path / "other", seed=9)
    for changed in (
        dataclasses.replace(config, encoder=str(other)),
        dataclasses.replace(config, normalize=False),
        dataclasses.replace(config, max_length=20),
    ):
        with pytest.raises(UserError) as raised:
            load_index(directory, changed)
        message = str(raised.value)
        assert config.encoder in message and changed.encoder in message and "python -m selfrag_jax index" in message
    changed = dataclasses.replace(config, encoder=str(other))
    assert ensure_index(changed, progress=False).built == "everything"
    with pytest.raises(UserError, match="built by the encoder"):
        load_index(directory, config)


def test_another_corpus_is_refused_by_name(config, tmp_path):
    ensure_index(config, progress=False)
    directory, path = pathlib.Path(config.index_dir), pathlib.Path(config.corpus)
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"id": "1", "title": "a", "text": "b"}) + "\n")
    for source in (str(other), "demo"):
        with pytest.raises(UserError, match="holds the corpus") as raised:
            load_index(directory, dataclasses.replace(config, corpus=source))
        assert config.corpus in str(raised.value) and source in str(raised.value)
    copy = shutil.copy(path, tmp_path / "copy.jsonl")
    load_index(directory, dataclasses.replace(config, corpus=str(copy)))
    content = path.read_text()
    path.write_text(content.replace("river", "rover", 1))  # of the same size
    with pytest.raises(UserError, match="as it is now"):
        load_index(directory, config)
    path.write_text(content + json.dumps({"id": "x", "title": "a", "text": "b"}) + "\n")
    with pytest.raises(UserError, match="as it is now"):
        load_index(directory, config)
    path.unlink()
    load_index(directory, config)  # an index carries its passages
    load_index(directory, dataclasses.replace(config, corpus=""))


def test_missing_truncated_or_foreign_files_are_named(config, tmp_path):
    directory = pathlib.Path(config.index_dir)
    with pytest.raises(UserError, match=r"no index here; .*python -m selfrag_jax index"):
        load_index(directory, config)
    with pytest.raises(UserError, match=r"index_dir is empty"):
        ensure_index(dataclasses.replace(config, index_dir=""))
    ensure_index(config, progress=False)
    for path in [path for path in directory.rglob("*") if path.is_file() and path.name != "manifest.json"]:
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        with pytest.raises(UserError, match=f"{path.name}: .* bytes, but"):
            load_index(directory, config)
        path.unlink()
        with pytest.raises(UserError, match=f"{path.name}: .*missing"):
            load_index(directory, config)
        path.write_bytes(content)
    manifest = directory / "manifest.json"
    content = manifest.read_text()
    for broken in (content[:50], content.replace('"format": 1', '"format": 99'), "[]"):
        manifest.write_text(broken)
        with pytest.raises(UserError, match=r"manifest\.json"):
            load_index(directory, config)
    assert ensure_index(config, progress=False).built == "everything"
    foreign = tmp_path / "photos"
    foreign.mkdir()
    (foreign / "one.jpg").write_bytes(b"x")
    with pytest.raises(UserError, match="no index"):
        ensure_index(dataclasses.replace(config, index_dir=str(foreign)), progress=False)
    assert (foreign / "one.jpg").exists()


def test_killed_while_embedding_then_run_again(config, monkeypatch):
    monkeypatch.setattr(embed, "SHARD_BATCHES", 4)
    whole = ensure_index(dataclasses.replace(config, index_dir=config.index_dir + "-whole"), progress=False)
    real, calls = embed._write_shard, []

    def killed(path, shard):
        real(path, shard)
        calls.append(path.name)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(embed, "_write_shard", killed)
    with pytest.raises(KeyboardInterrupt):
        ensure_index(config, progress=False)
    assert not pathlib.Path(config.index_dir).exists()
    again = ensure_index(config, progress=False)
    np.testing.assert_array_equal(again.index.embeddings(), whole.index.embeddings())
    assert len(calls) == len(set(calls)) > 2, "a finished shard was computed twice"


def test_killed_while_replacing_keeps_the_old_index(config, monkeypatch):
    ensure_index(config, progress=False)
    directory = pathlib.Path(config.index_dir)
    corpus = load_corpus(config)

    def killed(self, target):
        if target == directory:
            raise KeyboardInterrupt
        return real(self, target)

    real = pathlib.Path.rename
    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            build_index(np.ones((300, 16), np.float32), corpus, directory, config)
    assert not directory.exists()
    assert ensure_index(config, progress=False).built == "nothing"


@needs_scann
def test_a_planted_pickle_is_not_read(config, tmp_path):
    ensure_index(config, progress=False)
    directory = pathlib.Path(config.index_dir)
    witness = tmp_path / "witness"

    class Malicious:
        def __reduce__(self):
            return (pathlib.Path.touch, (witness,))

    (directory / "scann" / "scann_docids.pkl").write_bytes(pickle.dumps(Malicious()))
    load_index(directory, config)
    assert not witness.exists()


@needs_scann
def test_search_imports_neither_tensorflow_nor_torch(config):
    done = ensure_index(config, progress=False)
    code = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
from selfrag_jax.config import RetrievalConfig
from selfrag_jax.retrieval.retriever import Retriever
retriever = Retriever.load(RetrievalConfig(**{dataclasses.asdict(config)!r}))
assert retriever.index.method == "scann brute force"
assert len(retriever.retrieve(["the capital"], 3)[0]) == 3
print(sorted(name for name in ("tensorflow", "torch", "transformers") if name in sys.modules))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
    assert result.stderr == "", "ScaNN's native log reaches the terminal"
    assert done.index.method == "scann brute force"


def test_unknown_searcher(config):
    with pytest.raises(UserError, match="searcher is 'faiss'"):
        ensure_index(RetrievalConfig(**{**dataclasses.asdict(config), "searcher": "faiss"}))
