"""Metrics of answers as text."""

import re
import string
from collections.abc import Iterable

_ARTICLES = re.compile(r"\b(a|an|the)\b")
# The label that an answer to a closed question begins with: "True", "B.", "(b)", "C: …". A lone letter counts only if
# it is set off, so that "A passage …" is no answer.
_LABEL = re.compile(r"[\s(\[\"'*]*(true\b|false\b|(?:[a-z]|\d+)(?=\s*(?:[.):\[\],\"'*-]|$)))", re.IGNORECASE)
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


def choice(output: str, answers: Iterable[str]) -> bool:
    """Whether the output begins with a gold label, for closed questions: true or false, a letter, a number.

    What follows the label is not looked at. An output that begins with none is wrong.
    """
    chosen = _LABEL.match(output)
    gold = {found[1].casefold() for found in map(_LABEL.match, answers) if found}
    return chosen is not None and chosen[1].casefold() in gold


METRICS = {"match": match, "choice": choice}
