"""Labels of every training row, worked out again from its finished text by `reader`."""

import re
from collections import Counter

import pytest

from selfrag_jax.demo.facts import by_key
from selfrag_jax.demo.passages import WORDINGS, passages
from selfrag_jax.demo.relations import RELATIONS
from selfrag_jax.demo.rows import labelled_rows
from selfrag_jax.demo.sheets import VARIANTS, sheet
from tests.demo.reader import asked, states

LABEL = {0: "[No support / Contradictory]", 1: "[Partially supported]", 2: "[Fully supported]"}
FIRST = re.compile(
    r"\[Retrieval\]<paragraph>(?P<title>[^\n]+)\n(?P<text>[^\n]+)</paragraph>\[(?P<rel>\w+)\](?P<said>[^\[]+)(?P<sup>\[[^\]]+\])"
)


@pytest.mark.parametrize("wording", WORDINGS)
def test_passages_state_what_they_are_said_to_state(wording):
    for passage in passages(wording)[::7]:
        entity = by_key()[passage.entity]
        told = {key for key in entity.facts if key in RELATIONS and states(passage.text, entity, RELATIONS[key])}
        assert told == set(passage.relations), passage


@pytest.mark.parametrize("variant", range(VARIANTS))
@pytest.mark.parametrize("unasked", [0, 4])
def test_sheets_state_what_they_are_said_to_state(variant, unasked):
    longer, sample = 0, passages()[::11]
    for passage in sample:
        shown, entity = sheet(passage, variant, unasked), by_key()[passage.entity]
        longer += shown.text.count(": ") - sheet(passage, variant).text.count(": ") > 0
        told = {
            key
            for key in entity.facts
            if key in RELATIONS and states(shown.text, entity, RELATIONS[key], title=shown.title)
        }
        assert told == set(passage.relations), shown
        assert not any(states(shown.text, entity, RELATIONS[key], "Atlantis", shown.title) for key in passage.relations)
    # None to four fields that nothing asks for, each as often.
    assert longer == 0 if not unasked else 0.7 < longer / len(sample) < 0.9


def check(rows) -> Counter:
    seen: Counter[str] = Counter()
    for row in rows:
        kind = row["dataset_name"].split("_")[1]
        if kind not in ("short", "boolean", "options", "verify"):
            continue
        first = FIRST.match(row["output"])
        facts = asked(kind, row["instruction"])
        assert facts and all(facts), row
        # Names are shared, so a fact has several readings; one that the passage bears out makes it relevant.
        title, text = first["title"], first["text"]
        told = [any(states(text, e, r, title=title) for e, r, _ in readings) for readings in facts]
        relevant = any(told) if kind == "verify" else all(told)
        assert first["rel"] == ("Relevant" if relevant else "Irrelevant"), row
        seen[first["rel"]] += 1
        if not relevant:
            continue
        if kind == "verify":
            true = [
                any(v and states(first["text"], e, r, v, first["title"]) for e, r, v in readings) for readings in facts
            ]
            share = 2 * sum(true) // len(true) if all(true) or not any(true) else 1
        else:
            said = re.sub(r", so (?:this is|the answer is) .+", ".", first["said"])
            share = 2 * any(states(said, e, r) for e, r, _ in facts[0])
        assert first["sup"] == LABEL[share], row
        seen[first["sup"]] += 1
    return seen


def test_labels_of_every_training_row(longer):
    seen = check(longer)
    assert min(seen[label] for label in ("Relevant", "Irrelevant", *LABEL.values())) > 300


@pytest.mark.parametrize("wording", WORDINGS)
def test_labels_of_held_out_rows(wording):
    assert min(check(labelled_rows("heldout", 5, 500, wording)).values()) > 5
