"""Which plain questions are shown turned round in training: "strange → odd" where "odd → strange" was trained.

Held out of a kind is a filling; the same two words may stand in a training row the other way round, or of another kind
(the larger and the smaller of two numbers). Such questions are not wrong, but their answers prove less.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from selfrag_jax.demo import practice
from selfrag_jax.demo.paraphrases import EVERY, FRAMES, paraphrases
from selfrag_jax.demo.plain import kinds
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
def _readings() -> tuple[tuple[str, str, dict[str, str]], ...]:
    """Of every wording what stands before and after the filling, and the answers of its kind's fillings."""
    found = []
    for kind in kinds():
        answers = dict((*kind.fillings, *practice.more().get(kind.key, ())))
        for wording in (*kind.wordings, *paraphrases(EVERY).get(kind.wordings[0], ())):
            before, _, after = wording.lower().partition("{f}")
            found.append((before, after, answers))
    return tuple(found)


def _pairs(instruction: str) -> set[Pair]:
    """What an instruction may be about: its filling and the filling's answer, by every wording that fits."""
    found = set()
    for asked in _unframed(instruction):
        low = asked.lower()
        for before, after, answers in _readings():
            if low.startswith(before) and low.endswith(after):
                filled = asked[len(before) : len(asked) - len(after)]
                # An instruction begins with a capital, and so may its filling.
                filling = next((f for f in (filled, filled[:1].lower() + filled[1:]) if f in answers), None)
                if filling is not None:
                    found.add(frozenset(words(f"{filling} {answers[filling].split('|')[0]}")))
    return found


def _unframed(instruction: str) -> list[str]:
    """An instruction as it stands, and without the frame before it where there is one."""
    starts = [frame.removesuffix("{q}") for frame in FRAMES]
    return [instruction, *(instruction.removeprefix(start) for start in starts if instruction.startswith(start))]
