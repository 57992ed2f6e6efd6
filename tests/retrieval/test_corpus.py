"""Reading passages: what users hold, and one clear line for what is broken; and the store by row."""

import csv
import json
import time

import pytest

from selfrag_jax.config import RetrievalConfig
from selfrag_jax.errors import UserError
from selfrag_jax.retrieval.corpus import CorpusPassage, corpus_hash, load_corpus, read_passages
from selfrag_jax.retrieval.store import PassageStore, write_store

AWKWARD = [
    CorpusPassage("1", 'A "quoted" title', 'He said "no".\tThen a tab,\nand a new line.'),
    CorpusPassage("2", "", 'No title, and a trailing quote"'),
    CorpusPassage("3", "Ünïcode 東京", "line\u2028separator, next\x85line, emoji 🦜"),
]


def test_reads_the_published_layout(assets):
    passages = read_passages(assets / "passages" / "passages.tsv")
    assert len(passages) == 7886
    assert passages[0].id == "0" and passages[0].title == "Ed Wood (film)"
    assert passages[0].text.startswith("Ed Wood is a 1994 American")
    assert '"Sinister", "The Exorcism of Emily Rose"' in passages[1].text
    assert passages[1].encoder_text.startswith("Scott Derrickson Scott Derrickson (born July 16, 1966)")


@pytest.mark.parametrize("order", [("id", "text", "title"), ("title", "id", "text")])
def test_tsv_with_quotes_tabs_and_newlines_in_fields(tmp_path, order):
    path = tmp_path / "passages.tsv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(order)
        writer.writerows([[getattr(passage, name) for name in order] for passage in AWKWARD])
    assert read_passages(path) == AWKWARD


def test_jsonl_with_extra_fields_numbers_as_ids_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "passages.jsonl"
    rows = [{"id": int(p.id), "title": p.title, "text": p.text, "score": 1.5} for p in AWKWARD]
    lines = "\n\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(lines, encoding="utf-8-sig")
    assert load_corpus(RetrievalConfig(corpus=str(path))) == AWKWARD


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r":1: the first line is empty"),
        (b"id\ttext\n1\tx\n", r":1: .*header id, text, title"),
        (b"id\ttext\ttitle\n", r"holds no passages"),
        (b"id\ttext\ttitle\n1\tx\ty\n2\tx\n", r":3: 2 columns; expected 3"),
        (b'id\ttext\ttitle\n1\t"two\nlines"\ty\n2\t\ty\n', r":4: the field text is empty"),
        (b'id\ttext\ttitle\n1\t"a"b\ty\n', r":2: not a valid row"),
        (b'id\ttext\ttitle\n1\t"never closed\ty\n2\tx\ty\n', r":2: not a valid row"),
        (b'{"id": "1", "text": "x"}\n{"id": "2"}\n', r":2: the field text is missing"),
        (b'{"id": "1", "text": ["x"]}\n', r':1: the field text is \["x"\]; expected a string'),
        (b'{"id": true, "text": "x"}\n', r":1: the field id is true"),
        (b'{"id": " ", "text": "x"}\n', r":1: the field id is empty"),
        (b'{"id": "1", "text": "x"}\n{"id": "2", "te', r":2: not valid JSON"),
        (b'{"id": "1", "text": "x"}\n[1]\n', r":2: expected a JSON object"),
        (b'{"id": "1", "text": "x"}\n\n{"id": "1", "text": "y"}\n', r":3: the id '1' is also that of line 1"),
        (b'{"id": "1", "text": "\\ud800"}\n', r":1: the field text holds half of a surrogate pair"),
        (b'{"id": "1", "text": "x"}\n{"id": "2", "text": "\xff"}\n', r":2: not UTF-8"),
    ],
)
def test_names_file_and_line_of_what_is_broken(tmp_path, content, message):
    path = tmp_path / "passages"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as raised:
        read_passages(path)
    assert str(path) in str(raised.value) and "\n" not in str(raised.value)


def test_missing_and_unnamed_files(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        load_corpus(RetrievalConfig(corpus=str(tmp_path / "none.jsonl")))
    with pytest.raises(UserError, match=r"config\.retrieval\.corpus is empty"):
        load_corpus(RetrievalConfig())


def test_store_gives_back_every_passage_by_row(tmp_path):
    write_store(AWKWARD, tmp_path)
    store = PassageStore(tmp_path)
    assert len(store) == 3 and [store[2], store[0], store[1]] == [AWKWARD[2], AWKWARD[0], AWKWARD[1]]
    for row in (-1, 3):
        with pytest.raises(IndexError):
            store[row]


def test_store_of_many_passages_opens_at_once(tmp_path):
    write_store((CorpusPassage(str(n), f"title {n}", "text " * 30) for n in range(25_000)), tmp_path)
    started = time.process_time()
    store = PassageStore(tmp_path)
    assert store[24_999].title == "title 24999"
    assert time.process_time() - started < 0.1


def test_hash_tells_corpora_apart():
    hashes = {corpus_hash(AWKWARD), corpus_hash(AWKWARD[::-1]), corpus_hash(AWKWARD[:2])}
    moved = [CorpusPassage("1", "a", "b c"), CorpusPassage("1", "a b", "c")]
    assert len(hashes | {corpus_hash([passage]) for passage in moved}) == 5
