"""The index directory: passages, embeddings, ScaNN's files and a manifest; built whole, then renamed into place.

| file | what |
|---|---|
| `manifest.json` | what made it, what it holds (`selfrag_jax.retrieval.manifest`) |
| `passages.jsonl`, `passages.offsets.npy` | the passages by row number (`selfrag_jax.retrieval.store`) |
| `embeddings.npy` | f32 [N, D]; exact search reads it, ScaNN shares it |
| `scann/` | ScaNN's own files, unless exact search was asked for |
"""

import dataclasses
import pathlib
import shutil
import sys
from collections.abc import Sequence

import numpy as np

from selfrag_jax.config import RetrievalConfig
from selfrag_jax.errors import UserError
from selfrag_jax.paths import resolve
from selfrag_jax.retrieval import manifest as manifests
from selfrag_jax.retrieval.corpus import CorpusPassage, corpus_hash
from selfrag_jax.retrieval.encoder import EncoderIdentity, identify
from selfrag_jax.retrieval.manifest import Manifest
from selfrag_jax.retrieval.searchers import (
    ExactSearcher,
    ScannSearcher,
    ScannSettings,
    Searcher,
    choose_settings,
    scann_installed,
)
from selfrag_jax.retrieval.store import PassageStore, write_store

EMBEDDINGS = "embeddings.npy"
SCANN = "scann"
SEARCHERS = ("auto", "scann", "exact")


@dataclasses.dataclass(frozen=True)
class Index:
    """An open index: passages by row, and a searcher over those rows."""

    manifest: Manifest
    passages: PassageStore
    searcher: Searcher
    method: str  # "scann tree", "scann hashing", "scann brute force" or "exact"
    directory: pathlib.Path

    def embeddings(self) -> np.ndarray:
        """The matrix f32 [N, D], memory-mapped."""
        return np.load(self.directory / EMBEDDINGS, mmap_mode="r", allow_pickle=False)


def index_directory(config: RetrievalConfig) -> pathlib.Path:
    """Where a config keeps its index. Raises UserError when it does not say."""
    if not config.index_dir:
        raise UserError("config.retrieval.index_dir is empty; name the directory that keeps the index")
    if config.searcher not in SEARCHERS:
        raise UserError(f"config.retrieval.searcher is {config.searcher!r}; expected one of {', '.join(SEARCHERS)}")
    return resolve(config.index_dir)


def wanted_settings(config: RetrievalConfig, count: int) -> ScannSettings | None:
    """ScaNN's settings for `count` passages, or None for exact search, which is said aloud if it is not by choice."""
    if config.searcher == "exact":
        return None
    if not scann_installed():
        if config.searcher == "scann":
            raise UserError('config.retrieval.searcher is "scann", but scann is not installed; use "auto" or "exact"')
        print("retrieval: scann is not available on this platform, so search is exact (and slower)", file=sys.stderr)
        return None
    return choose_settings(count)


def build_index(
    embeddings_ND: np.ndarray,
    corpus: Sequence[CorpusPassage],
    directory: pathlib.Path,
    config: RetrievalConfig,
    identity: EncoderIdentity | None = None,
) -> Manifest:
    """Writes the index of `corpus`, whose row n is embeddings_ND[n], into `directory`; an index there is replaced.

    `identity` is that of the encoder that made the embeddings; by default it is read from the config's files.
    Raises UserError when the directory holds something that is not an index.
    """
    if len(embeddings_ND) != len(corpus):
        raise ValueError(f"{len(embeddings_ND)} embeddings for {len(corpus)} passages")
    refuse_foreign(directory)
    settings = wanted_settings(config, len(corpus))
    partial = sibling(directory, "partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    write_store(corpus, partial)
    np.save(partial / EMBEDDINGS, np.asarray(embeddings_ND, np.float32), allow_pickle=False)
    if settings is not None:
        ScannSearcher.build(embeddings_ND, settings).save(partial / SCANN, partial / EMBEDDINGS)
    manifest = Manifest(
        encoder=identity or identify(config),
        corpus=manifests.stamp_corpus(config.corpus, corpus_hash(corpus), len(corpus)),
        dim=embeddings_ND.shape[1],
        scann=settings,
        versions=manifests.versions(),
        files=manifests.file_sizes(partial),
    )
    manifest.write(partial)
    _swap_in(partial, directory)
    return manifest


def sibling(directory: pathlib.Path, suffix: str) -> pathlib.Path:
    """A name beside `directory`, on the same file system, for what is not finished."""
    return directory.with_name(f"{directory.name}.{suffix}")


def refuse_foreign(directory: pathlib.Path) -> None:
    """Puts back an index that an interrupted replacement left aside; refuses to replace what is not an index."""
    old = sibling(directory, "old")
    if old.is_dir() and not directory.exists():
        old.rename(directory)
    if directory.is_dir() and any(directory.iterdir()) and not (directory / manifests.MANIFEST).is_file():
        raise UserError(f"{directory}: holds files that are no index; name another config.retrieval.index_dir")
    if directory.exists() and not directory.is_dir():
        raise UserError(f"{directory}: a file stands where the index directory should be")


def _swap_in(partial: pathlib.Path, directory: pathlib.Path) -> None:
    old = sibling(directory, "old")
    shutil.rmtree(old, ignore_errors=True)
    if directory.exists():
        directory.rename(old)
    partial.rename(directory)
    shutil.rmtree(old, ignore_errors=True)


def load_index(directory: pathlib.Path, config: RetrievalConfig, identity: EncoderIdentity | None = None) -> Index:
    """Opens an index after checking that it fits the config's encoder and corpus and that its files are whole.

    `identity` spares reading the encoder's files again. Raises UserError when anything does not fit.
    """
    found = manifests.read_manifest(directory)
    manifests.check_encoder(found, identity or identify(config), directory)
    manifests.check_corpus(found, config, directory)
    manifests.check_files(found, directory)
    searcher, method = _open_searcher(found, directory, config.searcher)
    return Index(found, PassageStore(directory), searcher, method, directory)


def _open_searcher(found: Manifest, directory: pathlib.Path, wanted: str) -> tuple[Searcher, str]:
    reason = ""
    if wanted != "exact":
        if found.scann is None:
            reason = f"{directory} was built without ScaNN"
        elif not scann_installed():
            reason = "scann is not available on this platform"
        else:
            return ScannSearcher.load(directory / SCANN, found.corpus.count, found.scann), found.scann.kind
        if wanted == "scann":
            raise UserError(f'config.retrieval.searcher is "scann", but {reason}; {manifests.REBUILD}')
        print(f"retrieval: {reason}, so search is exact (and slower)", file=sys.stderr)
    embeddings_ND = np.load(directory / EMBEDDINGS, mmap_mode="r", allow_pickle=False)
    return ExactSearcher(embeddings_ND), "exact"
