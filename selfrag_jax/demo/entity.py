"""One thing the demo knows facts about."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Entity:
    """A country, city, airport or element, and its facts as the words that passages and answers use.

    `facts` maps a relation's key (`selfrag_jax.demo.relations`) to its value; a fact that is not known is absent.
    """

    key: str  # unique and stable: "country:LI", "city:3042030", "airport:LSZH", "element:Au"
    kind: str  # country | city | airport | element
    title: str  # as a passage's title names it: "Netherlands"
    name: str  # as it stands inside a sentence: "the Netherlands", "gold"
    aliases: tuple[str, ...]  # every other name and code
    country: str  # ISO 3166 alpha-2 of the country it is or lies in; "" for elements
    facts: Mapping[str, str]
