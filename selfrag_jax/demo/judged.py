"""Answers held against what is known: one flat record a question, from which every figure is counted."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from selfrag_jax.demo.known import Cited, count_citations
from selfrag_jax.evaluation.metrics import is_right


@dataclasses.dataclass(frozen=True)
class Judged:
    """One answered question."""

    id: str
    needs_retrieval: bool
    right: bool
    wanted: bool  # the first decision was to retrieve
    retrievals: int  # on the path of the answer
    passages: int  # different ones that the answer cites
    continued: int  # segments of the answer that go on with the passage in force
    cited: Cited


def judge(question: dict[str, Any], answer: dict[str, Any]) -> Judged:
    """The record of one row of questions and its row of answers (with its tree)."""
    tree = answer["tree"]
    segments = [tree["tree"][node] for node in tree["segments"]]
    ids = {citation["number"]: citation["id"] for citation in tree["citations"]}
    sentences = [(s["text"], [ids[number] for number in s["citations"]]) for s in tree["sentences"]]
    return Judged(
        id=question["id"],
        needs_retrieval=question.get("needs_retrieval", True),
        right=is_right(
            question.get("metric", "match"), answer["answer"], question["answers"], question.get("aspects", ())
        ),
        wanted=tree["first_decision"]["action"] == "retrieve",
        retrievals=sum(segment["decision"]["action"] == "retrieve" for segment in segments),
        passages=len({passage for _, cited in sentences for passage in cited}),
        continued=sum(segment["decision"]["action"] == "continue" for segment in segments),
        cited=count_citations(sentences),
    )


def judge_all(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> list[Judged]:
    """The records of a cell."""
    return [judge(question, answer) for question, answer in pairs]
