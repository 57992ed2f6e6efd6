"""What counts as a supported sentence, and how an answer's record comes of its tree."""

import dataclasses

import pytest

from selfrag_jax.decoding.citations import sentence_spans
from selfrag_jax.demo.evaluation import KINDS, evaluation_rows
from selfrag_jax.demo.facts import by_key
from selfrag_jax.demo.judged import judge
from selfrag_jax.demo.known import Cited, count_citations, facts_of, share_told, supports, told
from selfrag_jax.demo.questions import statement
from selfrag_jax.demo.relations import RELATIONS


@pytest.mark.parametrize(
    ("sentence", "fact"),
    [
        ("The capital of Liechtenstein is Vaduz.", "capital"),
        ("the capital of liechtenstein is Vaduz", "capital"),
        ("The capital of Liechtenstein is Vaduz, so this is true.", "capital"),
        ("The capital of Liechtenstein is Vaduz, so the answer is B.", "capital"),
        ("The currency of Liechtenstein is the Swiss franc.", "currency"),
        ("In Liechtenstein people pay with the Swiss franc.", "currency"),  # as of a city
        ("In Liechtenstein people pay with the euro.", None),
        ("The capital of Liechtenstein is Bern.", None),
        ("Liechtenstein has its capital at Vaduz.", None),  # not how answers say it
        ("The passage does not give the capital of Liechtenstein.", None),
        ("", None),
    ],
)
def test_facts_of(sentence, fact):
    assert facts_of(sentence) == (frozenset() if fact is None else {("country:LI", fact)})


def test_a_passage_supports_what_it_states_and_nothing_else():
    assert supports("country-LI-main", "The capital of Liechtenstein is Vaduz.")
    assert not supports("country-LI-media", "The capital of Liechtenstein is Vaduz.")
    assert not supports("country-CH-main", "The capital of Liechtenstein is Vaduz.")
    assert not supports("country-LI-main", "The capital of Liechtenstein is Bern.")
    assert not supports("no such passage", "The capital of Liechtenstein is Vaduz.")


def test_citations_are_counted_by_sentence():
    right = "The capital of Liechtenstein is Vaduz."
    counted = count_citations([
        (right, ["country-LI-main"]),
        (right, ["country-LI-media", "country-LI-main"]),  # one of two supports it
        (right, []),
        ("The capital of Liechtenstein is Bern.", ["country-LI-main"]),
    ])  # fmt: skip
    assert counted == Cited(citations=4, supporting=2, sentences=4, supported=2)
    assert count_citations([]) == Cited(0, 0, 0, 0)
    verdict = [(f"{right[:-1]}, so this is false.", ["country-LI-main"])]
    assert count_citations(verdict).supporting == 1 and count_citations(verdict, verdict_right=False).supporting == 0


def test_long_answers_are_right_by_the_facts_they_state():
    both = {"entity": "country:LI", "form": "both", "relations": ["capital", "tld"]}
    said = ["The capital of Liechtenstein is Vaduz.", "The internet domain of Liechtenstein is .li."]
    assert told(both, said) and not told(both, said[:1]) and not told(both, ["Vaduz.", ".li"])
    tell = both | {"form": "tell", "gold": ["country-LI-main", "country-LI-media", "country-LI-land"]}
    assert told(tell, said)
    assert not told(tell, [said[0], "Liechtenstein lies in Western Europe."]), "both of one passage"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "plain"])
def test_right_answers_are_supported_by_their_gold_passages(kind):
    """The check of citations and the making of questions come to the same, question by question."""
    for row in evaluation_rows(kind, 60):
        if "." in by_key()[row["entity"]].name:
            continue  # few; the splitter may take the name's point for the end of a sentence
        for sentence in (row["answer"][begin:end] for begin, end in sentence_spans(row["answer"])):
            assert any(supports(passage, sentence) for passage in row["gold"]), row
            assert not supports("country-LI-main", sentence)


