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
  asked or said is answered or supported; 2 the statement repeated is false; 1 no answer.
- `[Continue to Use Evidence]` where the passage in force states the next fact too, `[Retrieval]` where it does not.
  Continued sentences carry no IsSup, as in the published data.

No row mentions a held-out entity: passages are filtered by `split.mentions`, and so is the whole row at the end.
"""

import random
from collections.abc import Iterator, Mapping

from selfrag_jax.demo import plain
from selfrag_jax.demo.distractors import wrong_values
from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.passages import Passage, Wording, wordings
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
from selfrag_jax.demo.split import mentions
from selfrag_jax.demo.world import pick, world
from selfrag_jax.errors import UserError
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

# The share of each kind of row, in parts, twins not counted.
MIX = {
    "short": 30,  # one fact, copied from a relevant passage
    "boolean": 9,
    "options": 7,
    "both": 8,  # two named facts of one entity
    "long": 6,  # "tell me about X"
    "verify": 12,  # a dictated statement: fully, partially or not supported
    "plain": 18,  # no retrieval; short, so they cost little
}
# How often a row is followed by its twin: the same question, a passage that misses, `[Irrelevant]`. Within a pair only
# the passages differ, so that IsRel can be learnt from nothing else: with relevant and irrelevant rows drawn apart it
# stood at chance after 150 steps.
TWINS = {"short": 1.0, "boolean": 0.6, "options": 0.6, "long": 0.5, "verify": 0.2}
# What a dictated statement is: its IsSup and how many facts it joins, in parts.
VERIFY_MIX = {(FULLY, 1): 18, (FULLY, 2): 14, (PARTIALLY, 2): 34, (NO_SUPPORT, 1): 20, (NO_SUPPORT, 2): 14}
VERIFY = ("Repeat this statement and check it: {s}", "Check this statement against a source and repeat it: {s}",
          "Verify by repeating: {s}", "Is there support for this? Repeat it: {s}",
          "Copy the next sentence and judge it by the evidence: {s}")  # fmt: skip
SAME_AGAIN = 0.15  # of answers with a second retrieval: it brings nothing new, and the passage is irrelevant by then
ONE_SIDED = 0.2  # of long answers: they stop after the first passage


def fenced(p: Passage) -> str:
    """A retrieved passage as it stands in an output."""
    return f"{RETRIEVAL}{PARAGRAPH}{passage(p.title, p.text)}{PARAGRAPH_END}"


def joined(first: str, second: str) -> str:
    """Two statements as one sentence."""
    if second.startswith(("The ", "A ", "In ", "People ")):
        second = second[0].lower() + second[1:]
    return f"{first.removesuffix('.')}, and {second}"


Made = list[tuple[str, str]]  # instruction and output of a row and perhaps its twin; none where a draw has nothing fit


UNTOLD = "The passage does not tell whether this is true."


def _not_given(entity: Entity, relation: str) -> str:
    return f"The passage does not give {RELATIONS[relation].noun.format(x=entity.name)}."


class RowMaker:
    """Draws rows of one side of the split in one wording; a method for each kind of row, named as in `MIX`."""

    def __init__(self, rng: random.Random, side: str, wording: Wording):
        self.rng, self.side, self.wording = rng, side, wording
        self.world = world(side, wording)

    def _row_and_twin(
        self, kind: str, instruction: str, output: str, entity: Entity, relations: tuple[str, ...], lack: str
    ) -> Made:
        """A row and, as often as `TWINS` says, the same question with a passage that misses; `lack` says what of."""
        if self.rng.random() >= TWINS[kind]:
            return [(instruction, output)]
        missing = self.world.irrelevant(entity, relations, self.rng)
        return [(instruction, output), (instruction, f"{fenced(missing)}{IRRELEVANT}{lack}{ISUSE[0]}")]

    def _question(self, kind: str, question: Question | None, entity: Entity, p: Passage, lack: str) -> Made:
        if question is None:
            return []
        output = f"{fenced(p)}{RELEVANT}{question.answer}{FULLY}{ISUSE[4]}"
        return self._row_and_twin(kind, question.instruction, output, entity, question.relations, lack)

    def short(self) -> Made:
        entity, relation, p = self.world.draw(self.rng)
        question = short_question(entity, relation, self.rng, self.wording)
        return self._question("short", question, entity, p, _not_given(entity, relation))

    def boolean(self) -> Made:
        entity, relation, p = self.world.draw(self.rng)
        question = boolean_question(entity, relation, self.rng.random() < 0.5, self.rng, self.wording)
        return self._question("boolean", question, entity, p, UNTOLD)

    def options(self) -> Made:
        entity, relation, p = self.world.draw(self.rng)
        question = options_question(entity, relation, self.rng, self.wording)
        return self._question("options", question, entity, p, _not_given(entity, relation))

    def both(self) -> Made:
        """Two named facts: Continue if the first one's passage states the second, else a second retrieval."""
        entity = self.world.draw_rich(self.rng)
        owned = self.world.by_entity[entity.key]
        keys = self.rng.sample(sorted({r for p in owned for r in p.relations}), 2)
        asked = both_question(entity, (keys[0], keys[1]), self.rng, self.wording)
        first = self.rng.choice([p for p in owned if set(keys) & set(p.relations)])
        here = [k for k in keys if k in first.relations]
        said = f"{fenced(first)}{RELEVANT}{statement(entity, RELATIONS[here[0]])}{FULLY}"
        if len(here) == 2:
            return [(asked.instruction, f"{said}{CONTINUE}{statement(entity, RELATIONS[here[1]])}{ISUSE[4]}")]
        other = keys[1 - keys.index(here[0])]
        if self.rng.random() < SAME_AGAIN:
            lacking = first if self.rng.random() < 0.5 else self.world.irrelevant(entity, (other,), self.rng)
            return [(asked.instruction, f"{said}{fenced(lacking)}{IRRELEVANT}{_not_given(entity, other)}{ISUSE[2]}")]
        second = self.rng.choice([p for p in owned if other in p.relations])
        more = f"{fenced(second)}{RELEVANT}{statement(entity, RELATIONS[other])}{FULLY}{ISUSE[4]}"
        return [(asked.instruction, said + more)]

    def long(self) -> Made:
        """ "Tell me about X": two facts of one passage, the second continued, then one of another passage."""
        entity = self.world.draw_rich(self.rng)
        first, second = self.rng.sample(self.world.by_entity[entity.key], 2)
        one, two, *_ = first.relations
        said = f"{fenced(first)}{RELEVANT}{statement(entity, RELATIONS[one])}{FULLY}"
        said += f"{CONTINUE}{statement(entity, RELATIONS[two])}"
        if self.rng.random() < ONE_SIDED:
            return self._long_row(entity, said + ISUSE[3])
        if self.rng.random() < SAME_AGAIN:
            used_up = len(first.relations) == 2 and self.rng.random() < 0.5
            lacking = first if used_up else self.world.about_another(entity, self.rng)
            more = f"The passage says nothing more about {entity.name}."
            return self._long_row(entity, f"{said}{fenced(lacking)}{IRRELEVANT}{more}{ISUSE[3]}")
        third = statement(entity, RELATIONS[second.relations[0]])
        return self._long_row(entity, f"{said}{fenced(second)}{RELEVANT}{third}{FULLY}{ISUSE[4]}")

    def _long_row(self, entity: Entity, output: str) -> Made:
        instruction = long_question(entity, self.rng, self.wording).instruction
        if self.rng.random() >= TWINS["long"]:
            return [(instruction, output)]
        p = self.world.about_another(entity, self.rng)
        lack = f"The passage is not about {entity.name}."
        return [(instruction, output), (instruction, f"{fenced(p)}{IRRELEVANT}{lack}{ISUSE[0]}")]

    def verify(self) -> Made:
        """A dictated statement, judged against a passage about the same fact."""
        entity, relation, p = self.world.draw(self.rng)
        label, facts = pick(VERIFY_MIX, self.rng)
        told: tuple[str, ...] = (relation,)
        others = [r for r in p.relations if r != relation]
        elsewhere = [r for q in self.world.by_entity[entity.key] for r in q.relations if r not in p.relations]
        truth = statement(entity, RELATIONS[relation])
        wrong = [statement(entity, RELATIONS[relation], value) for value in wrong_values(entity, relation, 1, self.rng)]
        utility = {FULLY: 4, PARTIALLY: 2, NO_SUPPORT: 1}[label]
        if label != FULLY and not wrong:
            return []
        if facts == 1:
            said = truth if label == FULLY else wrong[0]
        else:
            other = self.rng.choice(others)
            told = (relation, other)
            altered = [statement(entity, RELATIONS[other], value) for value in wrong_values(entity, other, 1, self.rng)]
            other_truth = statement(entity, RELATIONS[other])
            if label == FULLY:
                pair = [truth, other_truth]
            elif label == NO_SUPPORT:
                if not altered:
                    return []
                pair = [wrong[0], altered[0]]
            elif elsewhere and self.rng.random() < 0.4:
                told = (relation, self.rng.choice(elsewhere))
                pair = [statement(entity, RELATIONS[key]) for key in told]
            else:
                pair = [wrong[0], other_truth]
            self.rng.shuffle(pair)
            said = joined(*pair)
        instruction = self.rng.choice(wordings(VERIFY, "ask", self.wording)).format(s=said)
        output = f"{fenced(p)}{RELEVANT}{said}{label}{ISUSE[utility]}"
        return self._row_and_twin("verify", instruction, output, entity, told, UNTOLD)

    def plain(self) -> Made:
        task = plain.random_task(self.rng, self.side, self.wording)
        return [(task.instruction, f"{NO_RETRIEVAL}{task.answer}{ISUSE[4]}")]


