"""Metrics of answers as text."""

import re
import string
from collections.abc import Iterable, Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
# The label that an answer to a closed question begins with: "True", "B.", "(b)", "C: …". A lone letter counts only if
# it is set off, so that "A passage …" and "N'zeto" are no answers.
_LABEL = re.compile(r"[\s(\[\"'*]*(true\b|false\b|(?:[a-z]|\d+)(?=\s*(?:[.):\[\],\"*]|['-](?!\w)|$)))", re.IGNORECASE)
# The label that an answer concludes with: "…, so this is false.", "Therefore the answer is (B)."
_CONCLUSION = re.compile(
    r"\b(?:so|therefore|thus|hence|answer)\b[^.!?\n]*?\bis\s+(?:option\s+)?[(\[\"'*]*((?i:true|false)|[A-Z]|\d+)[)\]\"'*]*[.!]?\s*$"
)
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
    """Whether the output gives a gold label, for closed questions: true or false, a letter, a number.

    The label is what the output concludes with ("…, so the answer is B.") or, failing that, what it begins with ("B.
    Muscat"). Nothing else is looked at, and an output that does neither is wrong.
    """
    chosen = _CONCLUSION.search(output) or _LABEL.match(output)
    gold = {found[1].casefold() for found in map(_LABEL.match, answers) if found}
    return chosen is not None and chosen[1].casefold() in gold


def aspects_right(output: str, aspects: Sequence[Iterable[str]]) -> bool:
    """Whether the output tells at least two of the things asked for (all of them where there are fewer).

    `aspects` holds the accepted strings for each; they must stand in the output as whole words, both normalised.
    """
    text = f" {normalise(output)} "
    told = sum(any(f" {answer} " in text for answer in map(normalise, aspect) if answer) for aspect in aspects)
    return told >= min(2, len(aspects))


METRICS = ("match", "choice", "aspects")


def is_right(metric: str, output: str, answers: Iterable[str], aspects: Sequence[Iterable[str]] = ()) -> bool:
    """Whether an output is right by the metric of its row: `match` or `choice` on `answers`, or `aspects`."""
    if metric == "aspects":
        return aspects_right(output, aspects)
    return {"match": match, "choice": choice}[metric](output, answers)
