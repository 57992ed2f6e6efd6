"""Chemical elements, from the SQLite file inside `mendeleev`."""

import re
import sqlite3

from selfrag_jax.demo import names
from selfrag_jax.demo.entity import Entity
from selfrag_jax.paths import resolve

QUERY = """
SELECT e.name, e.symbol, e.atomic_number, e.group_id, e.period, e.block, e.atomic_weight, e.density,
       e.discoverers, e.discovery_year, e.name_origin, s.name
FROM elements e LEFT JOIN series s ON s.id = e.series_id ORDER BY e.atomic_number
"""
OTHER_SPELLINGS = {"Aluminum": ("Aluminium",), "Cesium": ("Caesium",), "Sulfur": ("Sulphur",)}
WRONG_YEAR = {"Neodymium"}  # 1885, not the source's 1925
ROOT = re.compile(r"(Greek|Latin|German): (\w+),? \(([a-z ]+)\)\.?")


def _origin(text: str | None) -> str | None:
    """The origin of a name, where the source gives one plain root word with its meaning."""
    match = ROOT.fullmatch(text or "")
    return f"the {match[1]} word {match[2]}, meaning {match[3]}" if match else None


def _discoverer(text: str | None) -> str | None:
    """The discoverer, where the source names one person in full."""
    text = names.SPELLING.get(text or "", text or "")
    if re.search(r"[,;/]|ancient|Institute|Laboratory|Centre|et al|RIKEN|Soviet|Aver|^\w\.", text) or " " not in text:
        return None
    return text


def elements() -> list[Entity]:
    """All elements, with symbol, place in the table, mass, density and, where one person is named, discovery."""
    path = resolve("package:mendeleev/elements.db")
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        rows = connection.execute(QUERY).fetchall()
    finally:
        connection.close()
    found = []
    for name, symbol, number, group, period, block, weight, density, discoverers, year, origin, series in rows:
        optional = {
            "group": str(group) if group else None,
            "atomic_mass": f"{weight:.2f}" if weight else None,
            "density": f"{density:.2f} grams per cubic centimetre" if density and density >= 0.05 else None,
            "discoverer": _discoverer(discoverers),
            "discovery_year": str(year) if year and name not in WRONG_YEAR else None,
            "origin": _origin(origin),
        }
        facts = {
            "symbol": symbol,
            "atomic_number": str(number),
            "series": names.SERIES[series],
            "period": str(period),
            "block": f"{block}-block",
        } | {key: value for key, value in optional.items() if value}
        if number > 103:
            facts.pop("density", None)  # predicted, never measured
        aliases = (name, *OTHER_SPELLINGS.get(name, ()), *(s.lower() for s in OTHER_SPELLINGS.get(name, ())))
        found.append(Entity(f"element:{symbol}", "element", name, name.lower(), aliases, "", facts))
    return found
