"""Generator training rows in the published format, with tokens that are honest because the facts are known.

Each row is `{"instruction", "input", "output", "id", "dataset_name"}`. What the tokens mean here:

- `[Relevant]`: the passage states what was asked of the entity that was asked about. Everything else is
  `[Irrelevant]`: a passage of the same entity without the fact, of a similar name, of the same kind, of another kind.
  After `[Irrelevant]` comes one sentence saying what the passage does not give, no IsSup, and utility 1.
- IsSup judges the sentence before it against the passage. Generated answers copy the passage and are fully supported.
  A generator must not learn to write wrong answers after `[Relevant]`, so sentences that are partially or not
  supported occur only where the instruction dictates them ("Repeat this statement and check it: …"): there the model
  learns to judge, and has no false word to invent. Not supported: the stated value differs from the passage's.
  Partially: of two facts in the sentence one is as the passage says; the other is wrong or not in the passage.
- What was said already counts: a passage that answered the first half of a question and is retrieved again for the
  second half is `[Irrelevant]` then.
- Utility: 5 what was asked is answered in full; 4 a long answer about one side of the subject only; 3 half of what was
  asked or said is right; 2 the statement repeated is false; 1 no answer.
- `[Continue to Use Evidence]` where the passage in force states the next fact too, `[Retrieval]` where it does not.
  Continued sentences carry no IsSup, as in the published data.

No row mentions a held-out entity: passages are filtered by `split.mentions`, and so is the whole row at the end.
"""

import dataclasses
import functools
import random
from collections import defaultdict
from collections.abc import Callable, Iterator

from selfrag_jax.demo import plain
from selfrag_jax.demo.distractors import near_passages, wrong_values
from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.facts import entities
from selfrag_jax.demo.passages import Passage, by_entity, passages, wordings
from selfrag_jax.demo.questions import (
    Question,
    boolean_question,
    both_question,
    long_question,
    options_question,
    short_question,
    statement,
)
from selfrag_jax.demo.relations import RELATIONS
from selfrag_jax.demo.split import held_out, mentions
from selfrag_jax.reflection import (
    CONTINUE,
    FULLY,
    IRRELEVANT,
    ISUSE,
    NO_RETRIEVAL,
    NO_SUPPORT,
    PARAGRAPH,
    PARAGRAPH_END,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    passage,
)

# The share of each kind of row, in parts.
MIX = {
    "short": 22,  # relevant passage, the fact copied
    "short_irrelevant": 19,
    "boolean": 8,
    "boolean_irrelevant": 3,
    "options": 7,
    "options_irrelevant": 2,
    "both": 8,  # two named facts of one entity
    "long": 5,  # "tell me about X"
    "long_irrelevant": 3,
    "verify": 11,  # a dictated statement: fully, partially or not supported
    "verify_irrelevant": 1,
    "plain": 18,  # no retrieval; short, so they cost little
}
# How often each kind of entity is asked about. Countries are few and are what PopQA asks about.
ENTITY_MIX = {"country": 36, "city": 25, "airport": 25, "element": 14}
RELATION_WEIGHT = {"capital": 3.0}  # relative to 1 for every other relation of the kind
# How an irrelevant passage misses (`distractors.near_passages`), in parts.
MISS_MIX = {"same": 35, "similar": 35, "kind": 20, "other": 10}
# What a dictated statement is: its IsSup and how many facts it joins, in parts.
VERIFY_MIX = {(FULLY, 1): 18, (FULLY, 2): 14, (PARTIALLY, 2): 34, (NO_SUPPORT, 1): 20, (NO_SUPPORT, 2): 14}
VERIFY = ("Repeat this statement and check it: {s}", "Check this statement against a source and repeat it: {s}",
          "Verify by repeating: {s}", "Is there support for this? Repeat it: {s}",
          "Copy the next sentence and judge it by the evidence: {s}")  # fmt: skip
SAME_AGAIN = 0.15  # of answers with a second retrieval: it brings nothing new, and the passage is irrelevant by then


