"""The training rows, made once for all the tests of the demo."""

import pytest

from selfrag_jax.demo.recipes import RECIPES, SEEDS
from selfrag_jax.demo.rows import ROWS, training_rows


@pytest.fixture(scope="session", params=SEEDS)
def recipe(request) -> str:
    """Each of the recipes of the demo's trainings."""
    return request.param


@pytest.fixture(scope="session")
def rows(recipe) -> list[dict[str, str]]:
    """All rows of one of the trainings."""
    return list(training_rows(SEEDS[recipe], ROWS, recipe))


@pytest.fixture(scope="session")
def longer(recipe, rows) -> list[dict[str, str]]:
    """The same rows, and as many again of the recipes that are mostly practice: some kinds are rare in them."""
    rare = RECIPES[recipe].asked != "train"
    return list(training_rows(SEEDS[recipe], 2 * ROWS, recipe)) if rare else rows
