"""Answers held against what is known: one flat record a question, from which every figure is counted."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from selfrag_jax.demo.known import Cited, about, count_citations, refuses, share_told, told, told_short
from selfrag_jax.evaluation.metrics import is_right


@dataclasses.dataclass(frozen=True)
class Judged:
    """One answered question."""

    id: str
    unit: str  # what is drawn as a whole when samples are taken: the entity asked about, or the question itself
    form: str  # of a long answer: "tell" or "both"
    needs_retrieval: bool
    right: bool
    value_stands: bool  # right by the words alone: the value stands in the answer; of other than short ones as `right`
    share_told: float  # of a long answer: how much of what was asked it tells; of others as `right`
    one_passage: bool  # one passage states all that was asked
    wanted: bool  # the first decision was to retrieve
    looked: bool  # there was a retrieval, on the path of the answer or on another
    retrievals: int  # on the path of the answer
    passages: int  # different ones that the answer cites for a fact, which they state, of what was asked about
    continued: int  # segments of the answer that go on with the passage in force
    cited: Cited


def judge(question: dict[str, Any], answer: dict[str, Any]) -> Judged:
    """The record of one row of questions and its row of answers (with its tree)."""
    tree = answer["tree"]
    segments = [tree["tree"][node] for node in tree["segments"]]
    ids = {citation["number"]: citation["id"] for citation in tree["citations"]}
    sentences = [(s["text"], [ids[number] for number in s["citations"]]) for s in tree["sentences"]]
    metric, kind = question.get("metric", "match"), question.get("kind")
    said = [sentence for sentence, _ in sentences]
    text = " ".join(s for s in said if not refuses(s)) if kind in ("short", "popqa") else answer["answer"]
    right = value_stands = (
        told(question, said)
        if kind == "long"
        else is_right(text, metric=metric, answers=question["answers"], ignore=question.get("ignore", ()))
    )
    if kind == "short":
        right = told_short(question, [*said, answer["answer"]])  # whole too: a name's point may have split it
    return Judged(
        id=question["id"],
        unit=question.get("entity", question["id"]),
        needs_retrieval=question.get("needs_retrieval", True),
        form=question.get("form", ""),
        right=right,
        value_stands=value_stands,
        share_told=share_told(question, said) if kind == "long" else float(right),
        one_passage=len(question.get("gold", ())) == 1,
        wanted=tree["first_decision"]["action"] == "retrieve",
        looked=any(candidate["decision"]["action"] == "retrieve" for candidate in tree["tree"]),
        retrievals=sum(segment["decision"]["action"] == "retrieve" for segment in segments),
        passages=len({one for s, cited in sentences for one in cited if about(one, s, question.get("entity", ""))}),
        continued=sum(segment["decision"]["action"] == "continue" for segment in segments),
        cited=count_citations(sentences, verdict_right=right or metric != "choice"),
    )


def judge_all(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> list[Judged]:
    """The records of a cell."""
    return [judge(question, answer) for question, answer in pairs]
