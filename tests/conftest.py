"""Where the tests find real tokenizers, weights and rows that are not part of the repository."""

import os
import pathlib

import pytest

DEFAULT_ASSETS = pathlib.Path(__file__).parent.parent.parent / "shared" / "assets"


@pytest.fixture(scope="session")
def assets() -> pathlib.Path:
    """The folder of third-party test data (`SELFRAG_TEST_ASSETS`, by default ../shared/assets)."""
    folder = pathlib.Path(os.environ.get("SELFRAG_TEST_ASSETS", DEFAULT_ASSETS))
    if not folder.is_dir():
        if os.environ.get("SELFRAG_REQUIRE_ASSETS") == "1":
            pytest.fail(f"SELFRAG_REQUIRE_ASSETS=1, but there is no folder {folder}")
        pytest.skip(f"no test assets at {folder}")
    return folder
