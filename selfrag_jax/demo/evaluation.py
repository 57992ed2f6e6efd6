"""Held-out questions of all five kinds, as rows for `decode.py --input`."""

import random
import zlib
from collections.abc import Iterator
from typing import Any

from selfrag_jax.demo import plain
from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.facts import by_key, entities
from selfrag_jax.demo.passages import Wording, by_entity
from selfrag_jax.demo.questions import (
    Question,
    boolean_pair,
    both_question,
    long_question,
    options_question,
    short_question,
)
from selfrag_jax.demo.split import held_out
from selfrag_jax.errors import UserError

KINDS = ("short", "boolean", "options", "long", "plain")
METRIC_OF = {"short": "words", "boolean": "choice", "options": "choice", "long": "aspects"}
# Questions go round the kinds of entities, so that the many cities do not drown the few countries and elements.
ENTITY_KINDS = ("country", "city", "airport", "element")
TWO_LOOKS = 0.7  # of questions for two facts: no passage states both
MOST_OF_ONE = 60  # tries for a fresh question before the supply is called exhausted


def _pools() -> dict[str, list[tuple[Entity, str]]]:
    """(entity, relation) pairs of the held-out side that some passage states, by kind of entity."""
    found: dict[str, list[tuple[Entity, str]]] = {kind: [] for kind in ENTITY_KINDS}
    for entity in entities():
        if held_out(entity):
            stated = dict.fromkeys(r for p in by_entity().get(entity.key, ()) for r in p.relations)
            found[entity.kind] += [(entity, relation) for relation in stated]
    return found


def _one(kind: str, entity: Entity, relation: str, rng: random.Random, wording: Wording) -> Question | None:
    if kind == "short":
        return short_question(entity, relation, rng, wording)
    if kind == "boolean":
        truth = rng.random() < 0.5
        pair = boolean_pair(entity, relation, rng, wording)
        return pair and pair[not truth]
    if kind == "options":
        return options_question(entity, relation, rng, wording)
    owned = by_entity()[entity.key]
    if len(owned) < 2:
        return None
    if rng.random() < 0.5:
        return long_question(entity, rng, wording)
    here = next(p for p in owned if relation in p.relations)
    apart = rng.random() < TWO_LOOKS
    others = sorted({r for p in owned for r in p.relations if (p is not here) == apart} - {relation})
    return both_question(entity, (relation, rng.choice(others)), rng, wording)


def questions(kind: str, count: int, seed: int, wording: Wording = "train") -> list[Question]:
    """`count` different held-out questions of a kind (not plain), round the kinds of entities; fixed by the seed.

    Both wordings ask the same: of the same entities for the same facts, with the same wrong values.
    """
    rng = random.Random(zlib.crc32(f"eval:{kind}:{seed}".encode()))
    pools = _pools()
    found: dict[str, Question] = {}
    idle = 0
    while len(found) < count and idle < MOST_OF_ONE * 10:
        entity, relation = rng.choice(pools[ENTITY_KINDS[len(found) % 4 if idle < MOST_OF_ONE else idle % 4]])
        question = _one(kind, entity, relation, random.Random(rng.getrandbits(64)), wording)
        idle += 1
        if question is not None and question.id not in found:
            found[question.id] = question
            idle = 0
    if len(found) < count:
        raise UserError(
            f"only {len(found)} different held-out questions of the kind {kind}; ask for fewer than {count}"
        )
    return list(found.values())


def _plain_rows(count: int, seed: int, wording: Wording) -> Iterator[dict[str, Any]]:
    """Plain instructions whose fillings no training row has."""
    rng = random.Random(zlib.crc32(f"eval:plain:{seed}".encode()))
    pool = [(k, f) for k in plain.kinds() for f in k.fillings if plain.filling_held_out(k, f[0])]
    by_kind = {k.key: [pair for pair in pool if pair[0] is k] for k, _ in pool}
    turn = sorted(by_kind)
    for key in turn:
        rng.shuffle(by_kind[key])
    place = given = 0
    while given < count:
        if not any(by_kind.values()):
            raise UserError(f"only {given} plain instructions are held out; ask for fewer than {count}")
        left = by_kind[turn[place % len(turn)]]
        place += 1
        if left:
            task = plain.task(*left.pop(), rng, wording)
            yield {
                "id": f"plain-{task.kind}-{given}", "instruction": task.instruction, "input": "",
                "answers": list(task.accepted), "metric": task.metric, "ignore": list(task.ignore),
                "answer": task.answer, "gold": [], "kind": "plain", "wording": wording, "needs_retrieval": False,
            }  # fmt: skip
            given += 1


def evaluation_rows(
    kind: str, count: int, seed: int = 0, wording: Wording = "train", gold: bool = True
) -> Iterator[dict[str, Any]]:
    """Rows with `instruction`, `answers`, `aspects` and, with `gold`, the right passages as `ctxs`.

    `aspects` holds the accepted strings for each thing asked: one list for most kinds, any two of the lists for long
    answers. `metric` says how an answer is judged. Held-out wordings come with passages in held-out templates.
    Raises UserError when there are too few.
    """
    if kind not in KINDS:
        raise UserError(f"no kind of question {kind!r}; there are {', '.join(KINDS)}")
    if kind == "plain":
        yield from _plain_rows(count, seed, wording)
        return
    for question in questions(kind, count, seed, wording):
        passages = [p for p in by_entity(wording)[question.entity] if p.id in question.gold]
        given = {"ctxs": [p.row for p in passages]} if gold else {}
        names = [by_key()[question.entity].title] if kind == "short" else []
        yield {
            "id": question.id, "instruction": question.instruction, "input": "", "answers": list(question.answers),
            "aspects": [list(aspect) for aspect in question.aspects], "answer": question.answer,
            "ignore": names, "gold": list(question.gold), "kind": kind, "form": question.form,
            "metric": METRIC_OF[kind], **given, "entity": question.entity, "relations": list(question.relations),
            "wording": wording, "needs_retrieval": True,
        }  # fmt: skip
