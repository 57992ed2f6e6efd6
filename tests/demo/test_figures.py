"""Figures counted over made-up answers, each of which is known."""

import dataclasses

import pytest

from selfrag_jax.demo.figures import Labels, Results, figures
from selfrag_jax.demo.judged import Judged
from selfrag_jax.demo.known import Cited
from selfrag_jax.demo.tables import answers_text, figures_table, kinds_table


def judged(
    right: bool, *, needs=True, wanted=True, retrievals=1, passages=1, continued=0, cited=(1, 1, 1, 1), form="", **other
) -> Judged:
    known = {"value_stands": right, "share_told": float(right), "one_passage": False, "looked": retrievals > 0} | other
    return Judged(
        id="q", unit="q", form=form, needs_retrieval=needs, right=right, wanted=wanted, retrievals=retrievals,
        passages=passages, continued=continued, cited=Cited(*cited), **known,
    )  # fmt: skip


def results() -> Results:
    yes, no = judged(True), judged(False, cited=(1, 0, 2, 0))
    spared = judged(True, needs=False, wanted=False, retrievals=0, passages=0, cited=(0, 0, 1, 0))
    looked = judged(True, needs=False, wanted=False, retrievals=0, looked=True)
    two = judged(True, retrievals=2, passages=2, continued=1, cited=(3, 3, 3, 3), form="tell")
    one, lost = judged(True, form="tell"), judged(False, form="tell", share_told=2 / 3)
    terse = judged(False, retrievals=0, value_stands=True)  # the value, and no sentence around it
    here, there = judged(True, form="both", continued=1, one_passage=True), judged(True, form="both", continued=1)
    stopped = judged(True, form="both", one_passage=True)
    answers = {
        ("short", "adaptive", "train"): [yes] * 9 + [no],
        ("short", "never", "train"): [judged(False, retrievals=0)] * 8 + [terse, yes],
        ("short", "adaptive", "heldout"): [yes] * 8 + [no] * 2,
        ("short", "gold", "train"): [yes] * 10,
        ("long", "adaptive", "train"): [two] * 3 + [one] * 2 + [here, stopped, there],
        ("long", "one_look", "train"): [lost] * 3 + [one] * 2 + [here] * 3,
        ("plain", "adaptive", "train"): [spared] * 9 + [looked],
        ("plain", "adaptive", "heldout"): [spared] * 7 + [looked] * 3,
    }
    labels = {
        ("isrel", "train"): Labels(
            [True] * 9 + [False],
            [f"d{n // 2}" for n in range(10)],
            {"bag of words": [True, False] * 5},
            {"Irrelevant, same entity": [True] * 3, "Irrelevant, same kind": [False], "Relevant": [True] * 6},
        )
    }
    found = {("short", "train"): [(1, 1)] * 8 + [(0, 1)] * 2, ("long", "heldout"): [(1, 2)] * 4}
    apart = {key: [dataclasses.replace(one, unit=f"q{n}") for n, one in enumerate(c)] for key, c in answers.items()}
    return Results(apart, labels, found, dict.fromkeys(answers, 5.0), [True] * 5 + [False] * 5)


WANTED = {
    "short answers, gold passage": (1.0, "stretch"),
    "short answers, adaptive, from the index": (0.9, "must"),
    "points lost with retrieval off": (0.7, "must"),
    "points lost by held-out wordings, short": (0.1, "short of it"),
    "points lost by held-out wordings, all": (0.15, "short of it"),
    "points lost by held-out wordings, worst kind": (0.2, "short of it"),
    "plain instructions without retrieval, right": (0.9, "must"),
    "retrieves where it is needed": (1.0, "stretch"),
    "does not where it is not": (0.9, "short of it"),
    "IsRel, near-miss passages": (0.9, "short of it"),
    "IsRel, near-miss passages: Irrelevant, same entity": (1.0, ""),
    "IsRel, near-miss passages: the misses alone": (0.75, "short of it"),
    "the same, without those that training shows turned round": (0.8, ""),
    "IsRel, near-miss passages: points ahead of bag of words": (0.4, "must"),
    "citation precision": ((9 + 9 + 5) / (10 + 9 + 5), "stretch"),
    "citation recall": ((9 + 9 + 5) / (11 + 9 + 5), "stretch"),
    "citation recall, short": (9 / 11, ""),
    "tell me about X: two retrievals, each with a citation that holds": (0.6, "must"),
    "tell me about X: right, and every sentence supported": (1.0, ""),
    "tell me about X: points lost with the second retrieval off": (0.6, "must"),
    "tell me about X: facts told, of those wanted": (1.0, ""),
    "tell me about X: points of these lost with the second retrieval off": (0.2, "must"),
    "tell me about X: continues, no passage states all": (0.6, ""),
    "two facts: continues, one passage states all": (0.5, ""),
    "two facts: continues, no passage states all": (1.0, ""),
    "retrieves where it is needed, held-out wordings": (1.0, ""),
    "recall@5 of the gold passages, short": (0.8, ""),
    "recall@5 of the gold passages, long, held-out wordings": (0.5, ""),
}


@pytest.mark.parametrize("name", WANTED)
def test_figure(name):
    (figure,) = [one for one in figures(results()) if one.name == name]
    assert (pytest.approx(figure.share.value), figure.verdict) == WANTED[name]


def test_cells_that_were_not_run_have_no_figure():
    names = {figure.name for figure in figures(results())}
    assert not names & {"true/false, adaptive", "PopQA capitals, from the index", "IsSup, near-miss statements"}
    assert figures(Results({}, {}, {}, {}, [])) == []


def test_tables():
    kinds = kinds_table(results()).splitlines()
    assert kinds[2].startswith("| short answers | 10 | 90.0 (") and kinds[2].endswith("| 2.00 |")
    assert len(kinds) == 5 and all(line.count("|") == kinds[0].count("|") for line in kinds)
    lines = figures_table(figures(results())).splitlines()
    assert any(line.startswith("| points lost by held-out wordings, short | 10.0 ") and "≤ 6" in line for line in lines)


def test_twenty_answers_are_drawn_by_the_seed():
    question = {"instruction": "What?\nA. x", "answers": ["x"]}
    answer = {"output": "It is x [1].", "retrievals": 1, "citations": [
        {"number": 1, "title": "T", "text": "It is x."}]}  # fmt: skip
    cells = {n: [(question | {"instruction": f"{n} {i}"}, answer, i < 9) for i in range(50)] for n in ("b", "a")}
    text = answers_text(cells, 0, 5)
    assert text == answers_text(cells, 0, 5) != answers_text(cells, 1, 5)
    assert text.count("\n### ") + text.startswith("### ") == 5 and "- [1] T: It is x." in text
