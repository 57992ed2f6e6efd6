"""The beam and the citations: pure functions."""

import numpy as np
import pytest

from selfrag_jax.decoding import citations, search
from selfrag_jax.decoding.result import OfferedPassage, Sentence
from selfrag_jax.decoding.scoring import Decision, GroupReading, SegmentScore, Trace
from selfrag_jax.decoding.search import Path, Step

DECISION = Decision("retrieve", (0.0, 1.0, 0.0), 1.0, 1.0, "[Retrieval]")
NOTHING = Trace(np.array([1]), np.zeros(1), np.zeros((1, 13)), np.zeros(1))


def path(score: float, ended: str = "") -> Path:
    return Path((), ended, score, None)


def test_ended_paths_stay_in_the_race_and_ties_go_by_order():
    a, b, c, d = path(1.0, "eos"), path(2.0), path(1.0), path(0.5, "eos")
    assert search.keep_best([a, b, c, d], 2) == [b, a]
    assert search.keep_best([c, b, a, d], 2)[1] is c
    assert search.keep_best([a], 2) == [a]


def step(node: int, passage: int | None, support: int | None) -> Step:
    issup = None if support is None else GroupReading(0, (), support, 0.0)
    return Step(node, None, 0, "retrieve", passage, DECISION, (), NOTHING, SegmentScore(0.0, None, issup, None))


def test_citations_only_where_supported_and_duplicates_share_a_number():
    passages = [
        OfferedPassage("1", "A", "a", 0.0),
        OfferedPassage("2", "B", "b", 0.0),
        OfferedPassage("3", "B", "b", 0.0),
        OfferedPassage("4", "C", "c", 0.0),
    ]
    steps = [step(0, 1, 0), step(1, 0, 2), step(2, 2, 1), step(3, 3, None), step(4, None, 0), step(5, 3, 0)]
    texts = ["One. Two.", "Three.", "Four.", "Five.", "Six.", "Seven"]
    sentences, cited, shown = citations.cite(steps, texts, passages)
    assert shown == "One [1]. Two [1]. Three. Four [1]. Five. Six. Seven [2]"
    assert [(s.text, s.citations, s.segment) for s in sentences] == [
        ("One.", (1,), 0),
        ("Two.", (1,), 0),
        ("Three.", (), 1),  # no support
        ("Four.", (1,), 2),  # partially, by a duplicate of the first
        ("Five.", (), 3),  # support was not judged
        ("Six.", (), 4),  # no passage
        ("Seven", (2,), 5),
    ]
    assert [(p.number, p.title) for p in cited] == [(1, "B"), (2, "C")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The capital is Vaduz.", "The capital is Vaduz [2]."),
        ("Is it?!", "Is it [2]?!"),
        ('He said "no."', 'He said "no [2]."'),
        ("Vaduz", "Vaduz [2]"),
    ],
)
def test_marks_stand_before_the_full_stop(text, shown):
    assert citations.with_marks(Sentence(text, (2,), 0)) == shown
    assert citations.with_marks(Sentence(text, (), 0)) == text


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("He is J. Smith of St. Ives. He lives.", ["He is J. Smith of St. Ives.", "He lives."]),
        ("It has 3.5 parts, e.g. one. And\nmore", ["It has 3.5 parts, e.g. one.", "And", "more"]),
        ("1. First. 2. Second.", ["1. First.", "2. Second."]),
        ('"Go!" Then he went.', ['"Go!"', "Then he went."]),
        ("  ", []),
    ],
)
def test_sentences(text, sentences):
    assert [text[begin:end] for begin, end in citations.sentence_spans(text)] == sentences


def test_joining():
    assert citations.join([" A is B.", "C is D.", "\n1. E", ""]) == "A is B. C is D.\n1. E"
