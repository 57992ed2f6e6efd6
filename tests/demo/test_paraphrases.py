"""The wordings that later trainings add: for every table, of the same blanks, and none near a held-out one."""

import itertools
import re
from string import Formatter

import pytest

from selfrag_jax.demo import plain, questions, rows
from selfrag_jax.demo.paraphrases import EVERY, FILES, FRAMED, FRAMES, paraphrases
from selfrag_jax.demo.passages import wordings
from selfrag_jax.demo.relations import RELATIONS
from selfrag_jax.demo.rows import training_rows

TABLES = [
    *(relation.ask for relation in RELATIONS.values()),
    *(kind.wordings for kind in plain.kinds()),
    questions.ASK_NOUN, questions.TRUE_FALSE, questions.CHOOSE, questions.TELL, questions.TELL_BOTH, rows.VERIFY,
]  # fmt: skip


def blanks(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def bigrams(template: str) -> set[tuple[str, str]]:
    """Pairs of neighbouring words, blanks among them."""
    found = re.findall(r"\w+|\{\w\}", template.casefold().partition("a. {a}")[0])
    return set(itertools.pairwise(found))


def test_every_table_has_some_and_nothing_else_does():
    assert {table[0] for table in TABLES} == set(paraphrases()) == set(paraphrases(EVERY))
    assert min(map(len, paraphrases().values())) >= 3
    assert list(FILES)[-1] == EVERY and FILES[EVERY] == max(FILES.values(), key=len)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table[0][:40])
def test_they_fit_and_none_is_a_held_out_wording(table):
    more = paraphrases(EVERY)[table[0]]
    assert len({*more, *table}) == len(more) + len(table), "no wording twice"
    for template in more:
        assert blanks(template) == blanks(table[0]), template
        for held_out in wordings(table, "ask", "heldout"):
            shared = bigrams(template) & bigrams(held_out)
            assert len(shared) <= 0.5 * len(bigrams(held_out)), (template, held_out)
    for wording in FILES:
        assert wordings(table, "ask", wording) == (*table[:-1], *paraphrases(wording)[table[0]])
    assert wordings(table, "ask", "train") == table[:-1]


def test_no_paraphrase_is_a_held_out_wording_of_any_table():
    held_out = {wording for table in TABLES for wording in wordings(table, "ask", "heldout")}
    assert not held_out & {template for more in paraphrases(EVERY).values() for template in more}


def test_frames_change_nothing_behind_them():
    """The question stands whole at the end; a row and its twin are framed alike, and most rows are not framed."""
    assert all(frame.endswith("{q}") and frame.format(q="Why {so}?").endswith("Why {so}?") for frame in FRAMES)
    made = list(training_rows(3, 1500, "demo_wordings"))
    starts = tuple(frame.removesuffix("{q}") for frame in FRAMES)
    framed = [row["instruction"].startswith(starts) for row in made]
    assert 0.5 * FRAMED < sum(framed) / len(made) < 1.5 * FRAMED
    draws = itertools.groupby(made, key=lambda row: row["id"].partition("#")[0])
    twins = [rows for rows in (list(rows) for _, rows in draws) if rows[-1]["dataset_name"].endswith("irrelevant")]
    assert len(twins) > 50 and all(len({row["instruction"] for row in rows}) == 1 for rows in twins)
    assert not any(row["instruction"].startswith(starts) for row in training_rows(2, 300, "demo_fields"))
