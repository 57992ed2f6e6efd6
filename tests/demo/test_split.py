"""Nothing about a held-out entity is in any training row: a second scan, written apart from the one that filters."""

import json
import re
import unicodedata

from selfrag_jax.demo.facts import entities
from selfrag_jax.demo.names import ORDINARY_WORDS
from selfrag_jax.demo.split import POPQA_COUNTRIES, held_out, mentions


def bare(text: str) -> str:
    """Accents off by another road than the package's."""
    special = {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "ß": "ss", "’": "'", "ʻ": "'"}
    text = "".join(special.get(c, c) for c in text)
    return "".join(c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c) != "Mn")


def test_no_training_row_names_a_held_out_entity(rows):
    names = set()
    for entity in entities():
        if held_out(entity):
            names |= {entity.title, entity.name, *entity.aliases}
            if entity.kind == "country":
                names |= {entity.facts.get("capital", ""), entity.name.removeprefix("the ")}
    names = {bare(n) for n in names if len(bare(n)) >= 3 and bare(n).lower() not in ORDINARY_WORDS}
    assert len(names) > 5000
    text = bare("\n".join(row["instruction"] + "\n" + row["output"] for row in rows)).replace("_", " ")
    first_words = {re.findall(r"\w+", n)[0] for n in names if re.findall(r"\w+", n)}
    present = set(re.findall(r"\w+", text)) & first_words
    suspects = [n for n in names if re.findall(r"\w+", n) and re.findall(r"\w+", n)[0] in present]
    suspects = [n for n in suspects if n in text]
    found = [n for n in suspects if re.search(rf"(?<!\w){re.escape(n)}(?!\w)", text)]
    assert not found


def test_the_scan_finds_what_it_should():
    assert mentions("The capital of Liechtenstein is Vaduz.")
    assert mentions("Bogota, which is also written so") and mentions("Bogotá")
    assert mentions("Flights to Mexico City leave at noon.") and mentions("America/Mexico_City")
    assert mentions("the Cayman Islands") and mentions("Czechia") and mentions("Tōkyō")
    assert not mentions("The plural of mouse is mice.") and not mentions("francs in liechtensteinian")


def test_popqa_countries_are_held_out(assets):
    rows = [json.loads(line) for line in (assets / "rows" / "popqa_capital.jsonl").read_text().splitlines()]
    countries = {
        bare(name): entity
        for entity in entities()
        if entity.kind == "country"
        for name in (*entity.aliases, entity.title)
    }
    for row in rows:
        subject = row["question"].removeprefix("What is the capital of ").removesuffix("?")
        assert held_out(countries[bare(subject)]), subject
        assert mentions(row["question"]) and any(mentions(answer) for answer in row["answers"]), row
    assert len(rows) == len(POPQA_COUNTRIES) == 85


def test_places_in_a_held_out_country_are_held_out():
    for entity in entities():
        if entity.country in POPQA_COUNTRIES:
            assert held_out(entity)
    for kind, least in (("country", 90), ("city", 500), ("airport", 500), ("element", 10)):
        sides = [held_out(e) for e in entities() if e.kind == kind]
        assert least <= sum(sides) <= 0.7 * len(sides)
