"""Metrics of answers, by worked examples."""

import json

import pytest

from selfrag_jax.data.rows import read_questions
from selfrag_jax.demo.evaluation import KINDS, evaluation_rows
from selfrag_jax.errors import UserError
from selfrag_jax.evaluation.metrics import METRICS, choice, match, normalise


def test_normalise():
    assert normalise("  The Eiffel-Tower, (an ICON)! ") == "eiffeltower icon"
    assert normalise("Theatre of a Thousand") == "theatre of thousand"


@pytest.mark.parametrize(
    ("output", "answers", "right"),
    [
        ("It is Vaduz.", ["vaduz"], True),
        ("It is VADUZ", ["Bern", "Vaduz"], True),
        ("The answer: Port-au-Prince", ["Port au Prince", "Port-au-Prince"], True),
        ("Washington, D.C.", ["washington dc"], True),
        ("Bern", ["Vaduz"], False),
        ("Bern", [], False),
        ("Bern", ["", "the", "."], False),
    ],
)
def test_match(output, answers, right):
    assert match(output, answers) is right


@pytest.mark.parametrize(
    ("output", "answers", "right"),
    [
        ("A. The latitude is 35.", ["A."], True),  # `match` would lose it as an article
        ("B. A bus is in the box.", ["A."], False),
        ("C: Muscat", ["C"], True),
        ("(d) Muscat", ["D"], True),
        ("B", ["B."], True),
        ("B [1].", ["B"], True),
        ("3) Muscat", ["3"], True),
        ("E", ["E"], True),
        ("A passage gives it.", ["A."], False),
        ("Abc", ["A."], False),
        ("Muscat", ["B."], False),
        ("", ["B."], False),
        ("B", [], False),
        ("True. The symbol is Po.", ["True"], True),
        ("true", ["True."], True),
        ("False. It is not true.", ["True."], False),
        ("Truest", ["True"], False),
        ("The passage does not tell whether this is true.", ["True"], False),
    ],
)
def test_choice(output, answers, right):
    assert choice(output, answers) is right


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_the_demo_are_right_by_their_own_metric(kind, tmp_path):
    rows = list(evaluation_rows(kind, 40, gold=False))
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for row, read in zip(rows, read_questions(path), strict=True):
        assert read.metric == ("choice" if kind in ("boolean", "options") else "match")
        # Of "tell me about X" there is no one right answer.
        assert kind == "long" or METRICS[read.metric](row["answer"], read.answers), row


def test_an_unknown_metric_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "Why?", "metric": "bleu"}) + "\n", "utf-8")
    with pytest.raises(UserError, match=r"rows.jsonl.*'metric': expected one of match, choice"):
        list(read_questions(path))
