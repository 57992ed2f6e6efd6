"""Sentences and their citations: who said what, from which passage."""

import re
from collections.abc import Sequence

from selfrag_jax.decoding.result import CitedPassage, OfferedPassage, Sentence
from selfrag_jax.decoding.search import Step

_CLOSING = re.compile(r"[.!?…。！？]+[\"'”’)\]]*$")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without the space around them; a line ends one, and a number like "1." begins one."""
    import sentencex  # here: only answers need it

    sentences: list[str] = []
    for line in text.splitlines():
        number = ""
        for piece in (part.strip() for part in sentencex.segment("en", line)):
            if piece.rstrip(".").isdigit():
                number = f"{piece} "
            elif piece:
                sentences.append(number + piece)
                number = ""
        if number:
            sentences.append(number.strip())
    return sentences


def is_supported(step: Step) -> bool:
    """Whether the segment's greedy IsSup is Fully or Partially supported, by a passage that was in force."""
    reading = step.score.issup
    return step.passage is not None and reading is not None and reading.greedy in (0, 1)


def cite(
    steps: Sequence[Step], texts: Sequence[str], passages: Sequence[OfferedPassage]
) -> tuple[list[Sentence], list[CitedPassage]]:
    """The sentences of an answer's segments, and the passages they cite, numbered in order of first use.

    Passages with the same title and text are one.
    """
    sentences: list[Sentence] = []
    cited: dict[tuple[str, str], CitedPassage] = {}
    for number, (step, text) in enumerate(zip(steps, texts, strict=True)):
        found = split_sentences(text)
        marks: tuple[int, ...] = ()
        if found and step.passage is not None and is_supported(step):
            passage = passages[step.passage]
            new = CitedPassage(len(cited) + 1, passage.id, passage.title, passage.text, passage.score)
            marks = (cited.setdefault((passage.title, passage.text), new).number,)
        sentences += [Sentence(sentence, marks, number) for sentence in found]
    return sentences, list(cited.values())


def with_marks(sentence: Sentence) -> str:
    """The sentence as shown: `… is Vaduz [1].`"""
    if not sentence.citations:
        return sentence.text
    marks = "".join(f"[{number}]" for number in sentence.citations)
    closing = _CLOSING.search(sentence.text)
    at = closing.start() if closing else len(sentence.text)
    return f"{sentence.text[:at].rstrip()} {marks}{sentence.text[at:]}"


def join(texts: Sequence[str]) -> str:
    """Segments' texts as one: a space between two that have none."""
    joined = ""
    for text in texts:
        if joined and text and not joined[-1].isspace() and not text[0].isspace():
            joined += " "
        joined += text
    return joined.strip()
