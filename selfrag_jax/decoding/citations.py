"""Sentences and their citations: who said what, from which passage."""

import re
from collections.abc import Sequence

from selfrag_jax.decoding.result import CitedPassage, OfferedPassage, Sentence
from selfrag_jax.decoding.search import Step

_CLOSING = re.compile(r"[.!?…。！？]+[\"'”’)\]]*$")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where sentences begin and end, without the space around them; a line ends one, a number like "1." begins one."""
    import sentencex  # here: only answers need it

    spans: list[tuple[int, int]] = []
    at, number_at = 0, -1
    for line in text.splitlines():
        for piece in (part.strip() for part in sentencex.segment("en", line)):
            if not piece:
                continue
            at = text.index(piece, at)
            begin, at = (at if number_at < 0 else number_at), at + len(piece)
            number_at = begin if piece.rstrip(".").isdigit() and at < len(text.rstrip()) else -1
            if number_at < 0:
                spans.append((begin, at))
    return spans


def is_supported(step: Step) -> bool:
    """Whether the segment's greedy IsSup is Fully or Partially supported, by a passage that was in force."""
    reading = step.score.issup
    return step.passage is not None and reading is not None and reading.greedy in (0, 1)


def cite(
    steps: Sequence[Step], texts: Sequence[str], passages: Sequence[OfferedPassage]
) -> tuple[list[Sentence], list[CitedPassage], str]:
    """The sentences of an answer's segments, the passages they cite, and the whole text with the citations in it.

    Passages are numbered in order of first use; those with the same title and text are one.
    """
    sentences: list[Sentence] = []
    cited: dict[tuple[str, str], CitedPassage] = {}
    marked: list[str] = []
    for number, (step, text) in enumerate(zip(steps, texts, strict=True)):
        spans = sentence_spans(text)
        marks: tuple[int, ...] = ()
        if spans and step.passage is not None and is_supported(step):
            passage = passages[step.passage]
            new = CitedPassage(len(cited) + 1, passage.id, passage.title, passage.text, passage.score)
            marks = (cited.setdefault((passage.title, passage.text), new).number,)
        found = [Sentence(text[begin:end], marks, number) for begin, end in spans]
        sentences += found
        for sentence, (begin, end) in reversed(list(zip(found, spans, strict=True))):
            text = text[:begin] + with_marks(sentence) + text[end:]
        marked.append(text)
    return sentences, list(cited.values()), join(marked)


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
