"""Output rows, and what makes the answer to a closed question right."""

import dataclasses

import pytest

from selfrag_jax.data.rows import QuestionRow
from selfrag_jax.evaluation.answers import as_request, output_row
from tests.decoding.test_engine import engine
from tests.decoding.tiny import tiny

CITIES = {"A": "Muscat", "B": "Nizwa"}
LETTERS = {"A": "", "B": ""}


@pytest.mark.parametrize(
    ("option", "options", "answers", "right"),
    [
        ("A", LETTERS, ("A",), True),  # an article to whoever compares words
        ("B", LETTERS, ("A",), False),
        ("A", CITIES, ("Muscat",), True),  # by what the label stands for
        ("A", CITIES, ("(a)",), True),
        ("B", CITIES, ("Muscat",), False),
        ("true", {"true": "", "false": ""}, ("True",), True),
        ("A", {"A": "New Muscat", "B": "Nizwa"}, ("Muscat",), False),  # the whole of it
        (None, LETTERS, ("w7 w8",), True),  # nobody voted: the text is what there is
        (None, LETTERS, ("w9",), False),
    ],
)
def test_a_chosen_option_is_right_by_its_label_or_meaning(option, options, answers, right):
    row = QuestionRow("q", "w1 w2", "", answers, None, "match", {}, options=options)
    result = dataclasses.replace(engine(tiny(1), max_depth=1).answer("w1 w2"), text="w7 w8", option=option)
    found = output_row(row, result)
    assert found["correct"] is right and found["answer"] == "w7 w8"
    assert as_request(row).options == options
