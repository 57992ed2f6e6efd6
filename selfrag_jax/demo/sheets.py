"""The demo's passages as fact sheets: "capital: Oslo; currency: Norwegian krone" under "Facts about Norway".

Much of what people retrieve is no prose. A model that has seen only sentences takes such a passage for irrelevant.
"""

import functools
import random
import zlib

from selfrag_jax.demo.facts import by_key
from selfrag_jax.demo.names import capitalise
from selfrag_jax.demo.passages import Passage
from selfrag_jax.demo.questions import label
from selfrag_jax.demo.relations import RELATIONS

VARIANTS = 4  # of a passage; the odd ones are headed by one of their facts ("Capital of Norway": "name: Oslo; …")
TITLES = ("{x}", "Facts about {x}", "{x} at a glance", "Profile of {x}")
SEPARATORS = ("; ", " | ", " ")


def _key(relation: str) -> str:
    """What a fact is called on a sheet: "capital", "internet domain"."""
    return label(RELATIONS[relation]).removeprefix("the ").replace(" {x}", " it")


@functools.lru_cache(maxsize=4096)
def sheet(passage: Passage, variant: int) -> Passage:
    """The facts of a passage as a sheet, one of `VARIANTS`; it is about the same entity and states the same facts."""
    rng = random.Random(zlib.crc32(f"{passage.id}:sheet:{variant}".encode()))
    entity = by_key()[passage.entity]
    keys = rng.sample(passage.relations, len(passage.relations))
    items = [f"{_key(key)}: {entity.facts[key]}" for key in keys]
    title = rng.choice(TITLES).format(x=entity.name)
    if variant % 2:
        title = RELATIONS[keys[0]].noun.format(x=entity.name).removeprefix("the ")
        value = entity.facts[keys[0]]
        items[0] = f"name: {value}" if value[:1].isupper() and rng.random() < 0.7 else value
    text = rng.choice(SEPARATORS).join(items)
    return Passage(passage.id, capitalise(title), text, passage.entity, tuple(keys))
