"""Whole runs: a run that was cut short ends as if it had not been."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tiny_run

from selfrag_jax.config_file import config_to_json
from selfrag_jax.models import lora


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder of both runs, and how each process ended."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "config.json").write_text(config_to_json(tiny_run.make_config(folder)))
    script = pathlib.Path(__file__).parent / "interrupted_runs.py"
    environment = os.environ | {
        "XLA_FLAGS": "--xla_backend_optimization_level=0",
        "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, str(script), str(folder)], env=environment, capture_output=True, text=True, check=False
    )
    print(done.stdout, done.stderr[-3000:])
    assert done.returncode == 0
    return folder, dict(line.split() for line in done.stdout.splitlines())


def test_every_process_ended_as_it_should(runs):
    assert runs[1] == {"whole": "0", "killed": "-9", "torn": "-9", "asked": "143", "finished": "0", "again": "0"}


def test_metrics_are_those_of_a_run_never_stopped(runs):
    whole, cut = ((runs[0] / name / "metrics.jsonl").read_bytes() for name in ("whole", "cut"))
    assert whole == cut
    records = [json.loads(line) for line in whole.splitlines()]
    assert [record["step"] for record in records] == list(range(1, 13))
    assert records[-1]["loss"] < records[0]["loss"]
    assert set(records[0]["kinds"]) == {"text", "retrieve", "isrel", "issup", "isuse", "fence"}


def test_adapters_are_the_same_bytes(runs):
    paths = [runs[0] / name / "adapter" / "adapter.safetensors" for name in ("whole", "cut")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    adapter, meta = lora.load_adapter(paths[0].parent)
    assert meta.training["steps"] == 12
    assert np.abs(adapter["blocks"]["q"]["b"]).max() > 0


def test_the_card_and_the_config_lie_with_the_adapter(runs):
    folder = runs[0] / "cut" / "adapter"
    card = (folder / "README.md").read_text()
    assert "rank 2" in card and "interrupted_runs.py" in card
    assert json.loads((folder / "config.json").read_text())["train"]["lora_rank"] == 2