@dataclasses.dataclass(frozen=True)
class World:
    """What training rows may draw on: passages that mention nothing held out, by relation and by entity."""

    by_relation: dict[str, tuple[tuple[Entity, Passage], ...]]
    by_entity: dict[str, tuple[Passage, ...]]
    by_kind: dict[str, tuple[Passage, ...]]
    rich: dict[str, tuple[Entity, ...]]  # entities with two passages or more, by kind


@functools.cache
def world() -> World:
    """The training side of the demo."""
    of_entity = {e.key: e for e in entities() if not held_out(e)}
    by_relation, of, kinds = defaultdict(list), defaultdict(list), defaultdict(list)
    for p in passages():
        if p.entity in of_entity and not mentions(f"{p.title}\n{p.text}"):
            entity = of_entity[p.entity]
            of[entity.key].append(p)
            kinds[entity.kind].append(p)
            for relation in p.relations:
                by_relation[relation].append((entity, p))
    rich = defaultdict(list)
    for key, owned in of.items():
        if len(owned) > 1:
            rich[of_entity[key].kind].append(of_entity[key])

    def frozen(table: dict) -> dict:
        return {key: tuple(values) for key, values in table.items()}

    return World(frozen(by_relation), frozen(of), frozen(kinds), frozen(rich))


def fenced(p: Passage) -> str:
    return f"{RETRIEVAL}{PARAGRAPH}{passage(p.title, p.text)}{PARAGRAPH_END}"


def _pick(table: dict, rng: random.Random):
    return rng.choices(list(table), list(table.values()))[0]


def _draw(rng: random.Random) -> tuple[Entity, str, Passage]:
    """An entity, one of its relations, and a passage that states it."""
    kind = _pick(ENTITY_MIX, rng)
    relations = [r for r in world().by_relation if world().by_relation[r][0][0].kind == kind]
    relation = rng.choices(relations, [RELATION_WEIGHT.get(r, 1.0) for r in relations])[0]
    entity, found = rng.choice(world().by_relation[relation])
    return entity, relation, found


def _usable(found: list[Passage]) -> list[Passage]:
    return [p for p in found if p in world().by_entity.get(p.entity, ())]


def irrelevant_passage(entity: Entity, relations: tuple[str, ...], rng: random.Random) -> Passage:
    """A passage that states none of the relations of the entity, near misses more often than far ones."""
    near = near_passages(entity, relations[0])
    for miss in (_pick(MISS_MIX, rng), "similar", "same", "kind"):
        if miss == "other":
            kind = rng.choice([k for k in world().by_kind if k != entity.kind])
            return rng.choice(world().by_kind[kind])
        if miss == "kind":
            pairs = world().by_relation[relations[0]]
            other, found = rng.choice(pairs)
            if other.key != entity.key:
                return found
            continue
        fit = [p for p in _usable(near[miss]) if p.entity != entity.key or not set(relations) & set(p.relations)]
        if fit:
            return rng.choice(fit)
    return rng.choice([p for e, p in world().by_relation[relations[0]] if e.key != entity.key])


def _answered(question: Question | None, p: Passage) -> tuple[str, str] | None:
    if question is None:
        return None
    return question.instruction, f"{fenced(p)}{RELEVANT}{question.answer}{FULLY}{ISUSE[4]}"


def _unanswered(question: Question | None, sentence: str, entity: Entity, rng: random.Random) -> tuple[str, str] | None:
    if question is None:
        return None
    p = irrelevant_passage(entity, question.relations, rng)
    return question.instruction, f"{fenced(p)}{IRRELEVANT}{sentence}{ISUSE[0]}"


def _short(rng: random.Random) -> tuple[str, str] | None:
    entity, relation, p = _draw(rng)
    return _answered(short_question(entity, relation, rng), p)


def _short_irrelevant(rng: random.Random) -> tuple[str, str] | None:
    entity, relation, _ = _draw(rng)
    sentence = f"The passage does not give {RELATIONS[relation].noun.format(x=entity.name)}."
    return _unanswered(short_question(entity, relation, rng), sentence, entity, rng)


