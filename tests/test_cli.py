"""The command line: what a user types, what he gets, and one line where it is wrong."""

import json
import os
import pathlib
import subprocess
import sys

import filelock
import pytest

from selfrag_jax import cli
from selfrag_jax.cli import decode, evaluate
from selfrag_jax.cli.flags import parse
from selfrag_jax.decoding.citations import with_marks
from selfrag_jax.decoding.result import Choice, CitedPassage, Counts, Result, Sentence
from selfrag_jax.errors import UserError

ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def in_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


def parsed(*arguments):
    return parse(arguments, usage="test", summary="", define=decode._define_flags, positional=True)


def test_defaults_and_overrides():
    assert parsed("q").config.decode.threshold == 0.2
    assert parsed("q").config_path == "configs/demo.py"
    invocation = parsed("--config.decode.threshold=0.5", "q", "--config.data.pack=false", "--config.decode.beam", "3")
    assert invocation.config.decode.threshold == 0.5
    assert invocation.config.data.pack is False
    assert invocation.config.decode.beam == 3
    assert invocation.arguments == ["q"]
    assert parsed("q", "--noconfig.data.pack").config.data.pack is False


def test_the_place_of_config_makes_no_difference():
    for arguments in (
        ["--config=configs/selfrag_7b.py", "--config.decode.beam=5", "q"],
        ["--config.decode.beam=5", "q", "--config", "configs/selfrag_7b.py"],
    ):
        invocation = parsed(*arguments)
        assert (invocation.config.data.batch_size, invocation.config.decode.beam) == (128, 5)


def test_parsing_twice_is_independent():
    assert parsed("--config.decode.beam=5").config.decode.beam == 5
    assert parsed().config.decode.beam == 2


def test_a_question_after_two_dashes_may_look_like_a_flag():
    assert parsed("--json", "--", "--config.nothing=1").arguments == ["--config.nothing=1"]
    assert parsed("--", "--help").arguments == ["--help"]


ERRORS = [
    (["--config.decode.treshold=1", "q"], "there is no setting decode.treshold; did you mean decode.threshold?"),
    (["--config.threshold", "1", "q"], "there is no setting threshold; did you mean decode.threshold?"),
    (["--config.decode=1", "q"], "decode is a group of settings"),
    (["--config.decode.threshold=abc", "q"], "--config.decode.threshold=abc: a number is wanted"),
    (["--config.decode.beam=2.5", "q"], "--config.decode.beam=2.5: a whole number is wanted"),
    (["--config.data.pack=perhaps", "q"], "--config.data.pack=perhaps: true or false is wanted"),
    (["--config.decode.retrieve=tokn", "q"], "'tokn' is not one of threshold, token, always, never"),
    (["--config.decode.beam=0", "q"], "decode.beam=0 is too small"),
    (["--config.decode.threshold", "--json"], "--config.decode.threshold=--json: a number is wanted"),
    (["q", "--config"], "--config needs a value"),
    (["q", "--config="], "--config is empty"),
    (["q", "--config=absent.py"], "absent.py: there is no such config file"),
    (["q", "--jsn"], "there is no flag --jsn; did you mean --json?"),
    (["q", "--xyzzy"], "there is no flag --xyzzy; --help lists them"),
    (["q", "--process_index=a"], "--process_index=a"),
    ([], "no question"),
    ([""], "the question is empty"),
    ([" \n\t "], "the question is empty"),
    (["what", "is", "it"], "3 arguments where one question is wanted; put it in quotes"),
    (["q", "--input=rows.jsonl"], "ask one or the other"),
    (["--input=absent.jsonl"], "--input=absent.jsonl needs --output"),
    (["--input=absent.jsonl", "--output=x.jsonl"], "absent.jsonl: there is no such file"),
    (["--input=README.md", "--output=./README.md"], "is the input file"),
    (["--input=README.md", "--output=x.jsonl", "--json"], "--tree adds the tree"),
    (["--input=/dev/null", "--output=x.jsonl"], "/dev/null: there is no such file"),
    (["q", "--output=x.jsonl"], "--output goes with --input"),
    (["q", "--skip_bad"], "--skip_bad goes with --input"),
]


