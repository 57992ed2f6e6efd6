"""The progress bar of every long job, on stderr."""

import sys
from typing import Any

LOG_INTERVAL = 30.0  # seconds between two lines where stderr is a file or a pipe


def bar(total: int, done: int, unit: str, description: str = "", **settings: Any):
    """A tqdm bar that starts at `done` of `total`; on a terminal it moves at once, in a log it says so now and then.

    What was done before does not count in the rate. `settings` are tqdm's.
    """
    from tqdm import tqdm  # not wherever this module is imported: it takes a moment

    interval = 0.1 if sys.stderr.isatty() else LOG_INTERVAL
    return tqdm(total=total, initial=done, unit=unit, desc=description, mininterval=interval, **settings)
