"""Queries → passages: the encoder and the index behind the protocol that decoding knows."""

from selfrag_jax.config import RetrievalConfig
from selfrag_jax.decoding.retriever import Passage
from selfrag_jax.retrieval.encoder import Encoder
from selfrag_jax.retrieval.index import Index, index_directory, load_index
from selfrag_jax.retrieval.manifest import read_manifest


class Retriever:
    """Dense retrieval by inner product over an index; implements `selfrag_jax.decoding.retriever.Retriever`."""

    def __init__(self, encoder: Encoder, index: Index):
        self.encoder = encoder
        self.index = index

    @classmethod
    def load(cls, config: RetrievalConfig) -> "Retriever":
        """Opens the config's index and encoder. Raises UserError when either is missing or they do not fit together."""
        directory = index_directory(config)
        read_manifest(directory)  # before the encoder is loaded: the likeliest thing to be missing
        encoder = Encoder.load(config)
        return cls(encoder, load_index(directory, config, encoder.identity))

    def retrieve(self, queries: list[str], k: int) -> list[list[Passage]]:
        """For each query the k best passages, fewer where the corpus is smaller, with inner products as scores."""
        if k < 1:
            raise ValueError(f"k is {k}; expected at least 1")
        rows_QK, scores_QK = self.index.searcher.search(self.encoder.encode_queries(queries), k)
        return [
            [self._passage(int(row), float(score)) for row, score in zip(rows, scores, strict=True) if row >= 0]
            for rows, scores in zip(rows_QK, scores_QK, strict=True)
        ]

    def _passage(self, row: int, score: float) -> Passage:
        passage = self.index.passages[row]
        return Passage(passage.id, passage.title, passage.text, score)
