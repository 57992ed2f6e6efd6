"""Metrics of answers as text."""

import re
import string
from collections.abc import Iterable, Sequence

from selfrag_jax.decoding.options import chosen_label, leading_label

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


def choice(output: str, answers: Iterable[str]) -> bool:
    """Whether the output gives a gold label, for closed questions: true or false, a letter, a number.

    The label is what the output concludes with ("…, so the answer is B.") or, failing that, what it begins with ("B.
    Muscat"). Nothing else is looked at, and an output that does neither is wrong.
    """
    gold = {label for label in map(leading_label, answers) if label}
    return chosen_label(output) in gold


_WORD = re.compile(r"(?:(?<![\w.,])-)?\d+(?:[.,]\d+)*|[^\W\d_]+")


def words(text: str) -> list[str]:
    """The words of a text in lower case; a number with sign, points and commas is one word, other marks are none."""
    return _WORD.findall(text.casefold())


def _place(found: Sequence[str], wanted: Sequence[str]) -> int:
    """Where `wanted` stands in `found` as consecutive words; -1 if it does not, or is empty."""
    spots = range(len(found) - len(wanted) + 1) if wanted else ()
    return next((i for i in spots if list(found[i : i + len(wanted)]) == list(wanted)), -1)


def has_words(output: str, answers: Iterable[str], ignore: Iterable[str] = ()) -> bool:
    """Whether any gold answer stands in the output as whole words, after one mention of each of `ignore` is taken out.

    `ignore` is what the question names anyway: "Singapore" in the question is no answer to it, "1" none that is "11".
    """
    found = words(output)
    for name in map(words, ignore):
        at = _place(found, name)
        if at >= 0:
            found[at : at + len(name)] = ["|"]  # no word, so that what stood around it does not meet
    return any(_place(found, words(answer)) >= 0 for answer in answers)


def exact(output: str, answers: Iterable[str]) -> bool:
    """Whether the output is a gold answer, letter by letter but for the space around words."""
    return " ".join(output.split()) in {" ".join(answer.split()) for answer in answers}


def aspects_right(output: str, aspects: Sequence[Iterable[str]]) -> bool:
    """Whether the output tells at least two of the things asked for (all of them where there are fewer).

    `aspects` holds the accepted strings for each; they must stand in the output as whole words.
    """
    return sum(has_words(output, aspect) for aspect in aspects) >= min(2, len(aspects))


METRICS = ("match", "choice", "words", "exact", "aspects")


def is_right(
    output: str,
    *,
    metric: str,
    answers: Iterable[str],
    aspects: Sequence[Iterable[str]] = (),
    ignore: Iterable[str] = (),
) -> bool:
    """Whether an output is right by the metric that its row names, one of `METRICS`."""
    if metric == "aspects":
        return aspects_right(output, aspects)
    if metric == "words":
        return has_words(output, answers, ignore)
    return {"match": match, "choice": choice, "exact": exact}[metric](output, answers)
