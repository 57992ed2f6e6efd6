"""The notebook's cells run in order, as Jupyter would run them, and it is kept without outputs."""

import json
import pathlib

import pytest

from configs.demo import get_config
from selfrag_jax.paths import resolve

NOTEBOOKS = sorted((pathlib.Path(__file__).parent.parent / "examples").glob("*.ipynb"))


def code_cells(notebook: pathlib.Path) -> list[dict]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_there_is_one():
    assert NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(notebook):
    """What a run prints differs from machine to machine, and would be a change in every commit."""
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code_cells(notebook))
    for cell in code_cells(notebook):
        compile("".join(cell["source"]), notebook.name, "exec")


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_run_in_order(notebook, capsys):
    if not (resolve(get_config().retrieval.index_dir) / "manifest.json").is_file():
        pytest.skip("needs the demo's index: make demo")
    names: dict = {"__name__": "__main__"}
    for cell in code_cells(notebook):
        exec(compile("".join(cell["source"]), notebook.name, "exec"), names)
    shown = capsys.readouterr().out
    assert shown.count("Vaduz [1]") >= 2 and "mice" in shown and "IsSup" in shown
    assert "Bern" not in names["engine"].answer("What is the capital of Liechtenstein?").text
