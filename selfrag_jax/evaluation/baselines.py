"""Classifiers that understand nothing: what they solve says nothing about a model.

A bag of words is a logistic regression over which words stand where; the one-sided one sees only one of the two texts
that have to be held against each other, so that it can only know how the data was made.
"""

import itertools
from collections.abc import Sequence

import numpy as np

Texts = dict[str, str]  # name of the place → text there: {"question": …, "passage": …}


def _features(texts: Texts) -> list[str]:
    words = {name: text.lower().split() for name, text in texts.items()}
    single = [f"{name}:{word}" for name, found in words.items() for word in found]
    pairs = [f"{name}:{a} {b}" for name, found in words.items() for a, b in itertools.pairwise(found)]
    return single + pairs


def bag_of_words(
    train: Sequence[Texts], labels: Sequence[str], test: Sequence[Texts], *, only: str = "", seed: int = 0
) -> list[str]:
    """What a logistic regression over words and pairs of words, trained on `train`, says of `test`.

    Args:
        only: the one place it may look at; "" for all.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    def seen(texts: Sequence[Texts]) -> list[Texts]:
        return [{name: text for name, text in one.items() if name == only} if only else one for one in texts]

    classifier = make_pipeline(
        CountVectorizer(analyzer=_features, binary=True), LogisticRegression(C=0.3, max_iter=1000, random_state=seed)
    )
    classifier.fit(seen(train), np.asarray(labels))
    return [str(label) for label in classifier.predict(seen(test))]
