"""Closed tasks: which option an answer chooses, and the scores summed per option.

A text is mapped to an option before scores are added up, so that "B", "(B)" and "B. Muscat" are votes for one option;
the authors' code adds up the scores of equal strings.
"""

import re
from collections.abc import Iterable, Mapping

# The label that an answer to a closed question begins with: "True", "B.", "(b)", "C: …". A lone letter counts only if
# it is set off, so that "A passage …" and "N'zeto" are no answers.
_LABEL = re.compile(r"[\s(\[\"'*]*(true\b|false\b|(?:[a-z]|\d+)(?=\s*(?:[.):\[\],\"*]|['-](?!\w)|$)))", re.IGNORECASE)
# The label that an answer concludes with: "…, so this is false.", "Therefore the answer is (B)."
_CONCLUSION = re.compile(
    r"\b(?:so|therefore|thus|hence|answer)\b[^.!?\n]*?\bis\s+(?:option\s+)?[(\[\"'*]*((?i:true|false)|[A-Z]|\d+)[)\]\"'*]*[.!]?\s*$"
)

# The label that an answer names in its middle: "I choose option B", "answer (2)".
_NAMED = re.compile(r"\b(?:option|answer|choice)\s+[(\[\"']*([a-z]|\d+)\b", re.IGNORECASE)
# Where labels are all that there is to name: a capital that is no word by itself.
_CAPITAL = re.compile(r"(?<![\w'])[B-HJ-Z](?![\w'])")


def leading_label(text: str) -> str | None:
    """The label that a text begins with, in lower case."""
    found = _LABEL.match(text)
    return found and found[1].casefold()


def chosen_label(text: str) -> str | None:
    """The label that an answer gives, in lower case: true, false, a letter or a number.

    It is what the answer concludes with ("…, so the answer is B.") or, failing that, begins with ("B. Muscat").
    """
    found = _CONCLUSION.search(text)
    return found[1].casefold() if found else leading_label(text)


def option_of(text: str, options: Mapping[str, str]) -> str | None:
    """The label of the option that an answer chooses; None if it chooses none, or more than one.

    Args:
        options: label → what it stands for ("" where the label says it all).
    """
    label = chosen_label(text)
    by_label = {known.casefold(): known for known in options}
    if label is not None and label in by_label:
        return by_label[label]
    said, labels = f" {plain(text)} ", {label.casefold() for label in _NAMED.findall(text)}
    if not any(options.values()):
        labels |= {label.casefold() for label in _CAPITAL.findall(text)}
    named = [
        known
        for known, meaning in options.items()
        if known.casefold() in labels or (f" {plain(meaning)} " in said if meaning else _is_word(known, said))
    ]
    return named[0] if len(named) == 1 else None


def _is_word(label: str, said: str) -> bool:
    """Whether a label such as "true" stands in the text; a letter or a number alone may be anything there."""
    return len(label) > 1 and not label.isdigit() and f" {plain(label)} " in said


def plain(text: str) -> str:
    """The words of a text in lower case, one space apart."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def tally(votes: Iterable[tuple[str | None, float]], options: Iterable[str]) -> dict[str, float]:
    """The sum of scores for each option that any of the votes (option, score) is for, in the order of the options."""
    sums: dict[str, float] = {}
    for option, score in votes:
        if option is not None:
            sums[option] = sums.get(option, 0.0) + score
    return {option: sums[option] for option in options if option in sums}
