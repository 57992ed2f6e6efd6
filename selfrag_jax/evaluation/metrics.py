"""Metrics of answers as text."""

import re
import string
from collections.abc import Iterable

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Lower case, no ASCII punctuation, no articles, single spaces: how question answering compares strings."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def match(output: str, answers: Iterable[str]) -> bool:
    """Whether any gold answer stands in the output, both normalised: the "match" of PopQA and TriviaQA (paper §4.1).

    It is a substring test, as published: "Oman" also matches "Romania". An answer that normalises to nothing (an
    article, a punctuation mark) matches nothing.
    """
    text = normalise(output)
    return any(answer in text for answer in map(normalise, answers) if answer)
