"""What an index directory says of itself, and the checks that keep it from being used with what it does not fit."""

import dataclasses
import importlib.metadata
import json
import pathlib

from selfrag_jax.config import RetrievalConfig
from selfrag_jax.errors import UserError
from selfrag_jax.paths import resolve
from selfrag_jax.retrieval.corpus import corpus_hash, read_passages
from selfrag_jax.retrieval.encoder import EncoderIdentity
from selfrag_jax.retrieval.searchers import ScannSettings

FORMAT = 1
MANIFEST = "manifest.json"
REBUILD = "build it with `python -m selfrag_jax index --config=…`, the same config"


@dataclasses.dataclass(frozen=True)
class CorpusStamp:
    """Which passages were indexed. `bytes` and `mtime_ns` are of the file, 0 for "demo"; the hash is of the content."""

    source: str
    bytes: int
    mtime_ns: int
    sha256: str
    count: int

    def __str__(self) -> str:
        return f"{self.source} ({self.count} passages, {self.sha256[:8]})"


@dataclasses.dataclass(frozen=True)
class Manifest:
    """manifest.json of an index directory."""

    encoder: EncoderIdentity
    corpus: CorpusStamp
    dim: int
    scann: ScannSettings | None  # None: embeddings alone, for exact search
    versions: dict[str, str]
    files: dict[str, int]  # every other file of the directory → its bytes
    format: int = FORMAT

    def write(self, directory: pathlib.Path) -> None:
        """Writes manifest.json beside and renames it."""
        partial = directory / (MANIFEST + ".partial")
        partial.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n", encoding="utf-8")
        partial.replace(directory / MANIFEST)


def stamp_corpus(source: str, sha256: str, count: int) -> CorpusStamp:
    """The stamp of the corpus that a config names now."""
    if source == "demo":
        return CorpusStamp(source, 0, 0, sha256, count)
    stat = resolve(source).stat()
    return CorpusStamp(source, stat.st_size, stat.st_mtime_ns, sha256, count)


def versions() -> dict[str, str]:
    """Versions of what an index depends on; packages that are not installed are left out."""
    found = {}
    for name in ("selfrag_jax", "jax", "scann", "tokenizers"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def file_sizes(directory: pathlib.Path) -> dict[str, int]:
    """Every file below `directory` but the manifest → bytes."""
    files = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(directory).as_posix(): path.stat().st_size for path in files}


def read_manifest(directory: pathlib.Path) -> Manifest:
    """The manifest of an index. Raises UserError when there is none, or it cannot be read."""
    path = directory / MANIFEST
    if not path.is_file():
        raise UserError(f"{directory}: no index here; {REBUILD}")
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        if fields["format"] != FORMAT:
            raise UserError(f"{path}: index format {fields['format']}, but this version reads {FORMAT}; {REBUILD}")
        fields["encoder"] = EncoderIdentity(**fields["encoder"])
        fields["corpus"] = CorpusStamp(**fields["corpus"])
        fields["scann"] = ScannSettings(**fields["scann"]) if fields["scann"] is not None else None
        return Manifest(**fields)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not a readable manifest ({error}); {REBUILD}") from None


def check_encoder(manifest: Manifest, identity: EncoderIdentity, directory: pathlib.Path) -> None:
    """Raises UserError, naming both, unless the index was built by the encoder `identity`."""
    if manifest.encoder.fingerprint() != identity.fingerprint():
        raise UserError(
            f"{directory}: the index was built by the encoder {manifest.encoder}, but the config says {identity}; "
            f"{REBUILD}, or name another config.retrieval.index_dir"
        )


def check_corpus(manifest: Manifest, config: RetrievalConfig, directory: pathlib.Path) -> None:
    """Raises UserError, naming both, unless the index holds the passages that the config names.

    An index carries its passages, so an empty `config.corpus`, or the same name with the file gone, is fine. A file
    that is as large and as old as the indexed one is taken for it; otherwise its passages are compared. The demo's
    corpus comes with this package and is not written anew to be compared; the `index` command does that.
    """
    stamp, source = manifest.corpus, config.corpus
    if not source or source == stamp.source == "demo":
        return
    other = f"{source}"
    if source != "demo" and stamp.source != "demo":
        path = resolve(source)
        if not path.is_file():
            if source == stamp.source:
                return
        else:
            stat = path.stat()
            if (stat.st_size, stat.st_mtime_ns) == (stamp.bytes, stamp.mtime_ns):
                return
            if stat.st_size == stamp.bytes and corpus_hash(read_passages(path)) == stamp.sha256:
                return
            other = f"{source} as it is now ({stat.st_size} bytes)"
    raise UserError(
        f"{directory}: the index holds the corpus {stamp}, but the config says {other}; "
        f"{REBUILD}, or name another config.retrieval.index_dir"
    )


def check_files(manifest: Manifest, directory: pathlib.Path) -> None:
    """Raises UserError when a file of the index is missing or of another size than when it was written."""
    for name, size in manifest.files.items():
        path = directory / name
        if not path.is_file():
            raise UserError(f"{path}: this file of the index is missing; {REBUILD}")
        if path.stat().st_size != size:
            raise UserError(f"{path}: {path.stat().st_size} bytes, but {size} were written; {REBUILD}")