@pytest.mark.parametrize(("arguments", "words"), ERRORS, ids=[" ".join(a) for a, _ in ERRORS])
def test_bad_input_gets_one_line_and_status_2(arguments, words, capsys):
    assert cli.run_command("decode", arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ") and err.count("\n") == 1
    assert words in err


def test_training_needs_a_workdir(tmp_path, capsys):
    assert cli.main(["train"]) == 2
    assert "--workdir is missing" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert cli.main(["train", f"--workdir={tmp_path / 'file'}"]) == 2
    assert "is a file" in capsys.readouterr().err
    assert cli.main(["train", "surplus", "--workdir=runs/x"]) == 2
    assert "unexpected argument 'surplus'" in capsys.readouterr().err


def test_the_default_config_may_be_elsewhere(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["decode", "q"]) == 2
    assert "configs/demo.py: there is no such config file; name one with --config=PATH" in capsys.readouterr().err


def test_commands(capsys):
    assert cli.main([]) == 2
    assert cli.main(["--help"]) == 0
    assert "decode" in capsys.readouterr().out
    assert cli.main(["decod"]) == 2
    assert "there is no command 'decod'; the commands are decode" in capsys.readouterr().err


def test_help_lists_flags_and_settings(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["decode", "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert "--output=" in out and "decode.threshold = 0.2" in out


def test_interruption_has_no_traceback(monkeypatch, capsys):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(decode, "main", interrupted)
    assert cli.main(["decode", "q"]) == 130
    assert capsys.readouterr().err.strip() == "interrupted"


def test_errors_of_many_lines_are_told_in_one(monkeypatch, capsys):
    def failing(arguments):
        raise UserError("one\n  two")

    monkeypatch.setattr(decode, "main", failing)
    assert cli.main(["decode", "q"]) == 2
    assert capsys.readouterr().err == "error: one two\n"


def test_our_own_faults_keep_their_traceback(monkeypatch):
    def failing(arguments):
        raise RuntimeError("ours")

    monkeypatch.setattr(decode, "main", failing)
    with pytest.raises(RuntimeError, match="ours"):
        cli.main(["decode", "q"])


@pytest.mark.parametrize("script", ["decode.py", "train.py"])
def test_scripts_start_without_jax(script):
    """`--help` and bad input answer at once: no heavy module is loaded."""
    program = (
        "import runpy, sys\n"
        f"sys.argv = [{script!r}, '--help']\n"
        "try:\n    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit as done:\n    assert not done.code, done.code\n"
        "heavy = {'jax', 'flax', 'numpy', 'scann', 'transformers', 'grain', 'orbax', 'torch', 'tensorflow'}\n"
        "print('loaded:', sorted(heavy & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_a_closed_pipe_is_not_a_fault():
    reader, writer = os.pipe()
    os.close(reader)
    arguments = [sys.executable, "-m", "selfrag_jax", "--help"]
    done = subprocess.run(arguments, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert done.stderr == ""


def result(text: str, sentences: list[Sentence], cited: list[CitedPassage]) -> Result:
    """An answer as the engine gives it, without a tree."""
    choice = Choice("retrieve" if cited else "none", {}, 0.0, 1.0, "")
    nothing = {"segments": (), "passages": (), "tree": (), "paths": ()}
    counts = Counts(retrievals=len(cited), prefilled_tokens=9, decoded_tokens=9)
    shown = " ".join(with_marks(sentence) for sentence in sentences)
    return Result("", "", text, shown, tuple(sentences), tuple(cited), **nothing, first_decision=choice, counts=counts)


class FakeEngine:
    """Answers with the first passage's text, cited; without passages it has nothing to cite."""

    loaded = 0

    def __init__(self):
        FakeEngine.loaded += 1

    def encode(self, request):
        if len(request.instruction) > 60:
            raise UserError("the question has 99 tokens; the context holds 64")

    def answer_batch(self, requests):
        return [self.answer(request.instruction, request.input, request.passages) for request in requests]

    def answer(self, instruction, input="", passages=None):
        assert len(instruction) <= 60, "a refused question is not asked"
        if passages:
            given = passages[0]
            cited = CitedPassage(1, given.id, given.title, given.text, given.score)
            said = f"{given.text}."
            return result(f"{said} See [2].", [Sentence(said, (1,), 0), Sentence("See [2].", (), 0)], [cited])
        return result("Mice.", [Sentence("Mice.", (), 0)], [])


@pytest.fixture
def fake_engine(monkeypatch):
    FakeEngine.loaded = 0
    monkeypatch.setattr(decode, "_load_engine", lambda config, needs_index=True: FakeEngine())


ROWS = [
    {
        "question": "Capital of X?",
        "answers": ["Vaduz"],
        "ctxs": [{"title": "X", "text": "It is Vaduz", "score": "0.5"}],
    },
    {"instruction": "Plural of mouse?", "id": "m", "answers": ["houses"]},
    {"instruction": "Say it.", "input": "aloud"},
]


def write_rows(path: pathlib.Path, rows) -> pathlib.Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_file_of_questions(tmp_path, fake_engine, capsys):
    source, output = write_rows(tmp_path / "rows.jsonl", ROWS), tmp_path / "answers.jsonl"
    assert cli.main(["decode", "--config.model.adapter=", f"--input={source}", f"--output={output}"]) == 0
    told = capsys.readouterr().out
    assert "3 answers" in told
    assert "right: 1 of 2 (50.0 %)" in told
    assert "retrieved for: 1 of 3 (33.3 %)" in told
    answers = [json.loads(line) for line in output.read_text().splitlines()]
    assert answers[0] == {
        "id": "1",
        "question": "Capital of X?",
        "output": "It is Vaduz [1]. See [2].",
        "answer": "It is Vaduz. See [2].",
        "retrievals": 1,
        "citations": [{"number": 1, "id": "1:1", "title": "X", "text": "It is Vaduz", "score": 0.5}],
        "answers": ["Vaduz"],
        "correct": True,
    }
    assert (answers[1]["id"], answers[1]["correct"]) == ("m", False)
    assert answers[2]["input"] == "aloud" and "correct" not in answers[2]
    before = output.read_bytes()
    assert cli.main(["decode", "--config.model.adapter=", f"--input={source}", f"--output={output}"]) == 0
    assert "right: 1 of 2" in capsys.readouterr().out
    assert output.read_bytes() == before and FakeEngine.loaded == 1
    assert (
        cli.main(
            ["decode", "--config.model.adapter=", f"--input={source}", f"--output={output}", "--config.decode.beam=3"]
        )
        == 2
    )
    assert "decode.beam (2 then, 3 now)" in capsys.readouterr().err
    assert (
        cli.main(
            ["decode", "--config.model.adapter=", f"--input={source}", f"--output={output}", "--tree", "--restart"]
        )
        == 0
    )
    assert json.loads(output.read_text().splitlines()[0])["tree"]["version"] == 1


def test_rows_that_cannot_be_answered(tmp_path, fake_engine, capsys):
    rows = [*ROWS, {"id": "long", "question": "?" * 61}]
    source, output = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "answers.jsonl"
    assert cli.main(["decode", "--config.model.adapter=", f"--input={source}", f"--output={output}"]) == 2
    err = capsys.readouterr().err.splitlines()[-1]
    assert err.startswith("error: row long: the question has 99 tokens") and "--skip_bad" in err
    assert not output.exists()
    assert cli.main(["decode", "--config.model.adapter=", f"--input={source}", f"--output={output}", "--skip_bad"]) == 0
    assert f"left out: 1 rows, listed in {output}.bad.jsonl" in capsys.readouterr().out


def test_shares_of_a_file(tmp_path, fake_engine, capsys):
    source, output = write_rows(tmp_path / "rows.jsonl", ROWS * 3), tmp_path / "answers.jsonl"
    arguments = ["decode", "--config.model.adapter=", f"--input={source}", f"--output={output}", "--process_count=2"]
    assert cli.main([*arguments, "--process_index=1"]) == 0
    assert "this process's share is done" in capsys.readouterr().out
    assert cli.main([*arguments, "--process_index=0"]) == 0
    assert "9 answers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--config.retrieval.corpus=mine.jsonl"], "config.retrieval.corpus='mine.jsonl' has no evaluation"),
        (["--workdir=README.md"], "--workdir=README.md is a file"),
        (["--readme=no/such.md"], "no/such.md: cannot be read"),
        (["--restart", "--workdir=tests"], "--restart: tests is no run of this command"),
        (["--readme=LICENSE"], "LICENSE: expected the lines"),
        (["--processes=0"], "processes"),
        (["surplus"], "unexpected argument 'surplus'"),
        (["--config.evaluate.per_kind=0"], "evaluate.per_kind=0 is too small"),
    ],
)
def test_evaluate_refuses_before_it_loads_anything(arguments, said, capsys):
    assert cli.main(["evaluate", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert (ROOT / "tests").is_dir()


def test_one_evaluation_at_a_time_in_a_folder(tmp_path, capsys):
    held = filelock.FileLock(tmp_path / ".lock")
    with held:
        assert cli.main(["evaluate", f"--workdir={tmp_path}"]) == 2
    assert "another evaluation is at work in it" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir() if path.name != ".lock"] == []


def test_restart_removes_what_is_a_runs_and_nothing_else(tmp_path):
    for name in ("answers", "mine"):
        (tmp_path / name).mkdir()
    for name in (".lock", "config.json", "report.md", "process-0.log", "notes.txt", "answers/short.jsonl", "mine/a"):
        (tmp_path / name).write_text("x")
    evaluate._check_ours(tmp_path)
    evaluate._throw_away(tmp_path)
    assert {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")} == {".lock", "notes.txt", "mine", "mine/a"}


def test_json_for_machines(fake_engine, capsys):
    assert cli.main(["decode", "Plural of mouse?", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["version"], printed["text"], printed["counts"]["retrievals"]) == (1, "Mice.", 0)
