"""Cells of an evaluation: resumed, shared by processes, and derived where the answers are known already."""

import pytest

from selfrag_jax.config import Config
from selfrag_jax.decoding.engine import Engine
from selfrag_jax.demo.protocol import MODES
from selfrag_jax.evaluation.cells import ALONE, Cell, Engines, Process, joined, run_cell, run_derived, same_in, seconds
from selfrag_jax.files import read_jsonl, write_jsonl
from tests.decoding.test_oracle import eager
from tests.decoding.tiny import some_passages, tiny


def config(depth: int = 1) -> Config:
    made = Config()
    made.decode.max_new_tokens, made.decode.max_depth, made.decode.batch_size = 16 * depth, depth, 4
    made.decode.threshold, made.decode.min_group_mass = (0.5 if depth == 1 else 0.01), 0.0
    made.retrieval.top_k = 2
    return made


class TinyEngines(Engines):
    """Engines over a tiny random model, which count how often one is asked for."""

    asked = 0

    @property
    def base(self):
        model = tiny(1) if self._config.decode.max_depth == 1 else eager(1)
        return Engine(model.params, model.config, model.tokenizer, None, self._config.decode, 2)

    def retriever(self, index_dir):
        return None

    def of(self, cell):
        self.asked += 1
        return super().of(cell)


@pytest.fixture
def questions(tmp_path):
    passages = [{"id": p.id, "title": p.title, "text": p.text} for p in some_passages(3, 4)]
    rows = [
        {"id": f"q{n}", "question": f"w{n} w{2 * n} w3", "answers": ["w5"], "ctxs": passages[: 1 + n % 2]}
        for n in range(14)
    ]
    path = tmp_path / "questions.jsonl"
    write_jsonl(path, rows)
    return path


# At depth 3 every answer of this model goes on after its first segment: none may be taken over by these modes.
NONE_ALIKE = {("always", 3), ("never", 3)}


def shape(tree):
    """What of a tree does not depend on the batch; another batch moves the last bits of its scores."""
    told = ("parent", "depth", "passage", "output", "kept", "ended")
    return [tree["text"], tree["segments"], *([candidate[key] for key in told] for candidate in tree["tree"])]


def run(questions, folder, mode, process=ALONE, engines=None, depth=1):
    cell = Cell(mode, questions, MODES[mode])
    return run_cell(config(depth), cell, engines or TinyEngines(config(depth)), folder, process)


def test_answers_come_in_order_with_trees_and_are_not_given_twice(questions, tmp_path):
    engines = TinyEngines(config())
    output = run(questions, tmp_path / "answers", "adaptive", engines=engines)
    answers = read_jsonl(output)
    assert [answer["id"] for answer in answers] == [f"q{n}" for n in range(14)]
    assert all({"tree", "citations", "retrievals"} <= set(answer) for answer in answers)
    assert not any("correct" in answer for answer in answers), "an evaluation judges by its own rules"
    assert all(len(a["tree"]["passages"]) <= 1 + n % 2 for n, a in enumerate(answers)), "all of its own passages"
    assert seconds(output) > 0
    asked = engines.asked
    assert run(questions, tmp_path / "answers", "adaptive", engines=engines) == output
    assert engines.asked == asked


def test_two_processes_write_what_one_writes(questions, tmp_path):
    alone = run(questions, tmp_path / "alone", "adaptive")
    assert run(questions, tmp_path / "both", "adaptive", Process(0, 2)) is None
    shared = run(questions, tmp_path / "both", "adaptive", Process(1, 2))
    assert shared.read_bytes() == alone.read_bytes()


@pytest.mark.parametrize(("mode", "depth"), [("always", 1), ("never", 1), ("always", 3), ("never", 3), ("one_look", 3)])
def test_derived_answers_are_those_that_come_out(questions, tmp_path, mode, depth):
    """Where `same_in` says so the adaptive tree is the mode's tree, candidate by candidate; the others are decoded."""
    adaptive = run(questions, tmp_path, "adaptive", depth=depth)
    live = read_jsonl(run(questions, tmp_path / "live", mode, depth=depth))
    kept = [same_in(mode, answer["tree"]) for answer in read_jsonl(adaptive)]
    assert not all(kept) and any(kept) == ((mode, depth) not in NONE_ALIKE), "the case has both"
    for same, ours, theirs in zip(kept, read_jsonl(adaptive), live, strict=True):
        assert shape(ours["tree"]) == shape(theirs["tree"]) or not same
    settings, cell = config(depth), Cell(mode, questions, MODES[mode])
    output = run_derived(settings, cell, mode, adaptive, TinyEngines(settings), tmp_path / "derived")
    found = read_jsonl(output)
    assert [answer["id"] for answer in found] == [answer["id"] for answer in live]
    assert [answer["answer"] for answer in found] == [answer["answer"] for answer in live]


def test_answers_of_other_questions_are_refused(questions, tmp_path):
    answers = run(questions, tmp_path / "answers", "adaptive")
    rows = read_jsonl(questions)
    write_jsonl(questions, [*rows[:3], rows[4], rows[3], *rows[5:]])
    with pytest.raises(ValueError, match="q4 has another row in its place"):
        joined(questions, answers)


def test_a_worker_ends_when_its_parent_is_gone(questions, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(questions, tmp_path / "answers", "adaptive", Process(0, 2, parent=1 << 22))
    assert run(questions, tmp_path / "answers", "adaptive") is not None


def test_another_index_brings_its_own_corpus():
    made = Config()
    made.retrieval.corpus, made.retrieval.index_dir = "demo", "runs/a"
    engines = Engines(made)
    assert engines.retriever("runs/a")._config.corpus == "demo"
    assert (engines.retriever("runs/b")._config.corpus, engines.retriever("runs/b")._config.index_dir) == ("", "runs/b")
