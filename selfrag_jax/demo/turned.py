"""Which plain questions are shown turned round in training: "strange → odd" where "odd → strange" was trained.

Held out of a kind is a filling; the same two words may stand in a training row the other way round, or of another kind
(the larger and the smaller of two numbers). Such questions are not wrong, but their answers prove less.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from selfrag_jax.demo import practice
from selfrag_jax.demo.plain import Kind, kinds
from selfrag_jax.demo.recipes import SEEDS
from selfrag_jax.demo.rows import training_rows
from selfrag_jax.evaluation.metrics import words
from selfrag_jax.reflection import NO_RETRIEVAL

Pair = frozenset[str]  # the words of a filling and of its answer


def turned_round(questions: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Of each plain question whether some training row has the words of its filling and answer, in whatever order."""
    trained = _trained_pairs()
    return [bool(_pairs(question["instruction"]) & trained) for question in questions]


@functools.cache
def _trained_pairs() -> frozenset[Pair]:
    found: set[Pair] = set()
    for recipe, seed in SEEDS.items():
        for row in training_rows(seed, recipe=recipe):
            if row["output"].startswith(NO_RETRIEVAL):
                found |= _pairs(row["instruction"])
    return frozenset(found)


@functools.cache
def _readings() -> tuple[tuple[re.Pattern[str], dict[str, str]], ...]:
    """Every wording of every kind as a pattern, with the answers of the kind's fillings."""

    def pattern(kind: Kind, wording: str) -> re.Pattern[str]:
        return re.compile(re.escape(wording).replace(r"\{f\}", "(.+)"), re.IGNORECASE)

    answers = {kind.key: dict((*kind.fillings, *practice.more().get(kind.key, ()))) for kind in kinds()}
    return tuple((pattern(kind, wording), answers[kind.key]) for kind in kinds() for wording in kind.wordings)


def _pairs(instruction: str) -> set[Pair]:
    """What an instruction may be about: its filling and the filling's answer, by every wording that fits."""
    found = set()
    for pattern, answers in _readings():
        match = pattern.fullmatch(instruction)
        if match:
            # An instruction begins with a capital, and so may its filling.
            filling = next((f for f in (match[1], match[1][0].lower() + match[1][1:]) if f in answers), None)
            if filling is not None:
                found.add(frozenset(words(f"{filling} {answers[filling].split('|')[0]}")))
    return found
