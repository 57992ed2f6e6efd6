"""Questions over the facts: short answers, true or false, four options, and "tell me about X".

Every question knows its accepted answers and the passages that state them. `aspects` are the accepted strings, one
group for each thing that was asked: a short answer is right if it holds one string of its one aspect, a long answer if
it holds strings of at least two aspects. Plain instructions are in `selfrag_jax.demo.plain`.
"""

import dataclasses
import random
from collections.abc import Sequence

from selfrag_jax.demo.distractors import wrong_values
from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.facts import by_key
from selfrag_jax.demo.names import capitalise, fold
from selfrag_jax.demo.passages import Passage, Wording, by_entity, wordings
from selfrag_jax.demo.relations import RELATIONS, Relation
from selfrag_jax.demo.split import held_out

# Asked of any relation, by its noun. The last of each tuple is for held-out wordings only.
ASK_NOUN = ("Tell me {n}.", "What is {n}?", "I would like to know {n}.", "Please give {n}.", "Could you look up {n}?")
TRUE_FALSE = ("True or false: {s}", "Is this true or false? {s}", "Say whether this is true or false: {s}",
              "{s} True or false?", "Decide if the next claim is true or false. {s}")  # fmt: skip
CHOOSE = ("{q}\nA. {a}\nB. {b}\nC. {c}\nD. {d}", "{q} A. {a} B. {b} C. {c} D. {d}",
          "Choose the right answer. {q}\nA. {a}\nB. {b}\nC. {c}\nD. {d}",
          "Pick one of the four. {q}\nA. {a}\nB. {b}\nC. {c}\nD. {d}")  # fmt: skip
TELL = ("Tell me about {x}.", "Write a few sentences about {x}.", "What do you know about {x}?",
"Describe {x} briefly.",
        "Give me a short description of {x}.", "I want to learn something about {x}.")  # fmt: skip
TELL_BOTH = ("Tell me about {x}: {m} and {n}.", "What are {m} and {n} of {x}?", "For {x}, give {m} and {n}.",
             "I need two facts about {x}: {m} and {n}.", "Two things about {x}, please: {m} and {n}.")  # fmt: skip
# How a relation is called in a list, where it is not its noun without "of {x}".
LABELS = {
    "region": "the region of the world",
    "neighbours": "the neighbours",
    "languages": "the official language",
    "demonym": "the demonym",
    "city_country": "the country",
    "nearest_airport": "the nearest airport",
    "airport_distance": "the distance to the nearest airport",
    "city_currency": "the currency",
    "airport_city": "the town served",
    "airport_country": "the country",
    "series": "the family of elements",
    "discovery_year": "the year of discovery",
    "origin": "the origin of the name",
}
LETTERS = "ABCD"
OWN_WORDS = 0.75  # how often a question is asked in the words of its relation, and not by its noun


@dataclasses.dataclass(frozen=True)
class Question:
    """A question, its answer in a sentence, and what is needed to judge another answer."""

    id: str
    kind: str  # short | boolean | options | long
    instruction: str
    answer: str  # the sentence a passage supports, as training rows give it
    aspects: tuple[tuple[str, ...], ...]  # accepted strings, one tuple for each thing asked
    gold: tuple[str, ...]  # ids of the passages that state the answer
    entity: str
    relations: tuple[str, ...]
    split: str  # train | heldout
    wording: Wording
    needs_retrieval: bool = True
    form: str = ""  # of options: the question with {a} to {d} in it; of long ones: "tell" or "both"
    options: tuple[str, ...] = ()
    named: tuple[str, ...] = ()  # the values that the question names: the options, or the one that is claimed

    @property
    def answers(self) -> tuple[str, ...]:
        """Every accepted wording of every aspect."""
        return tuple(answer for aspect in self.aspects for answer in aspect)


def accepted(value: str) -> tuple[str, ...]:
    """A value and the other ways of writing it: without its article, without accents."""
    bare = value
    for article in ("the ", "a ", "an "):
        bare = bare.removeprefix(article)
    return tuple(dict.fromkeys((value, bare, fold(bare))))


def statement(entity: Entity, relation: Relation, value: str | None = None) -> str:
    """The sentence that states a fact of the entity, or, with another value, misstates it."""
    value = entity.facts[relation.key] if value is None else value
    return capitalise(relation.answer.format(x=entity.name, v=value))


def gold_passages(entity: Entity, relation: str) -> tuple[Passage, ...]:
    """The passages, in training wording, that state the fact."""
    return tuple(p for p in by_entity().get(entity.key, ()) if relation in p.relations)


def label(relation: Relation) -> str:
    """The relation as it is called in a list: "the capital"."""
    return LABELS.get(relation.key, relation.noun.removesuffix(" of {x}"))


