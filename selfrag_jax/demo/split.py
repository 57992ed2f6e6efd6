"""The held-out side of the demo, by entity, and the scan for its names.

An entity is held out if it is or lies in a held-out country, or if a seeded hash of its key says so. The countries
held out by name are those of the 85 PopQA questions "What is the capital of X?", so that the trained model can be
tried on them. Training text may mention no held-out entity by any of its names: `mentions` is what the rows are
filtered with, text by text, so a training country's passage about its neighbours is left out if one neighbour is
held out. Left out of the names are codes of one or two letters (ISO alpha-2, symbols of elements): "IN", "As" and
"No" are ordinary words, and a fact about such a name cannot be told from them.
"""

import functools
import re
import zlib

from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.facts import entities
from selfrag_jax.demo.names import ORDINARY_WORDS, fold, words

# ISO 3166 alpha-2 codes of the countries in PopQA's questions about capitals.
POPQA_COUNTRIES = frozenset(
    words("""
AD AM AO AR AU AZ BA BB BD BE BG BI BJ BM BN BY BZ CH CK CO CU CY CZ DJ EC ER ES ET FI FR GB GE GN GY HT HU ID IE IL
IN IQ IS JP KE KY LA LB LC LI LK LR LY MA MD MS MU MW MX MY NC NE NL NP NZ OM PK PL PR QA RO RS RW SA SB SD SK SR TD
TJ TN TR TV UY VE VN
""")
)
# Their capitals under names that the sources of facts do not carry (seats of government, former capitals).
POPQA_CAPITALS = ("The Hague", "Kutaisi", "Colombo", "Kotte", "Bujumbura", "Brades", "Tel Aviv", "Georgetown", "Tiflis")

# Percent of the entities outside those countries that are held out as well.
PERCENT = {"country": 6, "city": 10, "airport": 10, "element": 12}
SALT = "selfrag-demo-1"

_WORD = re.compile(r"\w+")


def _chosen(entity: Entity) -> bool:
    return zlib.crc32(f"{SALT}:{entity.key}".encode()) % 100 < PERCENT[entity.kind]


@functools.cache
def held_out_countries() -> frozenset[str]:
    """ISO alpha-2 codes of the countries that are held out with everything in them."""
    return POPQA_COUNTRIES | {e.country for e in entities() if e.kind == "country" and _chosen(e)}


@functools.cache
def held_out_keys() -> frozenset[str]:
    """The keys of the entities that nothing in a training row may be about."""
    nations = held_out_countries()
    return frozenset(e.key for e in entities() if e.country in nations or (e.kind != "country" and _chosen(e)))


def held_out(entity: Entity) -> bool:
    """Whether nothing about this entity may be in a training row."""
    return entity.key in held_out_keys()


def held_out_names(entity: Entity) -> set[str]:
    """Every name of a held-out entity that the scan looks for, accents removed, case kept."""
    found = {entity.title, entity.name.removeprefix("the "), *entity.aliases}
    if entity.kind == "country" and "capital" in entity.facts:
        found.add(entity.facts["capital"])
    return {fold(n) for n in found if len(fold(n)) >= 3 and fold(n).casefold() not in ORDINARY_WORDS}


@functools.cache
def _names_by_first_word() -> dict[str, tuple[tuple[str, ...], ...]]:
    table: dict[str, set[tuple[str, ...]]] = {}
    every = set(map(fold, POPQA_CAPITALS)).union(*(held_out_names(e) for e in entities() if held_out(e)))
    for name in every:
        parts = tuple(_WORD.findall(name))
        if parts:
            table.setdefault(parts[0], set()).add(parts)
    return {first: tuple(sorted(names)) for first, names in table.items()}


def mentions(text: str) -> str | None:
    """A held-out name that stands in the text as whole words (case matters, accents do not), or None."""
    found = tuple(_WORD.findall(fold(text).replace("_", " ")))
    table = _names_by_first_word()
    for at, word in enumerate(found):
        for name in table.get(word, ()):
            if found[at : at + len(name)] == name:
                return " ".join(name)
    return None
