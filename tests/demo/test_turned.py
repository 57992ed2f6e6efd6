"""Plain questions that training shows turned round are found, and no others."""

import pytest

from selfrag_jax.demo import turned
from selfrag_jax.demo.evaluation import evaluation_rows


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
    ],
)
def test_pairs(trained, asked, same):
    assert bool(turned._pairs(trained) & turned._pairs(asked)) is same


def test_every_plain_question_is_read(monkeypatch):
    """Whatever the wording, a question is of some kind; with nothing trained none of them is turned round."""
    for wording in ("train", "heldout"):
        asked = list(evaluation_rows("plain", 200, 1, wording))
        assert all(turned._pairs(row["instruction"]) for row in asked)
        monkeypatch.setattr(turned, "_trained_pairs", frozenset)
        assert not any(turned.turned_round(asked))
