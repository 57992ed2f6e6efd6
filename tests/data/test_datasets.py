"""The ArrayRecord copy of the rows."""

import json
import pathlib

import pytest

import selfrag_jax.demo
from selfrag_jax.config import Config
from selfrag_jax.data import datasets
from selfrag_jax.data.rows import Row
from selfrag_jax.errors import UserError

ROWS = [Row(f"Ask {i}: é", f"[No Retrieval]{i} – ü[Utility:5]", "in" * (i % 2), f"id{i}", "set") for i in range(7)]


@pytest.fixture
def config(tmp_path):
    config = Config()
    config.data.rows = str(tmp_path / "rows.jsonl")
    config.data.data_dir = str(tmp_path / "data")
    write(config, ROWS)
    return config


def write(config, rows):
    with open(config.data.rows, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(vars(row)) + "\n" for row in rows)


def read(config):
    source, _ = datasets.prepare(config, "unused")
    return [source[i] for i in range(len(source))]


def test_rows_come_back_unchanged_and_in_order(config):
    assert read(config) == ROWS


def test_the_copy_is_made_once_and_anew_for_other_rows(config, monkeypatch):
    first = datasets.prepare(config, "unused")[1]
    with monkeypatch.context() as patch:
        patch.setattr(datasets, "rows_of", lambda config: pytest.fail("the rows were made again"))
        assert datasets.prepare(config, "unused")[1] == first
    write(config, ROWS[:3])
    assert read(config) == ROWS[:3]
    assert datasets.prepare(config, "unused")[1] != first


def test_every_file_that_the_demos_rows_come_from_counts(config, monkeypatch):
    config.data.rows = "demo"
    known, read_bytes = datasets.origin_hash(config), pathlib.Path.read_bytes
    files = [path for path in pathlib.Path(selfrag_jax.demo.__file__).parent.iterdir() if path.is_file()]
    assert {path.suffix for path in files} == {".py", ".toml"}
    for changed in files:
        with monkeypatch.context() as patch:
            patch.setattr(
                pathlib.Path, "read_bytes", lambda path, changed=changed: read_bytes(path) + b"#" * (path == changed)
            )
            assert datasets.origin_hash(config) != known, changed


def test_a_copy_without_its_manifest_is_made_again(config, tmp_path):
    read(config)
    (manifest,) = (tmp_path / "data").glob("*/manifest.json")
    manifest.write_text("{")
    assert read(config) == ROWS


def test_faults_of_the_user_are_named(config, tmp_path):
    write(config, [])
    with pytest.raises(UserError, match="holds no rows"):
        read(config)
    config.data.rows = str(tmp_path / "none.jsonl")
    with pytest.raises(UserError, match=r"cannot be read"):
        read(config)
    config.data.rows = ""
    with pytest.raises(UserError, match="rows is empty"):
        read(config)
