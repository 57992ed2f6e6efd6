"""The whole evaluation, small, killed in the middle and not: the same answers and figures."""

import pathlib
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
SMALL = ["--config.evaluate.per_kind=2", "--config.evaluate.labelled=8", "--config.decode.batch_size=2"]


def command(workdir: pathlib.Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "selfrag_jax", "evaluate", f"--workdir={workdir}", *SMALL, *more]


@pytest.mark.slow
def test_a_killed_evaluation_ends_in_the_same_figures(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(whole), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    started = subprocess.Popen(command(killed, "--processes=2"), cwd=ROOT, stdout=subprocess.DEVNULL)
    while started.poll() is None and len(list(killed.glob("answers/*.jsonl"))) < 5:
        time.sleep(0.2)
    assert started.poll() is None, "it was over before it could be killed"
    started.kill()
    again = subprocess.run(command(killed), cwd=ROOT, check=True, capture_output=True, text=True)
    for path in sorted([*whole.glob("answers/*.jsonl"), *whole.glob("labels/*.jsonl"), *whole.glob("*.json")]):
        if not path.name.endswith("timings.jsonl") and path.name != "environment.json":
            assert (killed / path.relative_to(whole)).read_bytes() == path.read_bytes(), path.name
    assert (whole / "answers.md").read_text("utf-8").count("### ") == 10
    assert "| short answers, gold passage |" in again.stdout
