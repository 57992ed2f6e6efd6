"""The demo's corpus: a passage for every entity and group of facts, worded by a choice that the entity seeds."""

import dataclasses
import functools
import random
import zlib
from collections.abc import Iterator
from typing import Literal

from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.facts import entities
from selfrag_jax.demo.names import capitalise
from selfrag_jax.demo.relations import GROUPS, HELD_OUT_WORDINGS, RELATIONS, Group

Wording = Literal["train", "heldout"]

# Facts that are only told right after the fact they refer back to ("That airport is 12 kilometres away").
FOLLOWS = {"airport_distance": "nearest_airport"}
REPEAT_NAME = 0.2  # how often a later sentence names the entity again instead of saying "it"


@dataclasses.dataclass(frozen=True)
class Passage:
    """A titled passage, with the entity it is about and the relations it states, in the order of its sentences."""

    id: str
    title: str
    text: str
    entity: str
    relations: tuple[str, ...]

    @property
    def row(self) -> dict[str, str]:
        """The passage as corpora hold it: id, title and text."""
        return {"id": self.id, "title": self.title, "text": self.text}


def wordings(templates: tuple[str, ...], kind: str, wording: Wording) -> tuple[str, ...]:
    """The part of a table's templates that training may use, or the part that only held-out wordings use."""
    held_out = HELD_OUT_WORDINGS[kind]
    return templates[:-held_out] if wording == "train" else templates[-held_out:]


def _order(relations: list[str], rng: random.Random) -> list[str]:
    """A random order in which every fact that refers back stands right after what it refers to."""
    free = [r for r in relations if FOLLOWS.get(r) not in relations]
    rng.shuffle(free)
    ordered = []
    for relation in free:
        ordered += [relation, *(r for r in relations if FOLLOWS.get(r) == relation)]
    return ordered


def write_passage(entity: Entity, group: Group, wording: Wording = "train") -> Passage | None:
    """The passage on one group of an entity's facts, or None where fewer than two of them are known."""
    known = [r for r in group.relations if r in entity.facts]
    if len(known) < 2:
        return None
    identity = f"{entity.key}-{group.key}".replace(":", "-")
    rng = random.Random(zlib.crc32(f"{identity}:{wording}".encode()))
    titles = group.titles[:-1] if wording == "train" else group.titles[-1:]
    title = capitalise(rng.choice(titles).format(x=entity.name, t=entity.title))
    order = _order(known, rng)
    sentences = []
    for place, key in enumerate(order):
        relation = RELATIONS[key]
        name_it = place == 0 or (key not in FOLLOWS and rng.random() < REPEAT_NAME)
        template = rng.choice(wordings(relation.full if name_it else relation.short, "full", wording))
        sentences.append(capitalise(template.format(x=entity.name, v=entity.facts[key])))
    return Passage(identity, title, " ".join(sentences), entity.key, tuple(order))


def generate(wording: Wording = "train") -> Iterator[Passage]:
    """Every passage of the corpus, in the order of the entities; `heldout` tells the same facts in other templates."""
    for entity in entities():
        for group in GROUPS[entity.kind]:
            passage = write_passage(entity, group, wording)
            if passage is not None:
                yield passage


@functools.cache
def _all(wording: Wording) -> tuple[Passage, ...]:
    return tuple(generate(wording))


def passages(wording: Wording = "train") -> tuple[Passage, ...]:
    """The corpus: over 20,000 passages, each of at most 64 tokens with its title; both wordings have the same ids."""
    return _all(wording)


def by_entity(wording: Wording = "train") -> dict[str, tuple[Passage, ...]]:
    """The passages of each entity, by its key."""
    return _by_entity(wording)


@functools.cache
def _by_entity(wording: Wording) -> dict[str, tuple[Passage, ...]]:
    found: dict[str, list[Passage]] = {}
    for passage in _all(wording):
        found.setdefault(passage.entity, []).append(passage)
    return {key: tuple(group) for key, group in found.items()}
