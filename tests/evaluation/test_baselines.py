"""The classifiers that understand nothing solve what is too easy, and nothing else."""

import random

from selfrag_jax.evaluation.baselines import bag_of_words, overlap

WORDS = [f"word{n}" for n in range(30)]


def pairs(count: int, seed: int, telling: bool):
    """Two texts that agree or differ; `telling`: a word of the second gives the label away."""
    rng = random.Random(seed)
    texts, labels = [], []
    for _ in range(count):
        word, same = rng.choice(WORDS), rng.random() < 0.5
        other = word if same else rng.choice([w for w in WORDS if w != word])
        hint = "yes" if same else "no"
        asked, shown = f"is it {word}", f"it is {other} {hint if telling else ''}"
        texts.append({"question": asked, "passage": shown, "overlap": overlap(asked, shown)})
        labels.append("same" if same else "other")
    return texts, labels


def accuracy(telling: bool, *only: str) -> float:
    (train, labels), (test, wanted) = pairs(600, 0, telling), pairs(300, 1, telling)
    said = bag_of_words(train, labels, test, only=only)
    return sum(a == b for a, b in zip(said, wanted, strict=True)) / len(wanted)


def test_a_word_that_gives_the_label_away_is_found():
    assert accuracy(True) == accuracy(True, "passage") == 1.0
    assert accuracy(True, "question") < 0.65


def test_holding_two_texts_against_each_other_is_beyond_it():
    assert accuracy(False) < 0.65


def test_but_not_where_it_is_told_how_much_they_share():
    assert accuracy(False, "overlap") == 1.0
    assert overlap("Is it so?", "it was so") == "missing1 shared2 share7"
