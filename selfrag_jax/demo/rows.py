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
  Continued sentences carry an IsSup of their own, unlike those of the published data: a sentence is cited only where
  the model has judged it, and the decoder reads the token if there is one.
- Closed questions are answered by the fact first and the verdict after it ("…, so this is false."): with the verdict
  first it had to be guessed before anything was copied, and the position of an option decided.

No row mentions a held-out entity: passages are filtered by `split.mentions`, and so is the whole row at the end.
"""

import dataclasses
import random
from collections.abc import Iterator

from selfrag_jax.demo import plain, practice
from selfrag_jax.demo.distractors import wrong_values
from selfrag_jax.demo.entity import Entity
from selfrag_jax.demo.notes import same, which
from selfrag_jax.demo.paraphrases import FRAMED, FRAMES
from selfrag_jax.demo.passages import WORDINGS, Passage, Wording, wordings
from selfrag_jax.demo.questions import (
    Question,
    boolean_pair,
    both_question,
    long_question,
    moved_options,
    options_question,
    short_question,
    statement,
)
from selfrag_jax.demo.recipes import RECIPES, Recipe
from selfrag_jax.demo.relations import RELATIONS
from selfrag_jax.demo.sheets import VARIANTS, sheet
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

ROWS = 16_000  # about what the committed adapter reads once
# What a dictated statement and its contrast are, in parts: how many facts each joins, and their IsSup.
VERIFY_MIX = {(1, FULLY, NO_SUPPORT): 36, (2, FULLY, PARTIALLY): 36, (2, PARTIALLY, NO_SUPPORT): 28}
VERIFIED_UTILITY = {FULLY: 4, PARTIALLY: 2, NO_SUPPORT: 1}  # index into ISUSE
VERIFY = ("Repeat this statement and check it: {s}", "Check this statement against a source and repeat it: {s}",
          "Verify by repeating: {s}", "Is there support for this? Repeat it: {s}",
          "Copy the next sentence and judge it by the evidence: {s}")  # fmt: skip
PRACTISED = 4  # plain instructions of one kind in a draw of practice
SAME_AGAIN = 0.15  # of answers with a second retrieval: it brings nothing new, and the passage is irrelevant by then
ONE_SIDED = 0.2  # of long answers: they stop after the first passage


def fenced(p: Passage) -> str:
    """A retrieved passage as it stands in an output."""
    return f"{RETRIEVAL}{PARAGRAPH}{passage(p.title, p.text)}{PARAGRAPH_END}"


def joined(first: str, second: str = "") -> str:
    """One or two statements as one sentence."""
    if not second:
        return first
    if second.startswith(("The ", "A ", "In ", "People ")):
        second = second[0].lower() + second[1:]
    return f"{first.removesuffix('.')}, and {second}"


@dataclasses.dataclass(frozen=True)
class Made:
    """One row before it has a number; `variant` tells what follows a row ("irrelevant", "contrast", "more") from it."""

    instruction: str
    output: str
    variant: str = ""


Drawn = list[Made]  # a row and what belongs to it; empty where a draw has nothing fit

UNTOLD = "The passage does not settle this."


def _not_given(entity: Entity, relation: str) -> str:
    return f"The passage does not give {RELATIONS[relation].noun.format(x=entity.name)}."


def _unaided(task: plain.PlainTask) -> Made:
    return Made(task.instruction, f"{NO_RETRIEVAL}{task.answer}{ISUSE[4]}")


class RowMaker:
    """Draws rows of one side of the split in one wording; a method for each kind of row, named as in `recipes.MIX`."""

    def __init__(self, rng: random.Random, side: str, wording: Wording, recipe: Recipe):
        self.rng, self.side, self.wording, self.recipe = rng, side, wording, recipe
        self.asked: Wording = recipe.asked if wording == "train" else wording
        self.world = world(side, wording)
        self._practised: set[str] = set()
        self._shown: dict[str, Passage] = {}  # how passages look in the rows of the draw that is under way

    def draw(self, kind: str) -> Drawn:
        """One draw of a kind."""
        self._shown.clear()
        made: Drawn = getattr(self, kind)()
        if self.asked in WORDINGS:
            return made
        # A row and its twin or contrast are asked alike; instructions that are practised are each for itself.
        frames = [self._frame() for _ in made] if kind == "practice" else [self._frame()] * len(made)
        return [
            dataclasses.replace(row, instruction=frame.format(q=row.instruction))
            for row, frame in zip(made, frames, strict=True)
        ]

    def _frame(self) -> str:
        return self.rng.choice(FRAMES) if self.rng.random() < FRAMED else "{q}"

    def _fenced(self, p: Passage) -> str:
        """A passage as it is shown: as it stands, or as often as the recipe says as a sheet; alike in all rows of a
        draw."""
        if self.recipe.sheets and p.id not in self._shown:
            drawn = self.rng.random() < self.recipe.sheets
            self._shown[p.id] = sheet(p, self.rng.randrange(VARIANTS), self.recipe.unasked) if drawn else p
        return fenced(self._shown.get(p.id, p))

    def _answered(self, question: Question, p: Passage) -> Made:
        return Made(question.instruction, f"{self._fenced(p)}{RELEVANT}{question.answer}{FULLY}{ISUSE[4]}")

    def _with_twin(
        self,
        kind: str,
        row: Made,
        entity: Entity,
        relations: tuple[str, ...],
        lack: str,
        named: tuple[str, ...] = (),
    ) -> Drawn:
        """A row and, as often as the recipe says, the same question with a passage that misses; `lack` says what of."""
        if self.rng.random() >= self.recipe.twins[kind]:
            return [row]
        missing = self.world.irrelevant(entity, relations, self.rng, self.recipe.misses, named)
        return [row, Made(row.instruction, f"{self._fenced(missing)}{IRRELEVANT}{lack}{ISUSE[0]}", "irrelevant")]

    def short(self) -> Drawn:
        entity, relation, p = self.world.draw(self.rng, self.recipe.relations)
        question = short_question(entity, relation, self.rng, self.asked)
        return self._with_twin("short", self._answered(question, p), entity, (relation,), _not_given(entity, relation))

    def boolean(self) -> Drawn:
        """A claim, and often its contrast: the same words with another value, so that one of the two is true."""
        entity, relation, p = self.world.draw(self.rng)
        pair = boolean_pair(entity, relation, self.rng, self.asked)
        if pair is None:
            return []
        asked = self.rng.sample(pair, 2)
        one, other = (self._answered(question, p) for question in asked)
        if self.rng.random() < self.recipe.contrasts["boolean"]:
            return [one, dataclasses.replace(other, variant="contrast")]
        return self._with_twin("boolean", one, entity, (relation,), UNTOLD, asked[0].named)

    def options(self) -> Drawn:
        entity, relation, p = self.world.draw(self.rng)
        question = options_question(entity, relation, self.rng, self.asked)
        if question is None:
            return []
        row = self._answered(question, p)
        if self.rng.random() < self.recipe.contrasts["options"]:
            moved = moved_options(question, self.rng)
            return [row, dataclasses.replace(self._answered(moved, p), variant="contrast")]
        lack = _not_given(entity, relation)
        return self._with_twin("options", row, entity, (relation,), lack, question.named)

    def both(self) -> Drawn:
        """Two named facts: Continue if the first one's passage states the second, else a second retrieval."""
        entity = self.world.draw_rich(self.rng)
        owned = self.world.by_entity[entity.key]
        keys = self.rng.sample(sorted({r for p in owned for r in p.relations}), 2)
        asked = both_question(entity, (keys[0], keys[1]), self.rng, self.asked)
        first = self.rng.choice([p for p in owned if set(keys) & set(p.relations)])
        here = [k for k in keys if k in first.relations]
        said = f"{self._fenced(first)}{RELEVANT}{statement(entity, RELATIONS[here[0]])}{FULLY}"
        if len(here) == 2:
            more = f"{CONTINUE}{statement(entity, RELATIONS[here[1]])}{FULLY}{ISUSE[4]}"
            return [Made(asked.instruction, said + more)]
        other = keys[1 - keys.index(here[0])]
        if self.rng.random() < SAME_AGAIN:
            lacking = first if self.rng.random() < 0.5 else self.world.irrelevant(entity, (other,), self.rng)
            more = f"{self._fenced(lacking)}{IRRELEVANT}{_not_given(entity, other)}{ISUSE[2]}"
            return [Made(asked.instruction, said + more)]
        second = self.rng.choice([p for p in owned if other in p.relations])
        more = f"{self._fenced(second)}{RELEVANT}{statement(entity, RELATIONS[other])}{FULLY}{ISUSE[4]}"
        return [Made(asked.instruction, said + more)]

    def long(self) -> Drawn:
        """ "Tell me about X": two facts of one passage, the second continued, then one of another passage."""
        entity = self.world.draw_rich(self.rng)
        first, second = self.rng.sample(self.world.by_entity[entity.key], 2)
        one, two, *_ = first.relations
        said = f"{self._fenced(first)}{RELEVANT}{statement(entity, RELATIONS[one])}{FULLY}"
        said += f"{CONTINUE}{statement(entity, RELATIONS[two])}{FULLY}"
        if self.rng.random() < ONE_SIDED:
            return self._long_row(entity, said + ISUSE[3])
        if self.rng.random() < SAME_AGAIN:
            used_up = len(first.relations) == 2 and self.rng.random() < 0.5
            lacking = first if used_up else self.world.about_another(entity, self.rng)
            more = f"The passage says nothing more about {entity.name}."
            return self._long_row(entity, f"{said}{self._fenced(lacking)}{IRRELEVANT}{more}{ISUSE[3]}")
        third = statement(entity, RELATIONS[second.relations[0]])
        return self._long_row(entity, f"{said}{self._fenced(second)}{RELEVANT}{third}{FULLY}{ISUSE[4]}")

    def _long_row(self, entity: Entity, output: str) -> Drawn:
        row = Made(long_question(entity, self.rng, self.asked).instruction, output)
        if self.rng.random() >= self.recipe.twins["long"]:
            return [row]
        p = self.world.about_another(entity, self.rng)
        lack = f"The passage is not about {entity.name}."
        return [row, Made(row.instruction, f"{self._fenced(p)}{IRRELEVANT}{lack}{ISUSE[0]}", "irrelevant")]

    def verify(self) -> Drawn:
        """A dictated statement, judged against a passage on it, and its contrast: one value of it changed."""
        entity, relation, p = self.world.draw(self.rng)
        facts, *labels = pick(VERIFY_MIX, self.rng)
        told = (relation, *self.rng.sample([r for r in p.relations if r != relation], facts - 1))
        truth = {key: statement(entity, RELATIONS[key]) for key in told}
        wrong = {
            key: statement(entity, RELATIONS[key], value)
            for key in told
            for value in wrong_values(entity, key, 1, self.rng)
        }
        form = self.rng.choice(wordings(VERIFY, "ask", self.asked))
        order = self.rng.sample(told, facts)
        rows: Drawn = []
        for label in self.rng.sample(labels, 2):
            false = told[: {FULLY: 0, PARTIALLY: 1, NO_SUPPORT: facts}[label]]
            if not set(false) <= set(wrong):
                return []
            said = joined(*((wrong if key in false else truth)[key] for key in order))
            output = f"{self._fenced(p)}{RELEVANT}{said}{label}{ISUSE[VERIFIED_UTILITY[label]]}"
            rows.append(Made(form.format(s=said), output, "contrast" if rows else ""))
        if self.rng.random() < self.recipe.contrasts["verify"]:
            return rows
        return self._with_twin("verify", rows[0], entity, told, UNTOLD)

    def note(self) -> Drawn:
        entity, relation, _ = self.world.draw(self.rng)
        values = (entity.facts[relation], *wrong_values(entity, relation, 3, self.rng))
        if len(values) < 4:
            return []
        made = (
            same(values, self.rng, self.wording) if self.rng.random() < 0.5 else which(values, self.rng, self.wording)
        )
        outputs = ((asked, f"{NO_RETRIEVAL}{answer}{ISUSE[4]}") for asked, answer in made)
        return [Made(asked, output, "contrast" if n else "") for n, (asked, output) in enumerate(outputs)]

    def plain(self) -> Drawn:
        return [_unaided(plain.random_task(self.rng, self.side, self.wording))]

    def practice(self) -> Drawn:
        """Up to four plain instructions of one kind, packed together; those that were given before are left out."""
        tasks = practice.random_practice(self.rng, PRACTISED, self.recipe.emphasis, self.asked)
        fresh = [task for task in tasks if task.instruction not in self._practised]
        self._practised |= {task.instruction for task in fresh}
        return [dataclasses.replace(_unaided(task), variant="more" if n else "") for n, task in enumerate(fresh)]


