"""Texts → embeddings: WordPiece tokens, length-sorted batches of few shapes, BERT, mean pooling.

The shape of a batch is a pure function of the texts and the settings, so an interrupted job that runs again computes
the very same batches (`selfrag_jax.retrieval.embed`).
"""

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Sequence

import jax
import numpy as np

from selfrag_jax import progress
from selfrag_jax.config import RetrievalConfig
from selfrag_jax.errors import UserError
from selfrag_jax.models import bert
from selfrag_jax.paths import resolve


@dataclasses.dataclass(frozen=True)
class EncoderIdentity:
    """All that an embedding depends on besides the text; two encoders with one identity agree up to float noise."""

    path: str  # as the config names it, for messages; no part of the fingerprint
    weights: str  # sha256 of each file
    config: str
    tokenizer: str
    normalize: bool
    max_length: int
    pooling: str = "mean"

    def fingerprint(self) -> str:
        """A hash of everything but the path."""
        fields = {name: value for name, value in dataclasses.asdict(self).items() if name != "path"}
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.path} (weights {self.weights[:8]}, normalize={self.normalize}, max_length={self.max_length})"


@dataclasses.dataclass(frozen=True)
class Batch:
    """Which texts go through the encoder together, and at what shape; rows beyond `len(rows)` are padding."""

    rows: np.ndarray  # indices into the texts
    size: int  # B
    length: int  # T