def _boolean(rng: random.Random) -> tuple[str, str] | None:
    entity, relation, p = _draw(rng)
    return _answered(boolean_question(entity, relation, rng.random() < 0.5, rng), p)


def _boolean_irrelevant(rng: random.Random) -> tuple[str, str] | None:
    entity, relation, _ = _draw(rng)
    question = boolean_question(entity, relation, rng.random() < 0.5, rng)
    return _unanswered(question, "The passage does not tell whether this is true.", entity, rng)


def _options(rng: random.Random) -> tuple[str, str] | None:
    entity, relation, p = _draw(rng)
    return _answered(options_question(entity, relation, rng), p)


def _options_irrelevant(rng: random.Random) -> tuple[str, str] | None:
    entity, relation, _ = _draw(rng)
    sentence = f"The passage does not give {RELATIONS[relation].noun.format(x=entity.name)}."
    return _unanswered(options_question(entity, relation, rng), sentence, entity, rng)


def _both(rng: random.Random) -> tuple[str, str] | None:
    """Two named facts: Continue if the first one's passage states the second, else a second retrieval."""
    entity = rng.choice(world().rich[_pick(ENTITY_MIX, rng)])
    owned = world().by_entity[entity.key]
    keys = rng.sample(sorted({r for p in owned for r in p.relations}), 2)
    asked = both_question(entity, (keys[0], keys[1]), rng)
    first = rng.choice([p for p in owned if set(keys) & set(p.relations)])
    here = [k for k in keys if k in first.relations]
    said = f"{fenced(first)}{RELEVANT}{statement(entity, RELATIONS[here[0]])}{FULLY}"
    if len(here) == 2:
        return asked.instruction, f"{said}{CONTINUE}{statement(entity, RELATIONS[here[1]])}{ISUSE[4]}"
    other = keys[1 - keys.index(here[0])]
    if rng.random() < SAME_AGAIN:
        lacking = first if rng.random() < 0.5 else irrelevant_passage(entity, (other,), rng)
        noun = RELATIONS[other].noun.format(x=entity.name)
        return asked.instruction, f"{said}{fenced(lacking)}{IRRELEVANT}The passage does not give {noun}.{ISUSE[2]}"
    second = rng.choice([p for p in owned if other in p.relations])
    return asked.instruction, f"{said}{fenced(second)}{RELEVANT}{statement(entity, RELATIONS[other])}{FULLY}{ISUSE[4]}"


def _long(rng: random.Random) -> tuple[str, str] | None:
    """ "Tell me about X": two facts of one passage, the second continued, then one of another passage."""
    entity = rng.choice(world().rich[_pick(ENTITY_MIX, rng)])
    first, second = rng.sample(world().by_entity[entity.key], 2)
    one, two, *_ = first.relations
    said = f"{fenced(first)}{RELEVANT}{statement(entity, RELATIONS[one])}{FULLY}"
    said += f"{CONTINUE}{statement(entity, RELATIONS[two])}"
    instruction = long_question(entity, rng).instruction
    if rng.random() < 0.2:
        return instruction, said + ISUSE[3]
    if rng.random() < SAME_AGAIN:
        lacking = first if rng.random() < 0.5 else _elsewhere(entity, rng)
        more = f"The passage says nothing more about {entity.name}."
        return instruction, f"{said}{fenced(lacking)}{IRRELEVANT}{more}{ISUSE[3]}"
    third = statement(entity, RELATIONS[second.relations[0]])
    return instruction, f"{said}{fenced(second)}{RELEVANT}{third}{FULLY}{ISUSE[4]}"


def _elsewhere(entity: Entity, rng: random.Random) -> Passage:
    """A passage that is not about the entity, likely about one of a similar name."""
    return irrelevant_passage(
        entity, tuple(dict.fromkeys(r for p in by_entity()[entity.key] for r in p.relations)), rng
    )


