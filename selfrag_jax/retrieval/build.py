"""From a config to a ready index, doing only what is not done yet."""

import contextlib
import dataclasses
import pathlib
import shutil
from collections.abc import Sequence

import numpy as np

from selfrag_jax.config import RetrievalConfig
from selfrag_jax.errors import UserError
from selfrag_jax.retrieval import manifest as manifests
from selfrag_jax.retrieval.corpus import CorpusPassage, corpus_hash, load_corpus
from selfrag_jax.retrieval.embed import embed_texts
from selfrag_jax.retrieval.encoder import Encoder
from selfrag_jax.retrieval.index import (
    EMBEDDINGS,
    Index,
    build_index,
    index_directory,
    load_index,
    refuse_foreign,
    sibling,
    wanted_settings,
)
from selfrag_jax.retrieval.manifest import Manifest
from selfrag_jax.retrieval.searchers import ExactSearcher


@dataclasses.dataclass(frozen=True)
class Ensured:
    """What `ensure_index` did: `built` is "everything", "searcher" (the embeddings were there) or "nothing"."""

    encoder: Encoder
    index: Index
    built: str


def ensure_index(config: RetrievalConfig, progress: bool = True) -> Ensured:
    """The index of a config, built if it is not there, or not of this encoder and corpus.

    Embeddings of the same encoder and corpus are reused; an interrupted embedding goes on (`embed_texts`).
    Raises UserError for a bad config, corpus or encoder, and for a directory that holds something else.
    """
    directory = index_directory(config)
    refuse_foreign(directory)
    encoder = Encoder.load(config)
    corpus = load_corpus(config)
    found = _usable(directory, encoder, corpus)
    if found is not None and found.scann == wanted_settings(config, len(corpus)):
        stamp = manifests.stamp_corpus(config.corpus, found.corpus.sha256, found.corpus.count)
        if stamp != found.corpus:  # the same passages from another file, or a file of another date
            dataclasses.replace(found, corpus=stamp).write(directory)
        return Ensured(encoder, load_index(directory, config, encoder.identity), "nothing")
    shards = sibling(directory, "embedding")
    if found is None:
        embeddings_ND = embed_texts(encoder, [passage.encoder_text for passage in corpus], shards, progress)
    else:
        embeddings_ND = np.load(directory / EMBEDDINGS, allow_pickle=False)
    build_index(embeddings_ND, corpus, directory, config, encoder.identity)
    shutil.rmtree(shards, ignore_errors=True)
    index = load_index(directory, config, encoder.identity)
    return Ensured(encoder, index, "everything" if found is None else "searcher")


def _usable(directory: pathlib.Path, encoder: Encoder, corpus: Sequence[CorpusPassage]) -> Manifest | None:
    """The manifest in `directory` if the index there is whole and of this encoder and corpus."""
    with contextlib.suppress(UserError):
        found = manifests.read_manifest(directory)
        manifests.check_encoder(found, encoder.identity, directory)
        manifests.check_files(found, directory)
        if found.corpus.sha256 == corpus_hash(corpus):
            return found
    return None


def recall_check(encoder: Encoder, index: Index, k: int = 5, queries: int = 200) -> float:
    """The share of exact search's top k that the index finds, with the titles of passages drawn at random as queries.

    A passage counts when its score reaches the k-th exact score, so that ties do not lower the figure.
    """
    rows = np.random.default_rng(0).permutation(len(index.passages))[:queries]
    drawn = [index.passages[int(row)] for row in rows]
    queries_BD = encoder.encode_queries([passage.title or passage.text for passage in drawn])
    _, exact_BK = ExactSearcher(index.embeddings()).search(queries_BD, k)
    _, found_BK = index.searcher.search(queries_BD, k)
    return float(np.mean(found_BK >= exact_BK[:, -1:] - 1e-5))
