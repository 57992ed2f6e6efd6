"""One side of the split as rows draw on it: its passages by relation and entity, and passages that miss."""

import functools
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from selfrag_jax.demo.distractors import similar_entities
from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.facts import entities
from selfrag_jax.demo.names import fold
from selfrag_jax.demo.passages import Passage, Wording, passages
from selfrag_jax.demo.split import held_out, mentions

# How often each kind of entity is asked about. Countries are few and are what PopQA asks about; elements have names
# that are told apart by rare pieces only.
ENTITY_MIX = {"country": 30, "city": 26, "airport": 26, "element": 18}
RELATION_WEIGHT = {"capital": 3.0}  # relative to 1 for every other relation of the kind
# How an irrelevant passage misses, in parts: of the same entity, without the fact; with the same fact of an entity of
# similar name; with the same fact of any entity of the kind; of another kind. Far misses are many because little is
# learnt from near ones before a model tells the far ones. A recipe may also have "value": of another entity, with a
# value that the question names, which is what an index finds for "People in the Maldives officially use Dutch".
MISS_MIX = {"same": 15, "similar": 15, "kind": 45, "other": 25}

Key = TypeVar("Key")


def pick(table: Mapping[Key, float], rng: random.Random) -> Key:
    """A key of the table, drawn by its weight."""
    return rng.choices(list(table), list(table.values()))[0]


class World:
    """The passages of one side in one wording. The training side has none that mentions anything held out."""

    def __init__(self, side: str, wording: Wording):
        self.side, self.wording = side, wording
        mine = {e.key: e for e in entities() if held_out(e) == (side == "heldout")}
        self.by_relation: dict[str, list[tuple[Entity, Passage]]] = defaultdict(list)
        self.by_entity: dict[str, list[Passage]] = defaultdict(list)
        self.by_kind: dict[str, list[Passage]] = defaultdict(list)
        self.by_value: dict[str, list[tuple[Entity, Passage]]] = defaultdict(list)
        for p in passages(wording):
            if p.entity in mine and not (side == "train" and mentions(f"{p.title}\n{p.text}")):
                entity = mine[p.entity]
                self.by_entity[entity.key].append(p)
                self.by_kind[entity.kind].append(p)
                for relation in p.relations:
                    self.by_relation[relation].append((entity, p))
                    self.by_value[entity.facts[relation]].append((entity, p))
        self.relations: dict[str, list[str]] = defaultdict(list)  # by kind of entity
        for relation, pairs in self.by_relation.items():
            self.relations[pairs[0][0].kind].append(relation)
        self.rich: dict[str, list[Entity]] = defaultdict(list)  # entities of two passages or more, by kind
        for key, owned in self.by_entity.items():
            if len(owned) > 1:
                self.rich[mine[key].kind].append(mine[key])

    def draw(self, rng: random.Random, more: Mapping[str, float] = MappingProxyType({})) -> tuple[Entity, str, Passage]:
        """An entity, one of its relations, and the passage that states it. `more`: relations drawn so much more."""
        relations = self.relations[pick(ENTITY_MIX, rng)]
        relation = rng.choices(relations, [RELATION_WEIGHT.get(r, 1.0) * more.get(r, 1.0) for r in relations])[0]
        entity, found = rng.choice(self.by_relation[relation])
        return entity, relation, found

    def draw_rich(self, rng: random.Random) -> Entity:
        """An entity with at least two passages."""
        return rng.choice(self.rich[pick(ENTITY_MIX, rng)])

    def _candidates(
        self, miss: str, entity: Entity, relations: tuple[str, ...], rng: random.Random, named: Sequence[str] = ()
    ) -> list[Passage]:
        if miss == "value":
            pairs = [pair for value in named for pair in self.by_value.get(value, ())]
            return [p for e, p in pairs if fold(e.title) != fold(entity.title)]
        if miss == "other":
            return self.by_kind[rng.choice([kind for kind in sorted(self.by_kind) if kind != entity.kind])]
        if miss == "same":
            return [p for p in self.by_entity[entity.key] if not set(relations) & set(p.relations)]
        if miss == "similar":
            near = [p for e in similar_entities(entity.key) for p in self.by_entity.get(e.key, ())]
            return [p for p in near if relations[0] in p.relations]
        return [p for e, p in rng.choices(self.by_relation[relations[0]], k=8) if e.key != entity.key]

    def irrelevant(
        self,
        entity: Entity,
        relations: tuple[str, ...],
        rng: random.Random,
        misses: Mapping[str, float] = MISS_MIX,
        named: Sequence[str] = (),
    ) -> Passage:
        """A passage that states none of the relations of the entity, drawn by `misses`; `named` are the values that a
        question names."""
        for miss in (pick(misses, rng), "similar", "same", "kind"):
            found = self._candidates(miss, entity, relations, rng, named)
            if found:
                return rng.choice(found)
        return rng.choice(self._candidates("other", entity, relations, rng))

    def about_another(self, entity: Entity, rng: random.Random) -> Passage:
        """A passage that is not about the entity."""
        told = dict.fromkeys(r for p in self.by_entity[entity.key] for r in p.relations)
        while True:
            found = self.irrelevant(entity, tuple(rng.sample(list(told), len(told))), rng)
            if found.entity != entity.key:
                return found


@functools.cache
def world(side: str = "train", wording: Wording = "train") -> World:
    """The side "train" or "heldout" of the demo."""
    return World(side, wording)
