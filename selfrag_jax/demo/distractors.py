"""What is nearly right: wrong values for a statement, and passages that look like the right one."""

import functools
import random
from collections import defaultdict

from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.facts import by_key, entities
from selfrag_jax.demo.names import fold
from selfrag_jax.demo.passages import Passage, Wording, by_entity
from selfrag_jax.demo.split import held_out, mentions

# Regions of one kind that lie inside another of the table, so that neither is wrong for the other.
_OCEANIA = frozenset({"Oceania", "Polynesia", "Melanesia", "Micronesia"})
_AMERICAS = frozenset({"North America", "South America"})


@functools.cache
def _pool(relation: str, training: bool) -> tuple[tuple[str, str], ...]:
    """(value, country) of every entity that has the fact; for training only what training may mention."""
    found = dict.fromkeys(
        (e.facts[relation], e.country) for e in entities() if relation in e.facts and (not training or not held_out(e))
    )
    return tuple(pair for pair in found if not (training and mentions(pair[0])))


def compatible(a: str, b: str) -> bool:
    """Whether both values could be true of one thing: one holds the other, or they are nested regions."""
    a, b = fold(a).casefold(), fold(b).casefold()
    return (
        a in b
        or b in a
        or (a.title() in _OCEANIA and b.title() in _OCEANIA)
        or bool({*a.split()} & {*b.split()} & _LANGUAGE_WORDS)
    )


_LANGUAGE_WORDS = frozenset({"english", "french", "spanish", "arabic", "portuguese"})


def _likeness(value: str, country: str, right: str, home: str) -> tuple[int, int]:
    """How tempting a wrong value is: from the same country, beginning and ending alike."""
    alike = next((i for i, (a, b) in enumerate(zip(value, right, strict=False)) if a != b), 0)
    return (int(country == home and bool(home)) + int(len(value) == len(right)), alike)


def wrong_values(entity: Entity, relation: str, count: int, rng: random.Random) -> list[str]:
    """Up to `count` different values that other entities have for the relation, and that are wrong for this one.

    Likely ones (of the same country, of like form) come first in the draw. For a training entity all of them may be
    named in training rows.
    """
    right = entity.facts[relation]
    pool = _pool(relation, not held_out(entity))
    near = [pair for pair in pool if pair[1] == entity.country][:40] if entity.kind != "country" else []
    drawn = rng.sample(pool, min(24, len(pool))) + rng.sample(near, min(8, len(near)))
    fit = {value: country for value, country in drawn if not compatible(value, right)}
    ranked = sorted(fit, key=lambda value: (_likeness(value, fit[value], right, entity.country), value), reverse=True)
    best = ranked[: max(count * 3, 6)]
    rng.shuffle(best)
    kept: list[str] = []
    for value in best:
        if len(kept) < count and not any(compatible(value, other) for other in kept):
            kept.append(value)
    return kept


@functools.cache
def _by_word(kind: str) -> dict[str, tuple[str, ...]]:
    """Keys of the entities of a kind, by the words of their titles."""
    found: dict[str, list[str]] = defaultdict(list)
    for entity in entities():
        if entity.kind == kind:
            for word in set(fold(entity.title).casefold().replace("-", " ").split()):
                if len(word) > 2 and word not in ("airport", "international", "the", "and", "regional", "municipal"):
                    found[word].append(entity.key)
    return {word: tuple(keys) for word, keys in found.items()}


def similar_entities(entity: Entity) -> list[Entity]:
    """Entities of the same kind that share a word of the title, or begin with the same letters."""
    table = _by_word(entity.kind)
    words = fold(entity.title).casefold().replace("-", " ").split()
    keys = dict.fromkeys(key for word in words for key in table.get(word, ())[:200] if key != entity.key)
    if not keys:
        prefix = words[0][:3]
        keys = dict.fromkeys(k for word in table if word.startswith(prefix) for k in table[word][:5] if k != entity.key)
    return [by_key()[key] for key in list(keys)[:200]]


def near_passages(entity: Entity, relation: str, wording: Wording = "train") -> dict[str, list[Passage]]:
    """Passages that look right for a question and are not: by how they miss.

    `same`: of the same entity, without the fact; `similar`: with the same fact of an entity of similar name;
    `compatriot`: with the same fact of another entity of the same country.
    """
    table = by_entity(wording)
    same = [p for p in table.get(entity.key, ()) if relation not in p.relations]
    similar = [p for e in similar_entities(entity)[:40] for p in table.get(e.key, ()) if relation in p.relations]
    return {"same": same, "similar": similar}
