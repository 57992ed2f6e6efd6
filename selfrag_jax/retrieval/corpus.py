"""Passages as users hold them: JSONL rows {id, title, text}, or the TSV of DPR (header `id text title`, csv-quoted)."""

import csv
import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Iterable, Iterator

from selfrag_jax.config import RetrievalConfig
from selfrag_jax.errors import UserError
from selfrag_jax.paths import resolve

_FIELDS = ("id", "title", "text")


@dataclasses.dataclass(frozen=True, slots=True)
class CorpusPassage:
    """One passage of a corpus; the title may be empty, id and text never are."""

    id: str
    title: str
    text: str

    @property
    def encoder_text(self) -> str:
        """What the encoder sees: title + " " + text, as for Contriever and DPR."""
        return f"{self.title} {self.text}" if self.title else self.text

    def to_line(self) -> bytes:
        """The passage as one line of the store and of the corpus hash."""
        return json.dumps([self.id, self.title, self.text], ensure_ascii=False).encode() + b"\n"


def corpus_hash(passages: Iterable[CorpusPassage]) -> str:
    """sha256 over ids, titles and texts in order: equal exactly when an index over one serves the other."""
    digest = hashlib.sha256()
    for passage in passages:
        digest.update(passage.to_line())
    return digest.hexdigest()


def load_corpus(config: RetrievalConfig) -> list[CorpusPassage]:
    """The passages that `config.corpus` names: a file, or "demo" for the demo's facts.

    Raises UserError as `read_passages` does, and for an empty setting.
    """
    if not config.corpus:
        raise UserError('config.retrieval.corpus is empty; name a JSONL or TSV file of passages, or "demo"')
    if config.corpus == "demo":
        from selfrag_jax.demo.passages import passages

        return [CorpusPassage(passage.id, passage.title, passage.text) for passage in passages()]
    return read_passages(resolve(config.corpus))


def read_passages(path: pathlib.Path) -> list[CorpusPassage]:
    """All passages of a JSONL or TSV file; which it is, the first line says.

    Raises UserError with file and line for a missing file, broken encoding or syntax, a missing field, one of
    another type, an empty text, or an id that occurs twice. Unknown extra fields are fine.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; config.retrieval.corpus names a JSONL or TSV file of passages")
    with path.open("rb") as file:
        first = file.readline(1 << 20).removeprefix(b"\xef\xbb\xbf").strip()
    if not first:
        raise UserError(f"{path}:1: the first line is empty; expected a JSON object or the header id, text, title")
    rows = _jsonl_rows(path) if first.startswith(b"{") else _tsv_rows(path)
    seen: dict[str, int] = {}
    passages = []
    for line, row in rows:
        passage = _check(row, f"{path}:{line}")
        if passage.id in seen:
            raise UserError(f"{path}:{line}: the id {passage.id!r} is also that of line {seen[passage.id]}")
        seen[passage.id] = line
        passages.append(passage)
    if not passages:
        raise UserError(f"{path}: holds no passages")
    return passages


def _check(row: dict, where: str) -> CorpusPassage:
    values = {}
    for name in _FIELDS:
        value = row.get(name, "" if name == "title" else None)
        if name == "id" and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            found = "is missing" if value is None else f"is {json.dumps(value)[:40]}"
            raise UserError(f"{where}: the field {name} {found}; expected a string")
        if "\\u" in ascii(value) and any(0xD800 <= ord(char) < 0xE000 for char in value):
            raise UserError(f"{where}: the field {name} holds half of a surrogate pair, which is no character")
        values[name] = value
    for name in ("id", "text"):
        if not values[name].strip():
            raise UserError(f"{where}: the field {name} is empty")
    return CorpusPassage(**values)


def _decoded_lines(path: pathlib.Path) -> Iterator[str]:
    """The lines of a UTF-8 file with their ends; only \\n ends a line, and a byte order mark is dropped."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise UserError(f"{path}:{number}: not UTF-8 ({error.reason} at byte {error.start})") from None


def _jsonl_rows(path: pathlib.Path) -> Iterator[tuple[int, dict]]:
    for number, line in enumerate(_decoded_lines(path), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UserError(f"{path}:{number}: not valid JSON ({error})") from None
        if not isinstance(row, dict):
            raise UserError(f"{path}:{number}: expected a JSON object with the fields {', '.join(_FIELDS)}")
        yield number, row


def _tsv_rows(path: pathlib.Path) -> Iterator[tuple[int, dict]]:
    csv.field_size_limit(1 << 24)
    reader = csv.reader(_decoded_lines(path), delimiter="\t", strict=True)
    header: list[str] = []
    while True:
        line = reader.line_num + 1  # where the row starts: a quoted field may run over several lines
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(f"{path}:{line}: not a valid row ({error}); quotes inside a field are doubled") from None
        if not header:
            header = row
            if sorted(header) != sorted(_FIELDS):
                raise UserError(f"{path}:1: expected a JSON object or the header id, text, title; found {row[:4]}")
        elif len(row) == len(header):
            yield line, dict(zip(header, row, strict=True))
        elif row:
            raise UserError(f"{path}:{line}: {len(row)} columns; expected {len(header)}: {', '.join(header)}")
