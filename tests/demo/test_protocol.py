"""What the evaluation asks: which questions in which modes, PopQA's, and the corpus in held-out templates."""

import json
import os

import pytest

from configs.demo import get_config
from selfrag_jax.demo import protocol
from selfrag_jax.demo.labels import parts, texts_of
from selfrag_jax.demo.recipes import Recipe
from selfrag_jax.demo.rows import labelled_rows
from selfrag_jax.errors import UserError
from selfrag_jax.evaluation.metrics import is_right
from selfrag_jax.files import read_jsonl


@pytest.fixture
def config(tmp_path):
    made = get_config()
    made.evaluate.per_kind = 3
    made.retrieval.index_dir = str(tmp_path / "index")
    return made


def test_cells(config, tmp_path):
    cells = {cell.cell.name: cell for cell in protocol.write_questions(config, tmp_path)}
    assert len(cells) == 5 * 3 + 4 + 1 + 5 * 2 - 1
    assert {name for name in cells if name.startswith("plain")} == {
        "plain-adaptive", "plain-always", "plain-never", "plain-adaptive-heldout",
    }  # fmt: skip
    assert cells["short-never"].cell.decode == {"retrieve": "never"}
    assert cells["short-always"].cell.decode == {"retrieve": "always"}
    for cell in cells.values():
        rows = read_jsonl(cell.cell.questions)
        assert len(rows) == 3 and all(("ctxs" in row) == (cell.mode == "gold") for row in rows)
        assert (cell.cell.index_dir != "") == (cell.wording == "heldout")
    other = protocol.write_questions(config, tmp_path / "again")
    assert [c.cell.questions.read_bytes() for c in other] == [c.cell.questions.read_bytes() for c in cells.values()]
    config.evaluate.seed = 0
    fresh = protocol.write_questions(config, tmp_path / "seed")
    assert all(
        a.cell.questions.read_bytes() != b.cell.questions.read_bytes() for a, b in zip(fresh, other, strict=True)
    )


def test_popqa_questions_bring_their_passage_and_are_judged_by_whole_words(config, tmp_path, assets):
    config.evaluate.popqa = str(assets / "rows" / "popqa_capital.jsonl")
    with_passage = {c.mode: c for c in protocol.write_questions(config, tmp_path) if c.source == "popqa"}
    assert set(with_passage) == {"adaptive", "gold"}
    rows = read_jsonl(with_passage["gold"].cell.questions)
    assert len(rows) == 85 and all(row["ctxs"][0]["text"] for row in rows)
    assert not any("ctxs" in row for row in read_jsonl(with_passage["adaptive"].cell.questions))
    for row in rows:
        subject = row["instruction"].removeprefix("What is the capital of ").removesuffix("?")

        def right(answer, row=row):
            return is_right(answer, metric=row["metric"], answers=row["answers"], ignore=row["ignore"])

        assert not right(f"The passage does not give the capital of {subject}."), row
        assert right(f"The capital of {subject} is {row['answers'][0]}."), row
        assert not right(f"The capital of {subject} is Atlantis."), row
    config.evaluate.popqa = str(tmp_path / "missing.jsonl")
    with pytest.raises(UserError, match="there is no such file"):
        protocol.write_questions(config, tmp_path)


def test_the_held_out_corpus_keeps_its_date_unless_it_changes(config):
    path = protocol.write_held_out_corpus(config)
    os.utime(path, (1, 1))
    assert protocol.write_held_out_corpus(config) == path and path.stat().st_mtime == 1
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert protocol.write_held_out_corpus(config).read_bytes() == whole and path.stat().st_mtime != 1
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(("group", "kind"), protocol.LABELLED.items())
def test_labelled_rows_are_told_apart_by_how_they_miss(group, kind):
    """The parts cover every row that has the label, and each holds what its name says."""
    rows = list(labelled_rows("heldout", 3, 200, "train", Recipe({kind: 1.0}, protocol.NEAR_MISSES)))
    readings = [{"id": row["id"], "gold": 1, "said": 1} for row in rows if texts_of(row, group) is not None]
    found = parts(group, rows, readings, "train")
    assert sum(map(len, found.values())) == len(readings) and all(all(hits) for hits in found.values())
    wanted = {
        "isrel": {"Relevant", "Irrelevant, same entity", "Irrelevant, similar name", "Irrelevant, same kind"},
        "issup": {"Fully supported", "Partially supported", "No support / Contradictory"},
    }[group]
    assert set(found) == wanted and min(map(len, found.values())) > 5
    count = sum("[Irrelevant]" in row["output"] for row in rows)
    assert group == "issup" or sum(len(h) for name, h in found.items() if "Irrelevant" in name) == count


def test_labels_and_texts_of_a_row():
    row = {
        "instruction": "What is the capital of Norway?",
        "output": "[Retrieval]<paragraph>Norway\nIts capital is Oslo.</paragraph>[Relevant]"
        "The capital of Norway is Oslo.[Partially supported][Utility:5]",
    }  # fmt: skip
    texts, label = texts_of(row, "isrel")
    assert label == "[Relevant]" and texts["question"] == row["instruction"]
    assert texts["passage"] == "Norway Its capital is Oslo."
    texts, label = texts_of(row, "issup")
    assert label == "[Partially supported]" and texts["statement"] == "The capital of Norway is Oslo."
    assert texts_of(json.loads(json.dumps(row).replace("[Partially supported]", "")), "issup") is None
