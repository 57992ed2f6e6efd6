"""The training rows, made once for all the tests of the demo."""

import pytest

from selfrag_jax.demo.rows import ROWS, training_rows


@pytest.fixture(scope="session")
def rows() -> list[dict[str, str]]:
    """All training rows of the committed adapter."""
    return list(training_rows(seed=0, count=ROWS))
