"""What is nearly right: wrong values for a statement, and entities of similar names."""

import functools
import random
import re
from collections import defaultdict

from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.facts import by_key, entities
from selfrag_jax.demo.names import fold
from selfrag_jax.demo.split import held_out, mentions

# Regions of one kind that lie inside another of the table, so that neither is wrong for the other.
_OCEANIA = frozenset({"oceania", "polynesia", "melanesia", "micronesia"})
_LIST = re.compile(r", (?:and )?| and ")


@functools.cache
def _pool(relation: str, training: bool) -> tuple[tuple[str, str], ...]:
    """(value, country) of every entity that has the fact; for training only what training may mention."""
    found = dict.fromkeys(
        (e.facts[relation], e.country) for e in entities() if relation in e.facts and (not training or not held_out(e))
    )
    return tuple(pair for pair in found if not (training and mentions(pair[0])))


@functools.cache
def _compatriots(relation: str, training: bool) -> dict[str, tuple[tuple[str, str], ...]]:
    """The pool by country."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for pair in _pool(relation, training):
        found[pair[1]].append(pair)
    return {country: tuple(pairs) for country, pairs in found.items()}


def compatible(a: str, b: str) -> bool:
    """Whether both could be true of one thing, in part at least: one holds the other, they are nested regions, or
    they are lists (languages, neighbours) with a member in common."""
    a, b = fold(a).casefold(), fold(b).casefold()
    nested = a in b or b in a or (a in _OCEANIA and b in _OCEANIA)
    return nested or bool(set(_LIST.split(a)) & set(_LIST.split(b)))


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
    near = _compatriots(relation, not held_out(entity)).get(entity.country, ()) if entity.kind != "country" else ()
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


# Words that say nothing of which airport is meant.
_BARE_WORDS = frozenset({"airport", "airfield", "international", "regional", "municipal", "the", "and"})


def _title_words(entity: Entity) -> list[str]:
    return [w for w in fold(entity.title).casefold().replace("-", " ").split() if len(w) > 2 and w not in _BARE_WORDS]


@functools.cache
def _by_word(kind: str) -> dict[str, tuple[str, ...]]:
    """Keys of the entities of a kind, by the words of their titles, and by how the first of these begins ("pod…")."""
    found: dict[str, list[str]] = defaultdict(list)
    for entity in entities():
        if entity.kind == kind:
            parts = _title_words(entity)
            for index in {*parts, *(f"{part[:3]}…" for part in parts[:1])}:
                found[index].append(entity.key)
    return {index: tuple(keys) for index, keys in found.items()}


@functools.cache
def similar_entities(entity_key: str) -> tuple[Entity, ...]:
    """Entities of the same kind that share a word of the title, or else begin with the same letters; at most 60."""
    entity = by_key()[entity_key]
    table, parts = _by_word(entity.kind), _title_words(entity)
    keys = dict.fromkeys(key for word in parts for key in table.get(word, ()) if key != entity_key)
    if not keys and parts:
        keys = dict.fromkeys(key for key in table.get(f"{parts[0][:3]}…", ()) if key != entity_key)
    return tuple(by_key()[key] for key in list(keys)[:60])