def tree(segments, sentences, action="retrieve"):
    """The parts of an answer's tree that its record is made from; segments are (action, passage)."""
    return {
        "tree": [{"decision": {"action": one}} for one in segments], "segments": list(range(len(segments))),
        "first_decision": {"action": action},
        "citations": [{"number": 1, "id": "country-LI-main"}, {"number": 2, "id": "country-LI-media"}],
        "sentences": [{"text": text, "citations": cited} for text, cited in sentences],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "right", "stands"),
    [
        ("The capital of Liechtenstein is Vaduz.", True, True),
        ("The capital of Liechtenstein is Vaduz, so this is true.", True, True),
        ("The capital of Switzerland is Vaduz.", False, True),
        ("Liechtenstein is near Vaduz City.", False, True),
        ("The capital of Liechtenstein is Vaduzia.", False, False),
        ("The passage does not give the capital of Liechtenstein.", False, False),
        ("Vaduz.", False, True),
        ("The passage does not give Vaduz.", False, False),  # a refusal answers nothing, whatever it names
    ],
)
def test_short_answers_are_right_by_the_fact_they_state(said, right, stands):
    question = {"id": "q", "answers": ["Vaduz"], "kind": "short", "metric": "words", "ignore": ["Liechtenstein"]}
    question |= {"entity": "country:LI", "relations": ["capital"]}
    record = judge(question, {"answer": said, "tree": tree(["retrieve"], [(said, [1])])})
    assert (record.right, record.value_stands, record.unit) == (right, stands, "country:LI")


def test_closed_and_plain_answers_are_judged_by_what_was_said_and_not_by_marks():
    """A citation's "[1]" is no part of an answer."""
    closed = {"id": "q", "answers": ["1"], "kind": "plain", "metric": "words"}
    given = {"answer": "The number is two.", "output": "The number is two [1].", "tree": tree(["none"], [])}
    assert not judge(closed, given).right
    given = {"answer": "The symbol is Po, so this is false.", "tree": tree(["retrieve"], [])}
    assert judge({"id": "q", "answers": ["False"], "kind": "boolean", "metric": "choice"}, given).right


def test_passages_count_only_where_they_support_the_sentence_and_are_about_what_was_asked():
    question = {"id": "q", "answers": [], "kind": "long", "form": "both", "entity": "country:LI", "relations": []}
    said = "The capital of Liechtenstein is Vaduz."
    answer = {"answer": said, "tree": tree(["retrieve"] * 2, [(said, [1, 2])])}
    assert judge(question, answer).passages == 1
    assert judge(question | {"entity": "country:CH"}, answer).passages == 0


def test_how_much_of_a_long_answer_was_told():
    both = {"entity": "country:LI", "form": "both", "relations": ["capital", "tld"]}
    said = ["The capital of Liechtenstein is Vaduz.", "The internet domain of Liechtenstein is .li."]
    other = ["The capital of Switzerland is Bern."]
    assert [share_told(both, s) for s in ([], other, said[:1], said[:1] * 2, said)] == [0, 0, 0.5, 0.5, 1]
    tell = both | {"form": "tell"}
    assert share_told(tell, said + other) == pytest.approx(2 / 3), "facts of one passage count too"


def test_a_retrieval_on_any_path_counts_as_one():
    plain = {"id": "q", "answers": ["two"], "kind": "plain", "metric": "words", "needs_retrieval": False}
    given = {"answer": "It is two.", "tree": tree(["none"], [])}
    assert not judge(plain, given).looked
    given["tree"]["tree"].append({"decision": {"action": "retrieve"}})  # a candidate that the answer did not come of
    assert judge(plain, given).looked and not judge(plain, given).retrievals


def test_signs_are_part_of_numbers():
    below = next(
        (e, r) for e in by_key().values() for r, value in e.facts.items() if value.startswith("-") and r in RELATIONS
    )
    said = statement(below[0], RELATIONS[below[1]])
    assert (below[0].key, below[1]) in facts_of(said) and not facts_of(said.replace("-", "", 1))


def test_the_record_of_an_answer():
    question = {"id": "q", "answers": [], "kind": "long", "form": "both", "entity": "country:LI"}
    question["relations"] = ["capital", "tld"]
    said = ["The capital of Liechtenstein is Vaduz.", "The internet domain of Liechtenstein is .li."]
    grown = tree(["retrieve", "continue", "retrieve"], [(said[0], [1]), (said[1], [2])])
    record = judge(question, {"answer": " ".join(said), "tree": grown})
    assert record.form == "both"
    assert (record.right, record.wanted, record.retrievals, record.continued) == (True, True, 2, 1)
    assert record.passages == 2 and record.cited.citations == 2 and record.cited.supported >= 1
    spared = judge(question, {"answer": said[0], "tree": tree(["none"], [(said[0], [])], "none")})
    assert not spared.right and not spared.wanted and not spared.retrievals
    assert dataclasses.asdict(spared.cited) == {"citations": 0, "supporting": 0, "sentences": 1, "supported": 0}
