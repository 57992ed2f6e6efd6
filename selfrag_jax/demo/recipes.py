"""The recipes of the demo's trainings: how often each kind of row is drawn, how passages miss, what follows a row."""

import dataclasses
from collections.abc import Mapping

from selfrag_jax.demo import practice
from selfrag_jax.demo.passages import Wording
from selfrag_jax.demo.world import MISS_MIX

# The share of each kind of row, in parts, twins and contrasts not counted.
MIX = {
    "short": 22,  # one fact, copied from a relevant passage
    "boolean": 12,
    "options": 12,
    "both": 8,  # two named facts of one entity
    "long": 5,  # "tell me about X"
    "verify": 16,  # a dictated statement: fully, partially or not supported
    "note": 14,  # what a note says: the moves of closed questions, without a passage
    "plain": 34,  # no retrieval; short, so they cost little
}
# The same for a second training, which is about what the first leaves weak: labels that turn on one fact, and plain
# instructions. The rest is there so as not to be forgotten.
HARD_MIX = {
    "short": 14, "boolean": 16, "options": 12, "both": 5, "long": 6, "verify": 26, "note": 4, "practice": 36,
}  # fmt: skip
# And for a third: passages as sheets with fields that nothing asks for, and more of the practice.
FIELDS_MIX = {
    "short": 24, "boolean": 14, "options": 10, "both": 5, "long": 7, "verify": 14, "note": 2, "practice": 100,
}  # fmt: skip
# And for a fourth: everything once more, asked in many more wordings.
WORDINGS_MIX = {
    "short": 34, "boolean": 18, "options": 16, "both": 6, "long": 8, "verify": 22, "note": 2, "practice": 120,
}  # fmt: skip
# And for a fifth and a sixth: plain instructions in still more wordings, the rest so as not to be forgotten.
PLAIN_MIX = {
    "short": 40, "boolean": 13, "options": 12, "both": 5, "long": 8, "verify": 20, "note": 2, "practice": 150,
}  # fmt: skip
# And for an eighth: questions in still more wordings, above all for the facts that were still missed in unseen ones.
FACTS_MIX = {
    "short": 90, "boolean": 18, "options": 18, "both": 10, "long": 8, "verify": 20, "note": 2, "practice": 80,
}  # fmt: skip
# And for a ninth: claims, and questions for more than one fact, in still more wordings.
CLAIMS_MIX = {
    "short": 50, "boolean": 60, "options": 20, "both": 26, "long": 14, "verify": 22, "note": 2, "practice": 80,
}  # fmt: skip
ASKED_MORE = {
    "currency_code": 6.0, "symbol": 4.0, "nearest_airport": 4.0, "period": 3.0, "city_currency": 3.0, "group": 2.0,
    "block": 2.0, "iata": 2.0, "icao": 2.0, "airport_city": 1.5, "demonym": 1.5, "region": 1.5,
}  # fmt: skip
HARD_MISSES = {"value": 50, "same": 25, "similar": 12, "kind": 10, "other": 3}  # as `world.MISS_MIX`
FIELDS_MISSES = {"value": 25, "same": 40, "similar": 17, "kind": 13, "other": 5}
# How often a row without a contrast is followed by its twin: the same question, a passage that misses, `[Irrelevant]`.
# Within a pair only the passages differ, so that IsRel can be learnt from nothing else: with relevant and irrelevant
# rows drawn apart it stood at chance after 150 steps.
TWINS = {"short": 1.0, "boolean": 0.2, "options": 0.3, "long": 0.5, "verify": 0.8}
# How often a row is followed by its contrast: the same passage and form, another verdict. Of a claim one value is
# changed; options change places.
CONTRASTS = {"boolean": 0.75, "options": 0.6, "verify": 0.9}
HARD_TWINS = TWINS | {"boolean": 1.0, "options": 1.0}  # closed questions too: an index finds what states their values
HARD_CONTRASTS = CONTRASTS | {"boolean": 0.5, "options": 0.4}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The proportions that rows are drawn in."""

    mix: Mapping[str, float] = dataclasses.field(default_factory=lambda: MIX)
    misses: Mapping[str, float] = dataclasses.field(default_factory=lambda: MISS_MIX)
    twins: Mapping[str, float] = dataclasses.field(default_factory=lambda: TWINS)
    contrasts: Mapping[str, float] = dataclasses.field(default_factory=lambda: CONTRASTS)
    sheets: float = 0.0  # how often a passage is shown as a fact sheet
    unasked: int = 0  # up to how many fields that nothing asks for such a sheet has
    emphasis: Mapping[str, float] = dataclasses.field(default_factory=dict)  # plain kinds practised more, by how much
    relations: Mapping[str, float] = dataclasses.field(default_factory=dict)  # short questions asked more, by how much
    asked: Wording = "train"  # with its paraphrases: these ask as often as the others, now and then in a frame


_LATER = Recipe(FIELDS_MIX, FIELDS_MISSES, HARD_TWINS, HARD_CONTRASTS, sheets=0.5, unasked=4)
# Those of the training rows, by the name that `config.data.rows` gives.
RECIPES = {
    "demo": Recipe(),
    "demo_hard": Recipe(HARD_MIX, HARD_MISSES, HARD_TWINS, HARD_CONTRASTS, sheets=0.35),
    "demo_fields": dataclasses.replace(_LATER, emphasis=practice.STUBBORN),
    "demo_wordings": dataclasses.replace(_LATER, mix=WORDINGS_MIX, sheets=0.3, asked="varied"),
    "demo_plain": dataclasses.replace(_LATER, mix=PLAIN_MIX, asked="varied_more"),
    "demo_weak": dataclasses.replace(_LATER, mix=PLAIN_MIX, asked="varied_most", emphasis=practice.WEAK),
    "demo_last": dataclasses.replace(_LATER, mix=PLAIN_MIX, asked="varied_last", emphasis=practice.LAST),
    "demo_facts": dataclasses.replace(
        _LATER, mix=FACTS_MIX, relations=ASKED_MORE, asked="varied_facts", emphasis=practice.LAST
    ),
    "demo_claims": dataclasses.replace(_LATER, mix=CLAIMS_MIX, asked="varied_claims", emphasis=practice.LAST),
}
SEEDS = {name: seed for seed, name in enumerate(RECIPES)}  # of the rows of each training, as its config says
