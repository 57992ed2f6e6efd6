"""Closed questions: which option a text names, and the vote."""

import pytest

from selfrag_jax.decoding import options, search
from selfrag_jax.decoding.engine import Request
from selfrag_jax.decoding.options import option_of, tally
from tests.decoding.test_engine import engine
from tests.decoding.tiny import tiny

CITIES = {"A": "Muscat", "B": "Nizwa", "C": "New Muscat", "1": ""}
TRUTH = {"true": "", "False": ""}
LETTERS = dict.fromkeys("ABCD", "")


@pytest.mark.parametrize(
    ("text", "known", "option"),
    [
        ("B", CITIES, "B"),
        ("(b) because", CITIES, "B"),
        ("B. Muscat", CITIES, "B"),  # the label comes first
        ("It lies inland, so the answer is C.", CITIES, "C"),
        ("It is Nizwa.", CITIES, "B"),
        ("It is Muscat.", CITIES, "A"),
        ("It is New Muscat.", CITIES, None),  # two of them stand in it
        ("1", CITIES, "1"),
        ("D", CITIES, None),
        ("A man from nowhere", CITIES, None),
        ("", CITIES, None),
        ("TRUE. It is.", TRUTH, "true"),
        ("false", TRUTH, "False"),
        ("The claim is false", TRUTH, "False"),
        ("It is true, not false", TRUTH, None),
        ("It is a dog.", LETTERS, None),  # an article is no vote
        ("Muscat is a city.", LETTERS, None),
        ("A better one than the others", LETTERS, None),
        ("B is a better answer than the others", LETTERS, "B"),
        ("I would say that option a is right, of all", LETTERS, "A"),
        ("the choice (C) of many", LETTERS, "C"),
        ("It has 1 side", {"1": "", "2": ""}, None),
        ("John B. Smith went to Nizwa", {"A": "Nizwa", "B": "Muscat"}, "A"),  # an initial is no vote where words are
    ],
)
def test_option_of(text, known, option):
    assert option_of(text, known) == option


def test_scores_are_summed_per_option_not_per_text():
    """Two weaker votes in different words beat the strongest one."""
    texts, scores = ["A. Muscat", "B", "(B) Nizwa", "who knows"], [1.0, 0.6, 0.5, 9.0]
    votes = tally(((option_of(text, CITIES), score) for text, score in zip(texts, scores, strict=True)), CITIES)
    assert votes == {"A": 1.0, "B": pytest.approx(1.1)}
    assert list(tally([("B", 1.0), ("A", 1.0)], CITIES)) == ["A", "B"]


def test_candidates_vote(monkeypatch):
    """All candidates that ended vote, those outside the beam too, and the answer is the winner's best path."""
    asked = engine(tiny(1), max_depth=1, beam=1)
    plain = asked.answer("w1 w2")
    texts = [candidate.text for candidate in plain.tree]
    assert len(set(texts)) == 3 and all(candidate.ended for candidate in plain.tree)
    best = plain.segments[0]
    weaker = [n for n in range(3) if n != best]
    vote_of = {texts[best]: "A", texts[weaker[0]]: "B", texts[weaker[1]]: "B"}
    monkeypatch.setattr(options, "option_of", lambda text, known: vote_of[text])
    scores = [candidate.path_score for candidate in plain.tree]
    assert scores[weaker[0]] + scores[weaker[1]] > scores[best] > max(scores[n] for n in weaker)
    (voted,) = asked.answer_batch([Request("w1 w2", options={"A": "", "B": ""})])
    assert voted.option == "B"
    assert voted.options == {
        "A": pytest.approx(scores[best]),
        "B": pytest.approx(scores[weaker[0]] + scores[weaker[1]]),
    }
    assert voted.segments == (max(weaker, key=scores.__getitem__),) and voted.text == texts[voted.segments[0]]


def test_candidates_that_the_filters_drop_do_not_vote(monkeypatch):
    """Whatever their scores: with all but one dropped, that one decides; with all dropped, the one that was kept."""
    asked = engine(tiny(1), max_depth=1, beam=1)
    plain = asked.answer("w1 w2")
    texts, best = [candidate.text for candidate in plain.tree], plain.segments[0]
    vote_of = {text: "A" if n == best else "B" for n, text in enumerate(texts)}
    monkeypatch.setattr(options, "option_of", lambda text, known: vote_of[text])
    for dropped in ({n for n in range(3) if n != best}, {0, 1, 2}):
        monkeypatch.setattr(search, "passes", lambda step, config, dropped=dropped: step.node not in dropped)
        (voted,) = asked.answer_batch([Request("w1 w2", options={"A": "", "B": ""})])
        assert {c.node for c in voted.tree if c.filtered} == dropped
        assert (voted.option, list(voted.options)) == ("A", ["A"])


def test_nobody_names_an_option():
    result = engine(tiny(1)).answer("w1 w2", options={"A": "", "B": ""})
    assert (result.option, result.options) == (None, {}) and result.text
    assert "no candidate names one of the options" in result.notes
