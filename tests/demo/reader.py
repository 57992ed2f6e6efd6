"""Rows read back: which facts a question asks for, and whether a text states them.

The second piece of code that knows what the labels ought to be. It shares with the first only the tables of facts and
wordings, and works the other way round: from the finished text, by trying what the tables allow it to mean.
"""

import functools
import re
from collections import defaultdict

from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.facts import entities
from selfrag_jax.demo.paraphrases import EVERY, FRAMES, paraphrases
from selfrag_jax.demo.questions import ASK_NOUN, CHOOSE, TRUE_FALSE, label
from selfrag_jax.demo.relations import AIRPORT, CITY, COUNTRY, ELEMENT, Relation
from selfrag_jax.demo.rows import VERIFY
from selfrag_jax.demo.sheets import TITLES

OF_KIND = {"country": COUNTRY, "city": CITY, "airport": AIRPORT, "element": ELEMENT}


def sentence(template: str, entity: Entity, value: str) -> str:
    """A template filled in, as a sentence."""
    made = template.replace("{x}", entity.name).replace("{v}", value)
    return made[:1].upper() + made[1:]


def within(text: str, made: str) -> bool:
    """Whether a sentence stands in a text, from the beginning of a sentence to the end of one."""
    return re.search(rf"(?:^|[.!?:] ){re.escape(made)}(?: |$)", text) is not None


def on_sheet(title: str, text: str, entity: Entity, relation: Relation, value: str) -> bool:
    """Whether a fact sheet headed so gives the value under the relation's name, or under a title that names it."""
    name, gap, end = re.escape(value), r"(?:^|; | \| | )", r"(?:$|; | \| | )"
    heads = {form.replace("{x}", entity.name).casefold() for form in TITLES}
    nouns = {one.noun.replace("{x}", entity.name).removeprefix("the ").casefold(): one for one in OF_KIND[entity.kind]}
    if nouns.get(title.casefold()) is relation and re.match(f"(?:name: )?{name}{end}", text):
        return True
    called = re.escape(label(relation).removeprefix("the ").replace(" {x}", " it"))
    return title.casefold() in heads | nouns.keys() and re.search(f"{gap}{called}: {name}{end}", text) is not None


def states(text: str, entity: Entity, relation: Relation, value: str | None = None, title: str = "") -> bool:
    """Whether the text is about the entity (its first sentence names it so, or its title where it is a fact sheet) and
    says this of it, truly or not."""
    about = any(
        text.startswith(sentence(template, entity, entity.facts[one.key]))
        for one in OF_KIND[entity.kind]
        if one.key in entity.facts
        for template in (*one.full, one.answer)
    )
    value = entity.facts.get(relation.key) if value is None else value
    ways = (*relation.full, *relation.short, relation.answer)
    if value is None:
        return False
    prose = about and any(within(text, sentence(way, entity, value)) for way in ways)
    return prose or (title != "" and on_sheet(title, text, entity, relation, value))


@functools.cache
def by_name() -> dict[str, list[Entity]]:
    """Entities by the two ways a question names them, in lower case."""
    found = defaultdict(list)
    for entity in entities():
        for name in {entity.name.casefold(), entity.title.casefold()}:
            found[name].append(entity)
    return found


def every(forms: tuple[str, ...]) -> tuple[str, ...]:
    """The ways of a table and their paraphrases."""
    return (*forms, *paraphrases(EVERY).get(forms[0], ()))


def unframed(instruction: str) -> str:
    """What is asked behind a frame."""
    starts = [frame.removesuffix("{q}") for frame in FRAMES if instruction.startswith(frame.removesuffix("{q}"))]
    return instruction.removeprefix(starts[0]) if starts else instruction


@functools.cache
def regex(template: str) -> re.Pattern:
    """What a template may have become, its gaps as groups of their names."""
    made = re.escape(template)
    for gap in "xvnsqabcd":
        made = made.replace(rf"\{{{gap}\}}", f"(?P<{gap}>.+)")
    return re.compile(made, re.IGNORECASE | re.DOTALL)


@functools.cache
def asking() -> list[tuple[re.Pattern, str, Relation]]:
    """(pattern, kind of entity, relation) for every way to ask for a fact."""
    ways = []
    for kind, relations in OF_KIND.items():
        for relation in relations:
            nouns = [form.replace("{n}", relation.noun) for form in every(ASK_NOUN)]
            ways += [(regex(way), kind, relation) for way in (*every(relation.ask), *nouns)]
    return ways


@functools.cache
def claiming() -> list[tuple[re.Pattern, str, Relation]]:
    """(pattern, kind of entity, relation) for every way to state a fact in an answer."""
    return [(regex(r.answer), kind, r) for kind, relations in OF_KIND.items() for r in relations]


@functools.cache
def values() -> dict[str, set[str]]:
    """Every value that some entity has for a relation, in lower case."""
    found = defaultdict(set)
    for entity in entities():
        for key, value in entity.facts.items():
            found[key].add(value.casefold())
    return found


def matched(ways, text: str) -> list[tuple[Entity, Relation, str]]:
    """Every entity and relation that the text may mean, with the value it gives (empty in a question)."""
    found = []
    for pattern, kind, relation in ways:
        match = pattern.fullmatch(text)
        if match:
            same = by_name().get(match["x"].casefold(), [])
            given = match["v"] if "v" in pattern.groupindex else ""
            if given and given.casefold() not in values()[relation.key]:
                continue  # "in the d-block" is no family of elements, though "X is {v}" would take it for one
            found += [(entity, relation, given) for entity in same if entity.kind == kind]
    return found


def inside(forms, gap: str, text: str) -> list[str]:
    """What fills a gap of the forms."""
    return [match[gap] for form in every(forms) if (match := regex(form).fullmatch(text))]


def asked(kind: str, instruction: str) -> list[list[tuple[Entity, Relation, str]]]:
    """The readings of each fact that the instruction is about: one for most kinds, two where a statement joins two."""
    instruction = unframed(instruction)
    if kind == "short":
        return [matched(asking(), instruction)]
    if kind == "options":
        return [[one for text in inside(CHOOSE, "q", instruction) for one in matched(asking(), text)]]
    claims = inside(TRUE_FALSE if kind == "boolean" else VERIFY, "s", instruction)
    for claim in claims if kind == "verify" else []:
        for cut in re.finditer(", and ", claim):
            parts = [matched(claiming(), part) for part in (f"{claim[: cut.start()]}.", claim[cut.end() :])]
            if all(parts):
                return parts
    return [[one for claim in claims for one in matched(claiming(), claim)]]
