"""The demo's corpus: a passage for every entity and group of facts, worded by a choice that the entity seeds."""

import dataclasses
import functools
import random
import zlib
from collections.abc import Iterator
from typing import Literal

from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.facts import entities
from selfrag_jax.demo.groups import GROUPS, Group
from selfrag_jax.demo.length import token_estimate
from selfrag_jax.demo.names import capitalise
from selfrag_jax.demo.paraphrases import paraphrases
from selfrag_jax.demo.relations import HELD_OUT_WORDINGS, RELATIONS

# "varied" and the like, of questions only: those of training and their paraphrases.
Wording = Literal["train", "heldout", "varied", "varied_more", "varied_most", "varied_last", "varied_facts",
                  "varied_claims"]  # fmt: skip
WORDINGS: tuple[Wording, ...] = ("train", "heldout")

# Facts that are only told right after the fact they refer back to ("That airport is 12 kilometres away").
FOLLOWS = {"airport_distance": "nearest_airport"}
MAX_TOKENS = 64  # of SmolLM2, title included
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
    if wording == "heldout":
        return templates[-held_out:]
    more = () if wording == "train" else paraphrases(wording).get(templates[0], ())
    return (*templates[:-held_out], *more)


def _order(relations: list[str], rng: random.Random) -> list[str]:
    """A random order in which every fact that refers back stands right after what it refers to."""
    free = [r for r in relations if FOLLOWS.get(r) not in relations]
    rng.shuffle(free)
    ordered = []
    for relation in free:
        ordered += [relation, *(r for r in relations if FOLLOWS.get(r) == relation)]
    return ordered


def _write(entity: Entity, group: Group, relations: list[str], wording: Wording, repeat: float) -> Passage | None:
    """The passage on these relations, or None where it may be longer than `MAX_TOKENS`."""
    identity = f"{entity.key}-{group.key}".replace(":", "-")
    rng = random.Random(zlib.crc32(f"{identity}:{wording}".encode()))
    titles = group.titles[:-1] if wording == "train" else group.titles[-1:]
    title = capitalise(rng.choice(titles).format(x=entity.name, t=entity.title))
    order = _order(relations, rng)
    sentences = []
    for place, key in enumerate(order):
        relation = RELATIONS[key]
        name_it = place == 0 or (key not in FOLLOWS and rng.random() < repeat)
        template = rng.choice(wordings(relation.full if name_it else relation.short, "full", wording))
        sentences.append(capitalise(template.format(x=entity.name, v=entity.facts[key])))
    text = " ".join(sentences)
    if token_estimate(title) + token_estimate(text) + 1 >= MAX_TOKENS:
        return None
    return Passage(identity, title, text, entity.key, tuple(order))


def write_passage(entity: Entity, group: Group) -> dict[Wording, Passage] | None:
    """The passage on one group of an entity's facts in either wording, or None where there are not two that fit.

    Both wordings state the same facts: as many of the group's as fit into `MAX_TOKENS` in both.
    """
    relations = [r for r in group.relations if r in entity.facts]
    while len(relations) >= 2:
        written: dict[Wording, Passage] = {}
        for wording in WORDINGS:
            passage = _write(entity, group, relations, wording, REPEAT_NAME)
            passage = passage or _write(entity, group, relations, wording, 0.0)
            if passage is None:
                break
            written[wording] = passage
        if len(written) == len(WORDINGS):
            return written
        relations = relations[:-1]
    return None


def generate() -> Iterator[dict[Wording, Passage]]:
    """Every passage of the corpus in both wordings, in the order of the entities."""
    for entity in entities():
        for group in GROUPS[entity.kind]:
            written = write_passage(entity, group)
            if written is not None:
                yield written


@functools.cache
def _all() -> dict[Wording, tuple[Passage, ...]]:
    written = list(generate())
    return {wording: tuple(each[wording] for each in written) for wording in WORDINGS}


def passages(wording: Wording = "train") -> tuple[Passage, ...]:
    """The corpus: over 20,000 passages, each of at most 64 tokens with its title; both wordings have the same ids."""
    return _all()[wording]


def by_entity(wording: Wording = "train") -> dict[str, tuple[Passage, ...]]:
    """The passages of each entity, by its key."""
    return _by_entity(wording)


@functools.cache
def _by_entity(wording: Wording) -> dict[str, tuple[Passage, ...]]:
    found: dict[str, list[Passage]] = {}
    for passage in _all()[wording]:
        found.setdefault(passage.entity, []).append(passage)
    return {key: tuple(group) for key, group in found.items()}
