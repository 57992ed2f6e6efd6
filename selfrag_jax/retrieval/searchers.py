"""Maximum inner product search over an embedding matrix: ScaNN, and exact search where ScaNN is not to be had.

Both answer with row numbers of the matrix. ScaNN can keep names of rows itself, but does so in a pickle and changes
the caller's list; it is never given any, and what is loaded here goes around its code for them.
"""

import contextlib
import dataclasses
import functools
import importlib.util
import math
import os
import pathlib
import sys
from typing import Any, Protocol

import jax
import numpy as np

from selfrag_jax.errors import UserError

ASSETS = "scann_assets.pbtxt"
BRUTE_FORCE_BELOW = 20_000
TREE_FROM = 100_000


class Searcher(Protocol):
    """Search over N rows."""

    def search(self, queries_BD: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers and inner products [B, k'], best first, k' = min(k, N); a row of -1 means nothing was found."""
        ...


@dataclasses.dataclass(frozen=True)
class ScannSettings:
    """How ScaNN searches; `leaves` 0 is no tree, `reorder` 0 is brute force."""

    leaves: int = 0  # partitions of the tree
    leaves_to_search: int = 0
    reorder: int = 0  # candidates of the quantised search that are scored again exactly

    @property
    def kind(self) -> str:
        """The name of the method in the manifest."""
        return "scann tree" if self.leaves else "scann hashing" if self.reorder else "scann brute force"


def choose_settings(count: int) -> ScannSettings:
    """By size: brute force, asymmetric hashing with exact reordering, and from 100,000 rows a tree of √N leaves."""
    if count < BRUTE_FORCE_BELOW:
        return ScannSettings()
    if count < TREE_FROM:
        return ScannSettings(reorder=200)
    leaves = round(math.sqrt(count))
    return ScannSettings(leaves=leaves, leaves_to_search=max(1, leaves // 10), reorder=200)


def scann_installed() -> bool:
    """Whether there is a ScaNN in this environment (there is none for arm64 macOS)."""
    return importlib.util.find_spec("scann") is not None


@functools.cache
def _scann() -> Any:
    """ScaNN's NumPy interface. TensorFlow, which it imports for another interface where it can, is kept out."""
    blocked = "tensorflow" not in sys.modules
    if blocked:
        sys.modules["tensorflow"] = None  # type: ignore[assignment]  # Python's own way to make an import fail
    try:
        from scann.scann_ops.py import scann_ops_pybind
    except ImportError as error:
        raise UserError(f'scann cannot be imported ({error}); set config.retrieval.searcher="exact"') from None
    finally:
        if blocked:
            sys.modules.pop("tensorflow", None)
    return scann_ops_pybind


@contextlib.contextmanager
def _quiet():
    """Sends the process's stderr to nowhere: ScaNN's native code logs there. Its errors are exceptions all the same."""
    sys.stderr.flush()
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


class ScannSearcher:
    """ScaNN over rows of float32."""

    def __init__(self, native: Any, count: int, settings: ScannSettings):
        self._native = native
        self._count = count
        self._settings = settings

    @classmethod
    def build(cls, embeddings_ND: np.ndarray, settings: ScannSettings) -> "ScannSearcher":
        """Trains and fills an index over the matrix, by inner product."""
        scann = _scann()
        count = len(embeddings_ND)
        builder = scann.builder(np.ascontiguousarray(embeddings_ND, np.float32), min(10, count), "dot_product")
        if settings.leaves:
            sample = min(count, 250_000)
            builder = builder.tree(settings.leaves, settings.leaves_to_search, training_sample_size=sample)
        if settings.reorder:
            builder = builder.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(settings.reorder)
        else:
            builder = builder.score_brute_force()
        with _quiet():
            return cls(builder.build(), count, settings)

    def save(self, directory: pathlib.Path, embeddings: pathlib.Path) -> None:
        """Writes ScaNN's files into `directory`, less its copy of the matrix: `embeddings`, beside it, stands for that.

        ScaNN lists its files in a text file, with paths relative to the directory; the one of the matrix is changed.
        """
        directory.mkdir()
        with _quiet():
            self._native.serialize(str(directory), relative_path=True)
        (directory / "dataset.npy").unlink()
        listing = directory / ASSETS
        text = listing.read_text(encoding="utf-8")
        shared = os.path.relpath(embeddings, directory)
        listing.write_text(text.replace('"dataset.npy"', f'"{shared}"'), encoding="utf-8")

    @classmethod
    def load(cls, directory: pathlib.Path, count: int, settings: ScannSettings) -> "ScannSearcher":
        """Opens what `save` wrote. Raises UserError when ScaNN cannot read it."""
        scann = _scann()
        try:
            listing = (directory / ASSETS).read_text(encoding="utf-8")
            with _quiet():
                # Not scann.load_searcher: that unpickles a scann_docids.pkl if somebody has put one here.
                native = scann.ScannSearcher(scann.scann_pybind.ScannNumpy(str(directory), listing))
        except (OSError, RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UserError(f"{directory}: ScaNN cannot open this index ({reason}); build it again") from None
        return cls(native, count, settings)

    def search(self, queries_BD: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See Searcher. The quantised search passes on max(reorder, 4k) candidates to be scored exactly."""
        k = min(k, self._count)
        if not len(queries_BD):
            return np.zeros((0, k), np.int64), np.zeros((0, k), np.float32)
        candidates = min(max(self._settings.reorder, 4 * k), self._count) if self._settings.reorder else None
        queries_BD = np.ascontiguousarray(queries_BD, np.float32)
        rows, scores = self._native.search_batched(
            queries_BD, final_num_neighbors=k, pre_reorder_num_neighbors=candidates
        )
        found = np.isfinite(scores)
        return np.where(found, rows.astype(np.int64), -1), np.where(found, scores, -np.inf)


class ExactSearcher:
    """Every inner product, on JAX's default device. Equal scores go to the lower row."""

    def __init__(self, embeddings_ND: np.ndarray):
        self._embeddings_ND = jax.device_put(np.asarray(embeddings_ND, np.float32))

    def search(self, queries_BD: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See Searcher. The number of queries is padded to a power of two, so that few shapes compile."""
        count = len(queries_BD)
        k = min(k, len(self._embeddings_ND))
        if not count:
            return np.zeros((0, k), np.int64), np.zeros((0, k), np.float32)
        padded_BD = np.zeros((1 << (count - 1).bit_length(), queries_BD.shape[1]), np.float32)
        padded_BD[:count] = queries_BD
        scores, rows = _exact_top_k(self._embeddings_ND, padded_BD, k)
        return np.asarray(rows)[:count].astype(np.int64), np.asarray(scores)[:count]


@functools.partial(jax.jit, static_argnames="k")
def _exact_top_k(embeddings_ND: jax.Array, queries_BD: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    scores_BN = jax.numpy.matmul(queries_BD, embeddings_ND.T, precision=jax.lax.Precision.HIGHEST)
    scores_BK, rows_BK = jax.lax.top_k(scores_BN, k)
    return scores_BK, rows_BK
