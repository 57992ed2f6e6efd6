"""Metrics of answers, by worked examples."""

import json

import pytest

from selfrag_jax.data.rows import read_questions
from selfrag_jax.demo.evaluation import KINDS, evaluation_rows
from selfrag_jax.errors import UserError
from selfrag_jax.evaluation.metrics import aspects_right, choice, exact, has_words, is_right, match, normalise


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
        ("The symbol of polonium is Po, so this is true.", ["True"], True),
        ("The symbol of polonium is Po, so this is false.", ["True"], False),
        ("The capital of Oman is Muscat, so the answer is B.", ["B."], True),
        ("Therefore the answer is (B).", ["B."], True),
        ("It is so. The answer is B. Or is it C?", ["B."], False),
        ("so the answer is a", ["A."], False),  # an article, cut short
        ("The area is 3", ["3"], False),
        ("N'zeto is in Angola, so the answer is A.", ["A."], True),
        ("N'zeto is in Angola.", ["N"], False),
        ("X-rays were found", ["X"], False),
        ("B - Muscat", ["B"], True),
    ],
)
def test_choice(output, answers, right):
    assert choice(output, answers) is right


@pytest.mark.parametrize(
    ("output", "answers", "right"),
    [
        ("The symbol of polonium is Po.", ["Po"], True),
        ("The passage does not give the symbol of polonium.", ["Po"], False),
        ("The group of gold is 11.", ["1"], False),
        ("The density is 1.25.", ["12.5"], False),
        ("About 17,000 people.", ["17,000"], True),
        ("The domain of Liechtenstein is .li.", [".li"], True),
        ("The capital of Singapore is Singapore.", ["Singapore"], True),
        ("The passage does not give the capital of Singapore.", ["Singapore"], False),
        ("Time zone: America/Port-au-Prince", ["America/Port-au-Prince"], True),
        ("", ["Po"], False),
        ("…", [""], False),
    ],
)
def test_words(output, answers, right):
    assert has_words(output, answers, ["Singapore", "Liechtenstein"]) is right


def test_exact():
    assert exact("The  sun is\nwarm. ", ["The sun is warm."])
    assert not exact("the sun is warm.", ["The sun is warm."]) and not exact("The sun is warm", ["The sun is warm."])


@pytest.mark.parametrize(
    ("output", "right"),
    [
        ("It lies in Europe. The currency is the euro.", True),
        ("It lies in Europe.", False),  # "euro" is no word of it
        ("Paid in Euro, said in EUR.", False),  # one aspect twice
        ("", False),
    ],
)
def test_aspects(output, right):
    assert aspects_right(output, [["Europe", "Asia"], ["the euro", "EUR"], ["+49"]]) is right
    assert aspects_right("Call +49.", [["+49"]])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_the_demo_are_right_by_their_own_metric(kind, tmp_path):
    rows = list(evaluation_rows(kind, 40, gold=False))
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for row, read in zip(rows, read_questions(path), strict=True):
        assert read.metric in {"short": ["words"], "plain": ["words", "exact"], "long": ["aspects"]}.get(
            kind, ["choice"]
        )
        told = {"metric": read.metric, "answers": read.answers, "aspects": read.aspects, "ignore": read.ignore}
        assert is_right(row["answer"], **told), row
        # Neither the instruction said again nor a refusal is right, but for what is answered by repeating it.
        assert not is_right("The passage does not tell.", **told)
        if kind in ("short", "long", "options"):
            assert not is_right(row["instruction"].replace("\n", " "), **told), row


def test_an_unknown_metric_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "Why?", "metric": "bleu"}) + "\n", "utf-8")
    with pytest.raises(UserError, match=r"rows.jsonl.*'metric': expected one of match, choice"):
        list(read_questions(path))
