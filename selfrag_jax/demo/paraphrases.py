"""More ways to ask, for a training that is about wordings: whatever the words of a question, the answer is the same.

They stand under the first template of the table that they add to (of `relations`, `questions`, `plain` or `rows`):
those of the fourth training in `paraphrases.toml`, those that later ones add in files of their own.
None is a held-out wording or nearly one. The corpus, the evaluation and the trainings before do not know of them.
"""

import functools
import tomllib
from importlib import resources
from typing import Literal

_FILES = ("paraphrases.toml", "paraphrases_plain.toml", "paraphrases_weak.toml", "paraphrases_last.toml",
          "paraphrases_facts.toml", "paraphrases_claims.toml")  # fmt: skip
NAMES = ("varied", "varied_more", "varied_most", "varied_last", "varied_facts", "varied_claims")
FILES = {name: _FILES[:count] for count, name in enumerate(NAMES, 1)}
EVERY: Literal["varied_claims"] = "varied_claims"  # the last name: all of them


@functools.cache
def paraphrases(wording: str = "varied") -> dict[str, tuple[str, ...]]:
    """First template → further templates, of one of the `FILES`."""
    found: dict[str, tuple[str, ...]] = {}
    for name in FILES[wording]:
        text = resources.files("selfrag_jax.demo").joinpath(name).read_text(encoding="utf-8")
        for known, more in tomllib.loads(text).items():
            found[known] = (*found.get(known, ()), *more)
    return found


# What may stand before a question or an instruction and changes nothing.
FRAMES = (
    "Question: {q}", "Q: {q}", "Task: {q}", "1. {q}", "> {q}", "Hello! {q}", "Good morning. {q}", "A quick one: {q}",
    "Next question: {q}", "Here is another. {q}", "Now this: {q}", "One more: {q}", "Please answer. {q}",
    "Answer me this: {q}", "I have a question. {q}", "I was wondering: {q}", "This is what I want to know. {q}",
    "Can you help me with this? {q}", "Please do this for me. {q}", "Think, and then answer. {q}",
    "It is for a quiz. {q}", "My teacher gave me this: {q}", "Somebody asked me this: {q}", "Sorry to ask. {q}",
)  # fmt: skip
FRAMED = 0.25  # how often one does