def length_bucket(length: int) -> int:
    """The padded length for a text of `length` tokens: steps of 8 to 64, 16 to 128, 32 to 256, 64 beyond.

    Few shapes to compile, and seldom more than a tenth of a batch is padding.
    """
    step = next((step for limit, step in ((64, 8), (128, 16), (256, 32)) if length <= limit), 64)
    return -(-length // step) * step


def plan_batches(lengths: Sequence[int], batch_tokens: int) -> list[Batch]:
    """Batches over texts of these token counts, longest first, each of one bucket and at most `batch_tokens` tokens.

    Longest first: memory peaks, if at all, at once; and the progress bar's estimate errs on the safe side.
    """
    lengths_N = np.asarray(lengths, np.int64)
    buckets_N = np.array([length_bucket(int(length)) for length in lengths_N], np.int64)
    batches = []
    for bucket in sorted(set(buckets_N.tolist()), reverse=True):
        rows = np.flatnonzero(buckets_N == bucket)
        size = max(1, batch_tokens // bucket)
        batches += [Batch(rows[i : i + size], size, bucket) for i in range(0, len(rows), size)]
    return batches


def _next_power_of_two(value: int, at_least: int) -> int:
    return max(at_least, 1 << (value - 1).bit_length())


class Encoder:
    """A BERT with its tokenizer and settings. Thread-safe once built; nothing in it changes."""

    def __init__(
        self,
        params: bert.Params,
        config: bert.BertConfig,
        tokenizer,
        identity: EncoderIdentity,
        batch_tokens: int,
    ):
        """`tokenizer` is a `tokenizers.Tokenizer`; its truncation, padding and special-token settings are set here."""
        tokenizer.no_padding()
        tokenizer.enable_truncation(identity.max_length)
        tokenizer.encode_special_tokens = True  # "[SEP]" in a text is four characters and a word, never the separator
        self.identity = identity
        self.dim = config.hidden_size
        self.batch_tokens = batch_tokens
        self._tokenizer = tokenizer
        self._config = config
        self._params = jax.device_put(params)

    @classmethod
    def load(cls, config: RetrievalConfig) -> "Encoder":
        """The encoder of a config: `config.encoder` is a directory with *.safetensors, config.json, tokenizer.json.

        Raises UserError when a file is missing, truncated or of an unsupported model, or a setting does not fit it.
        """
        import tokenizers

        if not config.encoder:
            raise UserError("config.retrieval.encoder is empty; name a Hugging Face directory of a BERT model")
        directory = resolve(config.encoder)
        model = bert.BertConfig.from_directory(directory)
        if not 3 <= config.max_length <= model.max_position_embeddings:
            allowed = f"this encoder takes 3 to {model.max_position_embeddings} tokens"
            raise UserError(f"config.retrieval.max_length is {config.max_length}; {allowed} ({directory})")
        if config.batch_tokens < 1:
            raise UserError(f"config.retrieval.batch_tokens is {config.batch_tokens}; expected at least 1")
        path = directory / "tokenizer.json"
        if not path.is_file():
            raise UserError(f"{path}: no such file; the encoder needs its tokenizer.json")
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise UserError(f"{path}: not a readable tokenizer ({error})") from None
        if tokenizer.get_vocab_size() > model.vocab_size:
            count = tokenizer.get_vocab_size()
            raise UserError(f"{path}: {count} tokens, but the model's vocabulary has {model.vocab_size}")
        identity = identify(config)
        return cls(bert.load_params(directory, model), model, tokenizer, identity, config.batch_tokens)

    def fingerprint(self) -> str:
        """A hash of the weights, configuration, tokenizer and settings: what an index is tied to."""
        return self.identity.fingerprint()

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of [CLS] text [SEP], truncated to max_length; the text itself never yields a special token."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]

    def embed_batch(self, ids: Sequence[Sequence[int]], batch: Batch) -> np.ndarray:
        """Embeddings f32 [len(batch.rows), D] of the texts `batch.rows`, given all texts' ids."""
        tokens_BT = np.zeros((batch.size, batch.length), np.int32)
        lengths_B = np.ones(batch.size, np.int32)
        for position, row in enumerate(batch.rows):
            tokens_BT[position, : len(ids[row])] = ids[row]
            lengths_B[position] = len(ids[row])
        embeddings_BD = _embed(self._params, self._config, tokens_BT, lengths_B, self.identity.normalize)
        return np.asarray(embeddings_BD)[: len(batch.rows)]

    def encode(self, texts: Sequence[str], progress: bool = True) -> np.ndarray:
        """Embeddings f32 [N, D] in the order of `texts`, with a progress bar on stderr if `progress`."""
        ids = self.tokenize(texts)
        embeddings_ND = np.zeros((len(ids), self.dim), np.float32)
        with encoding_bar(len(ids), 0, shown=progress) as bar:
            for batch in plan_batches([len(row) for row in ids], self.batch_tokens):
                embeddings_ND[batch.rows] = self.embed_batch(ids, batch)
                bar.update(len(batch.rows))
        return embeddings_ND

    def encode_queries(self, queries: Sequence[str]) -> np.ndarray:
        """Embeddings f32 [n, D] of a few short texts, at once and at shapes that are powers of two.

        A session meets queries of every length and number; powers of two keep it to a handful of compilations.
        """
        if not queries:
            return np.zeros((0, self.dim), np.float32)
        ids = self.tokenize(queries)
        length = min(_next_power_of_two(max(map(len, ids)), 16), self.identity.max_length)
        most = max(1, self.batch_tokens // length)
        parts = []
        for start in range(0, len(ids), most):
            rows = np.arange(start, min(start + most, len(ids)))
            parts.append(self.embed_batch(ids, Batch(rows, min(_next_power_of_two(len(rows), 1), most), length)))
        return np.concatenate(parts)


# Of the module, not of an encoder: a second encoder of the same shapes compiles nothing.
_embed = jax.jit(bert.embed, static_argnames=("config", "normalize"))


def identify(config: RetrievalConfig) -> EncoderIdentity:
    """The identity of a config's encoder, from its files' bytes; does not load the model.

    Raises UserError when a file is missing.
    """
    directory = resolve(config.encoder)
    weights = _sha256(*sorted(directory.glob("*.safetensors")))
    shape, tokenizer = _sha256(directory / "config.json"), _sha256(directory / "tokenizer.json")
    return EncoderIdentity(config.encoder, weights, shape, tokenizer, config.normalize, config.max_length)


def _sha256(*paths: pathlib.Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except FileNotFoundError:
            raise UserError(f"{path}: no such file; the encoder needs it") from None
    return digest.hexdigest()


def encoding_bar(total: int, done: int, shown: bool):
    """A bar over the texts that are encoded."""
    return progress.bar(total, done, " texts", "encoding", disable=not shown, smoothing=0.05)
