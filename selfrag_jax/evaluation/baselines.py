"""Classifiers that understand nothing: what they solve says nothing about a model.

A bag of words is a logistic regression over which words stand where. Shown only one of the two texts that have to be
held against each other, it can only know how the data was made; shown only how many words they share, it solves what
a look at the names solves.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from selfrag_jax.evaluation.metrics import words

Texts = dict[str, str]  # name of the place → text there: {"question": …, "passage": …, "overlap": …}


def overlap(first: str, second: str) -> str:
    """How much of the first text stands in the second, as words: shared and missing ones counted, and their share."""
    wanted, there = words(first), set(words(second))
    missing = sum(word not in there for word in wanted)
    share = round(10 * (len(wanted) - missing) / max(1, len(wanted)))
    return f"missing{missing} shared{len(wanted) - missing} share{share}"


def _features(texts: Texts) -> list[str]:
    found = {name: text.lower().split() for name, text in texts.items()}
    single = [f"{name}:{word}" for name, at in found.items() for word in at]
    return single + [f"{name}:{a} {b}" for name, at in found.items() for a, b in itertools.pairwise(at)]


def bag_of_words(
    train: Sequence[Texts], labels: Sequence[str], test: Sequence[Texts], *, only: Sequence[str] = (), seed: int = 0
) -> list[str]:
    """What a logistic regression over words and pairs of words, trained on `train`, says of `test`.

    Args:
        only: the places it may look at; none for all but "overlap".
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    def seen(texts: Sequence[Texts]) -> list[Texts]:
        return [
            {place: t for place, t in one.items() if (place in only if only else place != "overlap")} for one in texts
        ]

    classifier = make_pipeline(
        CountVectorizer(analyzer=_features, binary=True), LogisticRegression(C=0.3, max_iter=1000, random_state=seed)
    )
    classifier.fit(seen(train), np.asarray(labels))
    return [str(label) for label in classifier.predict(seen(test))]