def labelled_rows(
    side: str, seed: int, count: int, wording: Wording = "train", mix: Mapping[str, float] | None = None
) -> Iterator[dict[str, str]]:
    """`count` different rows about one side of the split, in the proportions of `mix` (`MIX`), fixed by the seed.

    A row's twin follows it; both have one instruction.

    The side "heldout" gives rows to measure on: the same labels, for entities and, with the wording "heldout", for
    wordings and passages that no training row has. Raises UserError for training rows in held-out wordings.
    """
    if side == "train" and wording != "train":
        raise UserError("training rows have no held-out wordings; leave --wording out, or set --side=heldout")
    rng = random.Random(seed)
    maker = RowMaker(rng, side, wording)
    seen: set[tuple[str, str]] = set()
    while len(seen) < count:
        kind = pick(mix or MIX, rng)
        made = getattr(maker, kind)()
        if seen & set(made) or (side == "train" and any(mentions("\n".join(row)) for row in made)):
            continue
        for name, (instruction, output) in zip((f"demo_{kind}", f"demo_{kind}_irrelevant"), made, strict=False):
            if len(seen) == count:
                break
            identity = f"{name}_{len(seen)}"
            seen.add((instruction, output))
            yield {"id": identity, "dataset_name": name, "instruction": instruction, "input": "", "output": output}


def training_rows(seed: int = 0, count: int = 12_000) -> Iterator[dict[str, str]]:
    """`count` different training rows, the same for a seed on every machine."""
    return labelled_rows("train", seed, count)