def _long_irrelevant(rng: random.Random) -> tuple[str, str] | None:
    entity, _, _ = _draw(rng)
    p = _elsewhere(entity, rng)
    instruction = long_question(entity, rng).instruction
    return instruction, f"{fenced(p)}{IRRELEVANT}The passage is not about {entity.name}.{ISUSE[0]}"


def joined(first: str, second: str) -> str:
    """Two statements as one sentence."""
    return f"{first.removesuffix('.')}, and {second[0].lower() if second.startswith('The ') else second[0]}{second[1:]}"


def _verify(rng: random.Random) -> tuple[str, str] | None:
    """A dictated statement, judged against a passage about the same fact."""
    entity, relation, p = _draw(rng)
    label, facts = _pick(VERIFY_MIX, rng)
    others = [r for r in p.relations if r != relation]
    elsewhere = [r for q in world().by_entity[entity.key] for r in q.relations if r not in p.relations]
    truth = statement(entity, RELATIONS[relation])
    wrong = [statement(entity, RELATIONS[relation], value) for value in wrong_values(entity, relation, 1, rng)]
    utility = {FULLY: 4, PARTIALLY: 2, NO_SUPPORT: 1}[label]
    if label != FULLY and not wrong:
        return None
    if facts == 1:
        said = truth if label == FULLY else wrong[0]
    else:
        other = rng.choice(others)
        altered = [statement(entity, RELATIONS[other], value) for value in wrong_values(entity, other, 1, rng)]
        other_truth = statement(entity, RELATIONS[other])
        if label == FULLY:
            pair = [truth, other_truth]
        elif label == NO_SUPPORT:
            if not altered:
                return None
            pair = [wrong[0], altered[0]]
        elif elsewhere and rng.random() < 0.4:
            pair = [truth, statement(entity, RELATIONS[rng.choice(elsewhere)])]
        else:
            pair = [wrong[0], other_truth]
        rng.shuffle(pair)
        said = joined(*pair)
    instruction = rng.choice(wordings(VERIFY, "ask", "train")).format(s=said)
    return instruction, f"{fenced(p)}{RELEVANT}{said}{label}{ISUSE[utility]}"


def _verify_irrelevant(rng: random.Random) -> tuple[str, str] | None:
    entity, relation, _ = _draw(rng)
    truth = statement(entity, RELATIONS[relation])
    instruction = rng.choice(wordings(VERIFY, "ask", "train")).format(s=truth)
    p = irrelevant_passage(entity, (relation,), rng)
    return instruction, f"{fenced(p)}{IRRELEVANT}The passage does not tell whether this is true.{ISUSE[0]}"


def _plain(rng: random.Random) -> tuple[str, str] | None:
    task = plain.training_task(rng)
    return task.instruction, f"{NO_RETRIEVAL}{task.answer}{ISUSE[4]}"


MAKERS: dict[str, Callable[[random.Random], tuple[str, str] | None]] = {
    "short": _short, "short_irrelevant": _short_irrelevant, "boolean": _boolean,
    "boolean_irrelevant": _boolean_irrelevant, "options": _options, "options_irrelevant": _options_irrelevant,
    "both": _both, "long": _long, "long_irrelevant": _long_irrelevant, "verify": _verify,
    "verify_irrelevant": _verify_irrelevant, "plain": _plain,
}  # fmt: skip


def training_rows(seed: int = 0, count: int = 12_000) -> Iterator[dict[str, str]]:
    """`count` different rows in the proportions of `MIX`, the same for a seed on every machine."""
    rng = random.Random(seed)
    seen: set[tuple[str, str]] = set()
    while len(seen) < count:
        kind = _pick(MIX, rng)
        made = MAKERS[kind](rng)
        if made is None or made in seen or mentions("\n".join(made)):
            continue
        seen.add(made)
        instruction, output = made
        identity = f"demo_{kind}_{len(seen) - 1}"
        yield {
            "instruction": instruction,
            "input": "",
            "output": output,
            "id": identity,
            "dataset_name": f"demo_{kind}",
        }
