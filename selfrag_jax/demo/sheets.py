"""The demo's passages as fact sheets: "capital: Oslo; currency: Norwegian krone" under "Facts about Norway".

Much of what people retrieve is no prose. A model that has seen only sentences takes such a passage for irrelevant, and
one that has seen only sheets whose every line answers some question takes the others for irrelevant: hence fields that
nothing asks for.
"""

import functools
import random
import zlib

from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.facts import by_key
from selfrag_jax.demo.names import capitalise
from selfrag_jax.demo.passages import Passage
from selfrag_jax.demo.questions import label
from selfrag_jax.demo.relations import RELATIONS

VARIANTS = 4  # of a passage; the odd ones are headed by one of their facts ("Capital of Norway": "name: Oslo; …")
TITLES = ("{x}", "Facts about {x}", "{x} at a glance", "Profile of {x}")
SEPARATORS = ("; ", " | ", " ")
MONTHS = ("January", "March", "April", "June", "August", "October", "November")


def _key(relation: str) -> str:
    """What a fact is called on a sheet: "capital", "internet domain"."""
    return label(RELATIONS[relation]).removeprefix("the ").replace(" {x}", " it")


def _unasked(entity: Entity, rng: random.Random) -> list[str]:
    """Fields that no question asks for. Their values are made up: passages are read, never learnt."""

    def number(low: int, high: int) -> str:
        return f"{rng.randrange(low, high):,}"

    def angle(top: int, ends: str) -> str:
        return f"{rng.randrange(top)} {rng.randrange(60):02d} {rng.choice(ends)}"

    day = f"{rng.randrange(1, 29)} {rng.choice(MONTHS)}"
    hours = rng.randrange(2, 12)
    if entity.kind == "country":
        return [
            f"geographic coordinates: {angle(60, 'NS')}, {angle(180, 'EW')}",
            f"time difference: UTC{rng.choice('+-')}{hours} ({hours} hours from London, in winter)",
            f"summer time: +1hr, from {day} to the end of {rng.choice(MONTHS)}",
            f"national holiday: {day} ({rng.randrange(1800, 1995)})",
            f"coastline: {number(20, 9000)} km",
            f"driving side: {rng.choice(('left', 'right'))}",
            f"note: {rng.choice(('figures are estimates', 'renamed twice', 'see also the map', 'under review'))}",
        ]
    if entity.kind == "city":
        return [
            f"founded: {rng.randrange(1000, 1950)}",
            f"postal code: {rng.randrange(10_000, 99_999)}",
            f"mean temperature: {rng.randrange(3, 29)} degrees",
            f"districts: {rng.randrange(2, 30)}; mayor elected every {rng.randrange(3, 7)} years",
            f"note: {rng.choice(('market on Saturdays', 'figures are estimates', 'twinned with two towns'))}",
        ]
    if entity.kind == "airport":
        return [
            f"opened: {day} {rng.randrange(1920, 2010)}",
            f"runways: {rng.randrange(1, 5)}, the longest of {number(900, 4000)} m",
            f"passengers: {number(1000, 900_000)} a year",
            f"operator: {rng.choice(('the state', 'the town', 'a private company'))}",
        ]
    return [
        f"melting point: {number(200, 3500)} K",
        f"boiling point: {number(400, 5000)} K",
        f"hardness: {rng.randrange(1, 10)}.{rng.randrange(10)} (Mohs)",
        f"crystal structure: {rng.choice(('cubic', 'hexagonal', 'tetragonal'))}",
    ]


@functools.lru_cache(maxsize=4096)
def sheet(passage: Passage, variant: int, unasked: int = 0) -> Passage:
    """The facts of a passage as a sheet, one of `VARIANTS`; it is about the same entity and states the same facts.

    Up to `unasked` fields that no question asks for stand among them.
    """
    rng = random.Random(zlib.crc32(f"{passage.id}:sheet:{variant}".encode()))
    entity = by_key()[passage.entity]
    keys = rng.sample(passage.relations, len(passage.relations))
    items = [f"{_key(key)}: {entity.facts[key]}" for key in keys]
    title = rng.choice(TITLES).format(x=entity.name)
    headed = variant % 2
    if headed:
        title = RELATIONS[keys[0]].noun.format(x=entity.name).removeprefix("the ")
        value = entity.facts[keys[0]]
        items[0] = f"name: {value}" if value[:1].isupper() and rng.random() < 0.7 else value
    separator = rng.choice(SEPARATORS)
    if unasked:
        fields = _unasked(entity, rng)
        for field in rng.sample(fields, min(len(fields), rng.randrange(unasked + 1))):
            items.insert(rng.randrange(headed, len(items) + 1), field)
    return Passage(passage.id, capitalise(title), separator.join(items), passage.entity, tuple(keys))