def labelled_rows(
    side: str, seed: int, count: int, wording: Wording = "train", recipe: Recipe = RECIPES["demo"]
) -> Iterator[dict[str, str]]:
    """`count` different rows about one side of the split, in the proportions of a recipe, fixed by the seed.

    A row's twin or contrast follows it. The rows of one draw have one id before its "#" and are packed together.

    The side "heldout" gives rows to measure on: the same labels, for entities and, with the wording "heldout", for
    wordings and passages that no training row has. Raises UserError for training rows in held-out wordings.
    """
    if side == "train" and wording != "train":
        raise UserError("training rows have no held-out wordings; leave --wording out, or set --side=heldout")
    rng = random.Random(seed)
    maker = RowMaker(rng, side, wording, recipe)
    seen: set[tuple[str, str]] = set()
    while len(seen) < count:
        kind = pick(recipe.mix, rng)
        made = maker.draw(kind)
        texts = {(row.instruction, row.output) for row in made}
        if seen & texts or (side == "train" and any(mentions("\n".join(text)) for text in texts)):
            continue
        draw = f"demo_{kind}_{len(seen)}"
        for place, row in enumerate(made[: count - len(seen)]):
            seen.add((row.instruction, row.output))
            yield {
                "id": f"{draw}#{place}", "dataset_name": "_".join(filter(None, ("demo", kind, row.variant))),
                "instruction": row.instruction, "input": "", "output": row.output,
            }  # fmt: skip


def training_rows(seed: int = 0, count: int = ROWS, recipe: str = "demo") -> Iterator[dict[str, str]]:
    """`count` different training rows of one of `RECIPES`, the same for a seed on every machine."""
    return labelled_rows("train", seed, count, recipe=RECIPES[recipe])
