"""Plain questions that training shows turned round are found, and no others."""

import pytest

from selfrag_jax.demo import turned
from selfrag_jax.demo.evaluation import evaluation_rows
from selfrag_jax.demo.recipes import SEEDS
from selfrag_jax.demo.rows import training_rows


@pytest.mark.parametrize(
    ("trained", "asked", "same"),
    [
        ("What colour do you get by mixing black and white?", "Mix white and black: which colour is it?", True),
        ("Which is larger, 57 or 86?", "Which number is less: 86 or 57?", True),  # another answer, the same two
        ("Which is larger, 57 or 86?", "Which number is bigger: 86 or 57?", True),
        ("Write the number 37 in words.", "Turn the words thirty-seven into a number.", True),
        ("Give a synonym of odd.", "What is another word for strange?", True),
        ("Give a synonym of tiny.", "What is another word for strange?", False),
        ("What is the past tense of go?", "What is the past tense of see?", False),
        ("Write a poem.", "Write a poem.", False),  # of no kind
        ("A quick one: Give a synonym of odd.", "What is another word for strange?", True),  # behind a frame
        ("I have used odd too often. What instead?", "What is another word for strange?", True),  # a paraphrase
        ("Task: In a crossword: the same as odd.", "What is another word for strange?", True),
    ],
)
def test_pairs(trained, asked, same):
    assert bool(turned._pairs(trained) & turned._pairs(asked)) is same


@pytest.mark.parametrize("recipe", ["demo_wordings", "demo_last"])
def test_nearly_every_practised_instruction_is_read(recipe):
    """Not of no kind: those whose filling alone says which row it is of are few."""
    asked = [
        row["instruction"] for row in training_rows(SEEDS[recipe], 800, recipe) if "practice" in row["dataset_name"]
    ]
    assert len(asked) > 200
    assert sum(bool(turned._pairs(instruction)) for instruction in asked) > 0.99 * len(asked)


def test_every_plain_question_is_read(monkeypatch):
    """Whatever the wording, a question is of some kind; with nothing trained none of them is turned round."""
    for wording in ("train", "heldout"):
        asked = list(evaluation_rows("plain", 200, 1, wording))
        assert all(turned._pairs(row["instruction"]) for row in asked)
        monkeypatch.setattr(turned, "_trained_pairs", frozenset)
        assert not any(turned.turned_round(asked))
