"""Reading what users hold: the published files, and one clear line for each fault."""

import json

import pytest

from selfrag_jax.data.rows import Context, Row, read_questions, read_rows
from selfrag_jax.errors import UserError


def write(path, *lines):
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def test_published_generator_rows(assets):
    rows = list(read_rows(assets / "rows" / "generator_rows.jsonl"))
    assert len(rows) == 100
    assert rows[0] == Row(
        instruction="who was the president when alaska was purchased",
        output="[No Retrieval]Andrew Johnson[Utility:5]",
        id="nq_49284",
        dataset_name="nq",
    )


def test_published_questions(assets):
    rows = list(read_questions(assets / "rows" / "popqa_longtail_w_gs.jsonl"))
    assert [len(row.ctxs) for row in rows] == [25] * 5
    first = rows[0]
    assert (first.id, first.instruction) == ("4382392", "What is Henry Feilden's occupation?")
    assert first.answers[:2] == ("politician", "political leader")
    assert first.ctxs[0].id == "11341299" and first.ctxs[0].score == 1.6985543
    assert first.ctxs[0].title == "Henry Feilden (Conservative politician)" and first.raw["pop"] == 58
    capitals = list(read_questions(assets / "rows" / "popqa_capital.jsonl"))
    assert len(capitals) == 85 and capitals[0].ctxs is None and "factbook_passage" in capitals[0].raw


def test_what_may_be_missing(tmp_path):
    path = write(
        tmp_path / "q.jsonl",
        {"question": "a?"},
        "",
        {"question": "q", "instruction": "b?", "input": "x", "id": "n1", "ctxs": [{"title": "T", "text": "x"}]},
        {"question": "c?", "id": 7, "top_contexts": [{"id": 3, "title": "T", "text": "x", "score": "0.5"}]},
    )
    rows = list(read_questions(path))
    assert [(row.id, row.instruction, row.input) for row in rows] == [
        ("1", "a?", ""),
        ("n1", "b?", "x"),
        ("7", "c?", ""),
    ]
    assert rows[1].ctxs == (Context("T", "x"),)
    assert rows[2].ctxs == (Context("T", "x", "3", 0.5),)
    path = write(tmp_path / "r.jsonl", {"instruction": "i", "output": "o", "input": None, "other": 1})
    assert list(read_rows(path)) == [Row("i", "o", "", "1", "")]


GOOD = {"instruction": "i", "output": "o"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"row 2: not JSON"),
        ("[1]", r"row 2: expected a JSON object, found a list"),
        ({"output": "o"}, r"row 2, field 'instruction': expected a string, found no such field"),
        ({"instruction": "i", "output": 3}, r"row 2, field 'output': expected a string, found a number"),
        ({"instruction": " ", "output": "o"}, r"row 2, field 'instruction': expected text, found only whitespace"),
        ({**GOOD, "input": ["x"]}, r"row 2, field 'input': expected a string, found a list"),
        ({**GOOD, "output": "<paragraph>x"}, r"row 2, field 'output': <paragraph> at character 0 is never closed"),
        ('{"instruction": "\\ud800", "output": "o"}', r"row 2, field 'instruction': half of a surrogate pair"),
    ],
)
def test_bad_generator_rows(tmp_path, line, message):
    with pytest.raises(UserError, match=rf"rows\.jsonl, {message}") as caught:
        list(read_rows(write(tmp_path / "rows.jsonl", GOOD, line)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"question": None}, r"row 1, field 'question': expected a string, found null"),
        ({"answers": "x"}, r"row 1, field 'answers': expected a list of strings, found a string"),
        ({"ctxs": [{"text": "x", "score": "nan"}]}, r"row 1, ctxs\[0\], field 'score': expected a finite number"),
        ({"ctxs": {}}, r"row 1, field 'ctxs': expected a list of passages, found an object"),
        ({"ctxs": [{"text": "x"}, {"title": "T"}]}, r"row 1, ctxs\[1\], field 'text': expected a string"),
        ({"ctxs": [{"text": "x", "score": "high"}]}, r"row 1, ctxs\[0\], field 'score': expected a number"),
    ],
)
def test_bad_questions(tmp_path, fields, message):
    with pytest.raises(UserError, match=message):
        list(read_questions(write(tmp_path / "q.jsonl", {"question": "q", **fields})))


def test_unreadable_files(tmp_path):
    with pytest.raises(UserError, match=r"none\.jsonl: cannot be read: No such file"):
        list(read_rows(tmp_path / "none.jsonl"))
    (tmp_path / "binary").write_bytes(b"\x80\x04\x95")
    with pytest.raises(UserError, match="not UTF-8"):
        list(read_rows(tmp_path / "binary"))


def test_options_of_closed_questions(tmp_path):
    question = {"question": "?"}
    path = write(
        tmp_path / "q.jsonl", question, {**question, "options": ["true", "false"]}, {**question, "options": {"A": "x"}}
    )
    assert [row.options for row in read_questions(path)] == [None, {"true": "", "false": ""}, {"A": "x"}]


@pytest.mark.parametrize(
    ("options", "expected"),
    [(["A", 1], "a list of labels"), ({}, "a list of labels"), ([" "], "a list of labels"), (["A", "a"], "differ"),
     ({"A": 1}, "a list of labels"), ("A", "a list of labels")],
)  # fmt: skip
def test_bad_options(tmp_path, options, expected):
    path = write(tmp_path / "q.jsonl", {"question": "?", "options": options})
    with pytest.raises(UserError, match=f"q.jsonl, row 1, field 'options': expected .*{expected}"):
        list(read_questions(path))
