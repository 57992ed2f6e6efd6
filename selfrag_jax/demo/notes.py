"""Exercises without a passage for the moves of closed questions: compare two values, and find a value's letter.

They are a third as long as a question with its passage, so many can be seen for little: "The note says Oslo. True or
false: the note says Bergen." In pairs that differ in one value, as the questions themselves.
"""

import random
from collections.abc import Sequence

from selfrag_jax.demo.passages import Wording, wordings
from selfrag_jax.demo.questions import LETTERS

# The last of each tuple is for held-out wordings only.
SAME = ("The note says {v}. True or false: the note says {w}.", "The note says {v}. Does it say {w}? True or false?",
        "Read the note: {v}. True or false: it says {w}.")  # fmt: skip
WHICH = ("The note says {v}. Which of these does it say?\nA. {a}\nB. {b}\nC. {c}\nD. {d}",
         "The note says {v}. Which of these is it? A. {a} B. {b} C. {c} D. {d}",
         "Read the note: {v}. Find it here.\nA. {a}\nB. {b}\nC. {c}\nD. {d}")  # fmt: skip


def same(values: Sequence[str], rng: random.Random, wording: Wording = "train") -> list[tuple[str, str]]:
    """A true and a false claim about one note, in random order: instruction and answer of each."""
    note, other, *_ = values
    form = rng.choice(wordings(SAME, "ask", wording))
    pair = [
        (form.format(v=note, w=claim), f"The note says {note}, so this is {verdict}.")
        for claim, verdict in ((note, "true"), (other, "false"))
    ]
    return rng.sample(pair, 2)


def which(values: Sequence[str], rng: random.Random, wording: Wording = "train") -> list[tuple[str, str]]:
    """Two notes and the same four options: instruction and answer of each."""
    options = rng.sample(values, 4)
    form = rng.choice(wordings(WHICH, "ask", wording))
    shown = dict(zip("abcd", options, strict=True))
    return [
        (form.format(v=note, **shown), f"The note says {note}, so the answer is {LETTERS[options.index(note)]}.")
        for note in rng.sample(options, 2)
    ]
