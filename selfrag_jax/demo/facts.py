"""All the entities of the demo, in a fixed order."""

import functools

from selfrag_jax.demo.countries import countries
from selfrag_jax.demo.elements import elements
from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.places import airports, cities


@functools.cache
def entities() -> tuple[Entity, ...]:
    """Countries, elements, airports and cities, each sorted by a stable key; the same on every machine.

    Titles are unique over all kinds. Raises UserError when one of the packages of facts is not installed.
    """
    found: list[Entity] = []
    taken: set[str] = set()
    nations = countries()
    for entity in [*nations, *elements(), *airports(nations), *cities(nations)]:
        if entity.title.casefold() not in taken:
            taken.add(entity.title.casefold())
            found.append(entity)
    return tuple(found)


@functools.cache
def by_key() -> dict[str, Entity]:
    """All entities by their keys."""
    return {entity.key: entity for entity in entities()}
