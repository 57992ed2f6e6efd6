"""How long a passage is in tokens, estimated without a tokenizer: the corpus must not depend on one."""

import functools
import math
import re

from selfrag_jax.demo.groups import GROUPS
from selfrag_jax.demo.relations import RELATIONS

_PIECE = re.compile(r"[^\W\d_]+|\d|[^\w\s]|_")
# Words of values that are as common as those of the templates.
_COMMON = (
    "kilometres square million degrees north south feet grams cubic centimetre America Africa Asia Europe International"
)


@functools.cache
def _template_words() -> frozenset[str]:
    templates = [t for r in RELATIONS.values() for t in (*r.full, *r.short)]
    templates += [title for groups in GROUPS.values() for group in groups for title in group.titles]
    return frozenset(_PIECE.findall(" ".join([*templates, _COMMON])))


@functools.cache
def _word_tokens(word: str) -> int:
    if word in _template_words():
        return 1 if len(word) <= 10 else 2
    if word.isascii() and word.isupper():
        return len(word)
    rare = sum(c in "jkqwxyz" for c in word.lower())
    return math.ceil(0.5 * len(word) + 0.6 * rare) + 2 * sum(not c.isascii() for c in word)


def token_estimate(text: str) -> int:
    """How many SmolLM2 tokens a text has at most: digits and marks singly, names by their length.

    Generous, so that a limit kept by it is kept by the real tokenizer; a test checks that over the whole corpus.
    """
    return sum(map(_word_tokens, _PIECE.findall(text)))
