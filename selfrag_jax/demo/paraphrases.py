"""More ways to ask, for a training that is about wordings: whatever the words of a question, the answer is the same.

They stand in `paraphrases.toml`, under the first template of the table that they add to (of `relations`, `questions`,
`plain` or `rows`). None is a held-out wording or nearly one. The corpus, the evaluation and the trainings before
do not know of them.
"""

import functools
import tomllib
from importlib import resources


@functools.cache
def paraphrases() -> dict[str, tuple[str, ...]]:
    """First template → further templates."""
    table = resources.files("selfrag_jax.demo").joinpath("paraphrases.toml").read_text(encoding="utf-8")
    return {known: tuple(more) for known, more in tomllib.loads(table).items()}