def ask(entity: Entity, relation: Relation, rng: random.Random, wording: Wording) -> str:
    """One of the ways of asking for a fact."""
    # People leave the article of a name out ("the capital of Cayman Islands"), and so does PopQA.
    name = entity.title if entity.name.startswith("the ") and rng.random() < 0.3 else entity.name
    if rng.random() < OWN_WORDS:
        return capitalise(rng.choice(wordings(relation.ask, "ask", wording)).format(x=name))
    return rng.choice(wordings(ASK_NOUN, "ask", wording)).format(n=relation.noun.format(x=name))


def _question(
    entity: Entity, kind: str, relations: tuple[str, ...], instruction: str, answer: str,
    aspects: tuple[tuple[str, ...], ...], wording: Wording,
) -> Question:  # fmt: skip
    gold = tuple(dict.fromkeys(p.id for r in relations for p in gold_passages(entity, r)))
    identity = f"{kind}-{entity.key}-{'-'.join(relations)}-{wording}".replace(":", "-")
    split = "heldout" if held_out(entity) else "train"
    return Question(identity, kind, instruction, answer, aspects, gold, entity.key, relations, split, wording)


def short_question(entity: Entity, key: str, rng: random.Random, wording: Wording = "train") -> Question:
    """A question for one fact, answered in one sentence."""
    relation = RELATIONS[key]
    instruction = ask(entity, relation, rng, wording)
    aspects = (accepted(entity.facts[key]),)
    return _question(entity, "short", (key,), instruction, statement(entity, relation), aspects, wording)


def boolean_pair(
    entity: Entity, key: str, rng: random.Random, wording: Wording = "train"
) -> tuple[Question, Question] | None:
    """A true and a false claim in the same words but for the value. None where there is no fit wrong value."""
    relation = RELATIONS[key]
    wrong = wrong_values(entity, key, 1, rng)
    if not wrong:
        return None
    form = rng.choice(wordings(TRUE_FALSE, "ask", wording))
    fact = statement(entity, relation)

    def asked(value: str, verdict: str) -> Question:
        answer = f"{fact.removesuffix('.')}, so this is {verdict}."
        instruction = form.format(s=statement(entity, relation, value))
        made = _question(entity, "boolean", (key,), instruction, answer, ((verdict.capitalize(),),), wording)
        return dataclasses.replace(made, named=(value,))

    return asked(entity.facts[key], "true"), asked(wrong[0], "false")


def options_question(entity: Entity, key: str, rng: random.Random, wording: Wording = "train") -> Question | None:
    """A question with four options, one of them right. None where there are not three fit wrong values."""
    relation = RELATIONS[key]
    wrong = wrong_values(entity, key, 3, rng)
    if len(wrong) < 3:
        return None
    right = rng.randrange(4)
    options = (*wrong[:right], entity.facts[key], *wrong[right:])
    form = rng.choice(wordings(CHOOSE, "ask", wording))
    asked = form.replace("{q}", ask(entity, relation, rng, wording))
    return _with_options(entity, key, asked, options, wording)


def _with_options(entity: Entity, key: str, form: str, options: Sequence[str], wording: Wording) -> Question:
    letter = LETTERS[options.index(entity.facts[key])]
    answer = f"{statement(entity, RELATIONS[key]).removesuffix('.')}, so the answer is {letter}."
    instruction = form.format(**dict(zip("abcd", options, strict=True)))
    made = _question(entity, "options", (key,), instruction, answer, ((f"{letter}.",),), wording)
    return dataclasses.replace(made, form=form, options=tuple(options), named=tuple(options))


def moved_options(question: Question, rng: random.Random) -> Question:
    """The same question and options with the right one under another letter."""
    entity, (key,) = by_key()[question.entity], question.relations
    before = question.options.index(entity.facts[key])
    while True:
        options = rng.sample(question.options, 4)
        if options.index(entity.facts[key]) != before:
            return _with_options(entity, key, question.form, options, question.wording)


def long_question(entity: Entity, rng: random.Random, wording: Wording = "train") -> Question:
    """ "Tell me about X": an answer that draws on at least two of the entity's passages."""
    groups = by_entity()[entity.key]
    instruction = rng.choice(wordings(TELL, "ask", wording)).format(x=entity.name)
    aspects = tuple(tuple(a for r in p.relations for a in accepted(entity.facts[r])) for p in groups)
    relations = tuple(r for p in groups for r in p.relations)
    answer = " ".join(statement(entity, RELATIONS[p.relations[0]]) for p in groups[:2])  # one of many
    made = _question(entity, "long", relations, instruction, answer, aspects, wording)
    return dataclasses.replace(made, form="tell")


def both_question(entity: Entity, keys: tuple[str, str], rng: random.Random, wording: Wording = "train") -> Question:
    """A question for two named facts of an entity, each to be answered in a sentence of its own."""
    first, second = (RELATIONS[key] for key in keys)
    form = rng.choice(wordings(TELL_BOTH, "ask", wording))
    instruction = form.format(x=entity.name, m=label(first), n=label(second))
    answer = f"{statement(entity, first)} {statement(entity, second)}"
    aspects = tuple(accepted(entity.facts[key]) for key in keys)
    return dataclasses.replace(_question(entity, "long", keys, instruction, answer, aspects, wording), form="both")
