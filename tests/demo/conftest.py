"""The training rows, made once for all the tests of the demo."""

import pytest

from selfrag_jax.demo.rows import ROWS, SEEDS, training_rows


@pytest.fixture(scope="session", params=SEEDS)
def recipe(request) -> str:
    """Each of the recipes of the demo's trainings."""
    return request.param


@pytest.fixture(scope="session")
def rows(recipe) -> list[dict[str, str]]:
    """All rows of one of the trainings."""
    return list(training_rows(SEEDS[recipe], ROWS, recipe))
