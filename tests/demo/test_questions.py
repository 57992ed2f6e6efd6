"""Held-out questions: the right passages, answers that stand in them, and wordings kept apart."""

import json
import re

import pytest

from selfrag_jax.demo import make, plain
from selfrag_jax.demo.evaluation import KINDS, evaluation_rows, questions
from selfrag_jax.demo.facts import by_key
from selfrag_jax.demo.names import fold
from selfrag_jax.demo.passages import WORDINGS
from selfrag_jax.demo.split import held_out
from selfrag_jax.errors import UserError


@pytest.mark.parametrize("wording", WORDINGS)
def test_gold_passages_hold_the_answer(wording):
    for row in evaluation_rows("short", 500, seed=3, wording=wording, gold=True):
        assert held_out(by_key()[row["entity"]])
        text = " ".join(c["text"] for c in row["ctxs"])
        assert row["ctxs"] and row["answers"][0].casefold() in text.casefold(), row
        assert any(fold(answer) in fold(row["answer"]) for answer in row["answers"])
        assert row["needs_retrieval"] is True


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind(kind):
    for wording in WORDINGS:
        rows = list(evaluation_rows(kind, 120, seed=0, wording=wording, gold=kind != "plain"))
        assert len(rows) == len({row["id"] for row in rows}) == 120
        assert rows == list(evaluation_rows(kind, 120, seed=0, wording=wording, gold=kind != "plain"))
        assert all(row["answers"] and row["instruction"] and row["kind"] == kind for row in rows)
        assert all(("ctxs" in row) == row["needs_retrieval"] for row in rows)
        json.dumps(rows)
    assert all("ctxs" not in row for row in evaluation_rows(kind, 5, gold=False))


def test_long_questions_need_two_retrievals():
    rows = list(evaluation_rows("long", 300, seed=1))
    apart = 0
    for row in rows:
        assert len(row["aspects"]) >= 2
        texts = [c["text"].casefold() for c in row["ctxs"]]
        apart += not any(all(any(a.casefold() in t for a in aspect) for aspect in row["aspects"]) for t in texts)
    assert apart >= 0.3 * len(rows)


def test_true_false_and_options_are_balanced():
    verdicts = [q.answers[0] for q in questions("boolean", 400, 0)]
    assert 0.4 < verdicts.count("True") / 400 < 0.6
    letters = [q.answers[0][0] for q in questions("options", 400, 0)]
    assert all(0.15 < letters.count(letter) / 400 < 0.35 for letter in "ABCD")


def test_too_many_questions_or_no_such_kind():
    with pytest.raises(UserError, match="ask for fewer"):
        list(evaluation_rows("plain", 100_000))
    with pytest.raises(UserError, match="no kind of question"):
        list(evaluation_rows("riddle", 5))


def test_plain_kinds():
    kinds = plain.kinds()
    assert len(kinds) == len({k.key for k in kinds}) >= 40
    assert all(len(k.wordings) >= 3 and len(k.fillings) >= 6 for k in kinds)
    for kind in kinds:
        for wording in kind.wordings:
            assert wording.count("{f}") >= 1, kind
        by_filling: dict[str, set[str]] = {}
        for filling, answer in kind.fillings:
            by_filling.setdefault(filling, set()).add(answer)
        assert all(len(answers) == 1 for answers in by_filling.values()), kind.key
    plural = next(k for k in kinds if k.key == "plural")
    assert ("mouse", "mice") in plural.fillings and not plain.filling_held_out(plural, "mouse")


def test_plain_answers_are_right():
    """Numbers and lists, worked out again from the words of the instruction."""
    kinds = {k.key: k for k in plain.kinds()}
    for f, a in kinds["even_odd"].fillings:
        assert a == ("even" if int(f) % 2 == 0 else "odd")
    for f, a in kinds["smaller"].fillings:
        assert int(a) == min(map(int, f.split(" or ")))
    for f, a in kinds["reverse_list"].fillings:
        assert a.split(", ") == f.split(", ")[::-1]
    for f, a in kinds["larger"].fillings:
        assert int(a) == max(map(int, f.split(" or ")))
    for f, a in kinds["series"].fillings:
        numbers = [int(n) for n in f.split(", ")]
        assert int(a) - numbers[-1] == numbers[1] - numbers[0]
    for f, a in kinds["count_list"].fillings:
        assert {"two": 2, "three": 3, "four": 4}[a] == len(f.split(", "))


def test_held_out_fillings_are_not_trained(rows):
    trained = {r["instruction"] for r in rows if r["output"].startswith("[No Retrieval]")}
    asked = {row["instruction"] for row in evaluation_rows("plain", 300, seed=0)}
    assert len(trained) > 1000 and not trained & asked


def test_command_line(tmp_path, capsys):
    path = tmp_path / "deep" / "eval.jsonl"
    assert make.main(["--what=eval", "--kind=short", "--n=20", "--gold", f"--output={path}"]) == 0
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 20 and {"id", "instruction", "input", "answers", "ctxs", "kind"} <= set(rows[0])
    assert re.search("20 rows", capsys.readouterr().out)
    assert make.main(["--what=rows", "--n=50", "--seed=5", f"--output={path}"]) == 0
    assert len(path.read_text(encoding="utf-8").splitlines()) == 50
    assert [p.name for p in path.parent.iterdir()] == ["eval.jsonl"]
    with pytest.raises(UserError, match="needs --output"):
        make.main(["--what=rows"])
    with pytest.raises(UserError, match="--n=0"):
        make.main(["--what=rows", "--n=0", f"--output={path}"])
