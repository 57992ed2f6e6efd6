"""Plain instructions, which need no retrieval: some fifty kinds, each answer right by construction.

Left out is what a model of this size cannot do for words and numbers it was not trained on: arithmetic, Roman numerals,
sorting, translations, rhymes, proverbs, odd ones out.
"""

import dataclasses
import functools
import itertools
import random
import zlib
from collections.abc import Sequence

from selfrag_jax.demo import plain_words as w
from selfrag_jax.demo.names import capitalise, words
from selfrag_jax.demo.passages import Wording, wordings
from selfrag_jax.evaluation.metrics import has_words

HELD_OUT_PERCENT = 12  # of the fillings of a kind, chosen by hash; kinds of few fillings hold none out
FEW = 8
# Kinds with two answers to choose from: one that names both, or takes one for the other, has the right word in it too.
WHOLE = frozenset({"even_odd", "larger", "smaller"})


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of instruction. `{f}` in a wording is a filling; `answer` holds `{f}` and `{a}`, the filling's answer.

    The last wording is for held-out wordings only. A filling's answer may be several, "glad|joyful": training gives the
    first, and any of them in an answer makes it right.
    """

    key: str
    wordings: tuple[str, ...]
    answer: str
    fillings: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class PlainTask:
    """A plain instruction, its answer, and the strings of which one makes another answer right."""

    kind: str
    instruction: str
    answer: str
    accepted: tuple[str, ...]
    metric: str  # "exact" where the form is the answer, else "words" beside those of the instruction's filling
    ignore: tuple[str, ...] = ()


def with_article(word: str) -> str:
    """The word after "a" or "an"."""
    return ("an " if word[0] in "aeiou" else "a ") + word


def _number_word(number: int) -> str:
    tens = words("twenty thirty forty fifty sixty seventy eighty ninety")
    if number <= 20:
        return w.NUMBER_WORDS[number]
    ten, one = divmod(number, 10)
    return tens[ten - 2] + (f"-{w.NUMBER_WORDS[one]}" if one else "")


def _numbers(rng: random.Random) -> list[Kind]:
    every = [(i, j) for i in range(1, 100) for j in range(1, 100) if i != j]
    pairs = rng.sample(every, 300)
    steps = [(start, step) for start in range(1, 13) for step in (1, 2, 3, 5, 10)]
    series = [(", ".join(str(s + d * i) for i in range(4)), str(s + 4 * d)) for s, d in steps]
    return [
        Kind("even_odd", ("Is {f} even or odd?", "Is the number {f} odd or even?",
            "Say if {f} is an even or an odd number."),
             "{f} is {a}.", tuple((str(i), "odd" if i % 2 else "even") for i in range(1, 100))),
        Kind("larger", ("Which is larger, {f}?", "Which number is bigger: {f}?", "Give the greater one of {f}."),
             "The larger number is {a}.", tuple((f"{i} or {j}", str(max(i, j))) for i, j in pairs[:150])),
        Kind("smaller", ("Which is smaller, {f}?", "Which number is less: {f}?", "Give the lesser one of {f}."),
             "The smaller number is {a}.", tuple((f"{i} or {j}", str(min(i, j))) for i, j in pairs[150:])),
        Kind("series", ("Complete the series: {f}, ...", "What comes next? {f}, ...",
            "Continue with one number: {f}, ..."),
             "The next number is {a}.", tuple(series)),
        Kind("number_word", ("Write the number {f} in words.", "How do you write {f} in letters?",
            "Spell out the number {f}."),
             "{a}", tuple((str(i), _number_word(i)) for i in range(1, 100))),
        Kind("digits", ("Write {f} in digits.", "Which digits stand for {f}?", "Turn the words {f} into a number."),
             "{a}", tuple((_number_word(i), str(i)) for i in range(1, 100))),
    ]  # fmt: skip


def _units() -> list[Kind]:
    def made(unit: str, factor: int, other: str, top: int) -> tuple[tuple[str, str], ...]:
        return tuple((f"{i} {unit}", f"{i * factor} {other}") for i in range(2, top))

    form = ("Convert {f} to %s.", "How many %s are {f}?", "Express {f} in %s.")

    def ways(unit: str) -> tuple[str, ...]:
        return tuple(f % unit for f in form)

    return [
        Kind("metres", ways("centimetres"), "{f} are {a}.", made("metres", 100, "centimetres", 21)),
        Kind("kilometres", ways("metres"), "{f} are {a}.", made("kilometres", 1000, "metres", 21)),
        Kind("kilograms", ways("grams"), "{f} are {a}.", made("kilograms", 1000, "grams", 21)),
    ]  # fmt: skip


def _grammar() -> list[Kind]:
    return [
        Kind("plural", ("Write the plural of {f}.", "What is the plural of {f}?", "Give the plural of the noun {f}.",
                        "How does {f} look in the plural?"), "The plural of {f} is {a}.", w.PLURALS),
        Kind("past", ("What is the past tense of {f}?", "Write the past tense of the verb {f}.",
            "Put the verb {f} into the past.",
                      "Which form of {f} is used for yesterday?"), "The past tense of {f} is {a}.", w.PASTS),
        Kind("comparative", ("What is the comparative of {f}?", "Write the comparative form of {f}.",
            "Give the form of {f} that goes with than."),
             "The comparative of {f} is {a}.", w.COMPARATIVES),
        Kind("superlative", ("What is the superlative of {f}?", "Write the superlative form of {f}.",
            "Which form of {f} means the most?"),
             "The superlative of {f} is {a}.", w.SUPERLATIVES),
        Kind("ing", ("Write the -ing form of {f}.", "What is the -ing form of the verb {f}?",
            "Add -ing to the verb {f}."),
             "The -ing form of {f} is {a}.", w.ING_FORMS),
        Kind("adverb", ("Make an adverb from {f}.", "What is the adverb of {f}?",
            "Turn the adjective {f} into an adverb."),
             "The adverb of {f} is {a}.", w.ADVERBS),
        Kind("article", ("Write a or an before the word {f}.", "Which article goes with {f}, a or an?",
            "Put a or an in front of {f}."),
             "{a}", tuple((n, with_article(n)) for n in w.NOUNS)),
        Kind("opposite", ("What is the opposite of {f}?", "Give the opposite of the word {f}.",
            "Name an antonym of {f}.",
                          "Which word means the contrary of {f}?"), "The opposite of {f} is {a}.", w.OPPOSITES),
        Kind("synonym", ("Give a synonym of {f}.", "What is another word for {f}?",
            "Name a word that means the same as {f}.",
                         "Which word could replace {f}?"), "Another word for {f} is {a}.", w.SYNONYMS),
        Kind("acronym", ("What is the abbreviation of {f}?", "Abbreviate {f}.", "Shorten {f} to its initials."),
            "{a}", w.ACRONYMS),
        Kind("negative", ("Make this sentence negative: {f}", "Say the opposite with not: {f}", "Deny this: {f}"),
            "{a}",
             tuple((f"The {n} is {a}.", f"The {n} is not {a}.") for n in w.NOUNS[:40] for a in ("big", "red", "old"))),
        Kind("question", ("Turn this sentence into a question: {f}", "Make a question of this: {f}",
            "Ask instead of stating: {f}"),
             "{a}", tuple((f"The {n} is {a}.", f"Is the {n} {a}?") for n in w.NOUNS[:40] for a in ("big", "new",
             "here"))),
    ]  # fmt: skip


def _letters(rng: random.Random) -> list[Kind]:
    words = w.NOUNS
    lists = [rng.sample(words, rng.choice((2, 3, 4))) for _ in range(200)]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    numbered = [(f"{rng.choice(('We bought', 'They saw', 'She counted', 'I need'))} {n} {thing}.", str(n))
                for n in range(2, 60) for thing in rng.sample(("apples", "books", "chairs", "birds", "stamps"),
                2)]  # fmt: skip
    return [
        Kind("reverse_list", ("Reverse this list: {f}.", "Write this list backwards: {f}.",
            "Begin with the last one: {f}."), "{a}",
             tuple((", ".join(t), ", ".join(t[::-1])) for t in lists)),
        Kind("count_list", ("How many words are in this list? {f}", "Count the words: {f}",
            "Give the number of items: {f}"),
             "There are {a} words.", tuple((", ".join(t), w.NUMBER_WORDS[len(t)]) for t in lists)),
        Kind("first_of_list", ("What is the first word of this list? {f}", "Name the first item: {f}",
            "Which one stands first? {f}"),
             "The first word is {a}.", tuple((", ".join(t), t[0]) for t in lists)),
        Kind("last_of_list", ("What is the last word of this list? {f}", "Name the last item: {f}",
            "Which one stands at the end? {f}"),
             "The last word is {a}.", tuple((", ".join(t), t[-1]) for t in lists[::-1])),
        Kind("upper", ("Write the word {f} in capital letters.", "Put {f} into upper case.",
            "Change {f} to capitals."), "{a}",
             tuple((n, n.upper()) for n in w.SHORT_WORDS)),
        Kind("lower", ("Write the word {f} in small letters.", "Put {f} into lower case.",
            "Change {f} to lower-case letters."), "{a}",
             tuple((n.upper(), n) for n in w.SHORT_WORDS)),
        Kind("first_letter", ("What is the first letter of {f}?", "Which letter does {f} begin with?",
            "With what letter does {f} start?"),
             "The first letter of {f} is {a}.", tuple((n, n[0]) for n in words)),
        Kind("spell", ("Spell the word {f}.", "How do you spell {f}?", "Give the letters of {f} one by one."), "{a}",
             tuple((n, "-".join(n)) for n in w.SHORT_WORDS)),
        Kind("letter_after", ("Which letter comes after {f} in the alphabet?", "What letter follows {f}?",
            "Name the letter next after {f}."),
             "The letter after {f} is {a}.", tuple(itertools.pairwise(alphabet))),
        Kind("repeat", ("Repeat this word three times: {f}.", "Say {f} three times.", "Write {f} thrice."), "{a}",
             tuple((n, f"{n} {n} {n}") for n in words)),
        Kind("capitalise", ("Capitalise this sentence: {f}", "Start this sentence with a capital letter: {f}",
                            "Give this a capital at the beginning: {f}"), "{a}",
             tuple((s + ".", capitalise(s) + ".") for s in w.SENTENCE_LIST if s[0].islower())),
        Kind("full_stop", ("Add a full stop to this sentence: {f}", "End this sentence properly: {f}",
            "Put a period at the end: {f}"),
             "{a}", tuple((capitalise(s), capitalise(s) + ".") for s in w.SENTENCE_LIST)),
        Kind("extract", ("Which number is in this sentence? {f}", "Take the number out of this sentence: {f}",
                         "What number do you read here? {f}"), "The number is {a}.", tuple(numbered)),
        Kind("repeat_sentence", ("Repeat after me: {f}", "Say this again: {f}", "Echo this: {f}"), "{a}",
             tuple((capitalise(s) + ".", capitalise(s) + ".") for s in w.SENTENCE_LIST)),
    ]  # fmt: skip


def _calendar() -> list[Kind]:
    def following(names: Sequence[str], step: int) -> tuple[tuple[str, str], ...]:
        return tuple((n, names[(i + step) % len(names)]) for i, n in enumerate(names))

    return [
        Kind("day_after", ("Which day comes after {f}?", "What day follows {f}?", "If today is {f}, what is tomorrow?"),
             "The day after {f} is {a}.", following(w.DAYS, 1)),
        Kind("day_before", ("Which day comes before {f}?", "What day is right before {f}?",
            "If today is {f}, what was yesterday?"),
             "The day before {f} is {a}.", following(w.DAYS, -1)),
        Kind("month_after", ("Which month comes after {f}?", "What month follows {f}?",
            "After {f}, which month begins?"),
             "The month after {f} is {a}.", following(w.MONTHS, 1)),
        Kind("month_number", ("What is the {f} month of the year?", "Name the {f} month.", "Which month is the {f}?"),
             "The {f} month is {a}.", tuple(zip(w.ORDINALS, w.MONTHS, strict=True))),
    ]  # fmt: skip


def _world() -> list[Kind]:
    lists, members = [], []
    for name, things in w.CATEGORIES.items():
        called = "|".join(filter(None, (capitalise(with_article(name)) + ".", w.CATEGORY_NAMES.get(name))))
        members += [(thing, called) for thing in things]
        lists.append((with_article(name), "|".join(things)))
    return [
        Kind("category", ("What kind of thing is this: {f}?", "Name the kind of thing: {f}",
                          "Classify {f} in one word."), "{a}", tuple((t, called) for t, called in members
                                                                    if t not in ("orange", "violet"))),
        Kind("example", ("Name {f}.", "Give me an example of {f}.", "Think of {f} and name it."), "{a}", tuple(lists)),
        Kind("young", ("What is the young of {f} called?", "Name the young of {f}.",
            "What do you call the baby of {f}?"),
             "The young of {f} is called {a}.", tuple((with_article(f), with_article(y)) for f, y in w.YOUNG)),
        Kind("sound", ("What sound does {f} make?", "How does {f} sound?", "Describe the noise of {f} in one verb."),
             "{f} {a}.", tuple((with_article(f), s) for f, s in w.SOUNDS)),
        Kind("colour", ("What colour is {f}?", "Which colour does {f} have?", "Name the colour of {f}."),
            "The colour of {f} is {a}.",
             w.COLOURS_OF),
        Kind("mix", ("What colour do you get by mixing {f}?", "Mix {f}: which colour is it?",
            "Which paint results from {f}?"),
             "Mixing {f} gives {a}.", w.MIXES),
        Kind("tool", ("What do you need to {f}?", "Which tool is used to {f}?", "With what would you {f}?"),
            "To {f} you need {a}.",
             w.TOOLS),
        Kind("sides", ("How many sides does {f} have?", "Count the sides of {f}.", "{f}: how many sides?"),
            "{f} has {a} sides.", w.SIDES),
    ]  # fmt: skip


def _manners() -> list[Kind]:
    things = ("the gift", "your help", "the book", "the dinner", "the flowers", "your advice", "the ride",
    "the invitation",
              "your time", "the letter", "the lesson", "the concert tickets")  # fmt: skip
    deeds = ("being late", "the noise", "the mistake", "the delay", "the broken cup", "missing the meeting",
    "the long wait",
             "forgetting your birthday", "the mess", "the wrong number", "my bad handwriting")  # fmt: skip
    wishes = (("birthday", "Happy birthday! I wish you a wonderful year."), ("wedding",
    "Congratulations on your wedding! I wish you both great happiness."),
              ("new job", "Congratulations on your new job! I wish you every success."), ("exam",
               "Good luck with your exam! I am sure you will do well."),
              ("journey", "Have a good journey! Come back safe and sound."), ("new house",
               "Congratulations on your new house! May you be happy there."))  # fmt: skip
    asks = ("close the door", "open the window", "pass the salt", "call me back", "wait here", "help me",
    "send the letter",
            "turn off the light", "speak slowly", "bring some water", "give me the book", "show me the way",
            "clean the table",
            "sign the form", "come in", "sit down", "write it down", "lower your voice")  # fmt: skip
    names = ("Anna", "Ben", "Clara", "Emma", "Max", "Nina", "Oscar", "Sara", "Tom", "Lucy")
    return [
        Kind("thanks", ("Write a thank-you note for {f}.", "Say thank you for {f}.", "Express thanks for {f}."),
             "Thank you very much for {a}. I really appreciate it.", tuple((t, t) for t in things)),
        Kind("sorry", ("Apologise for {f}.", "Write an apology for {f}.", "Say sorry for {f}."),
            "I am very sorry for {a}.",
             tuple((d, d) for d in deeds)),
        Kind("wish", ("Write a short wish for a {f}.", "Write a card for a {f}.",
            "What would you write on a card for a {f}?"), "{a}", wishes),
        Kind("polite", ("Say this politely: {f}", "Rewrite this politely: {f}", "Put this more kindly: {f}"), "{a}",
             tuple((capitalise(a) + ".", f"Could you please {a}?") for a in asks)),
        Kind("greet", ("Greet {f}.", "Say hello to {f}.", "Write a greeting for {f}."), "Hello {a}, nice to see you!",
             tuple((n, n) for n in names)),
        Kind("goodbye", ("Say goodbye to {f}.", "Write a farewell to {f}.", "Take leave of {f}."),
            "Goodbye {a}, see you soon!",
             tuple((n, n) for n in names)),
        Kind("sentence", ("Write a sentence with the word {f}.", "Use the word {f} in a sentence.",
            "Make up a sentence that contains {f}."),
             "I can see {a} over there.", tuple((n, with_article(n)) for n in w.NOUNS)),
    ]  # fmt: skip


@functools.cache
def kinds() -> tuple[Kind, ...]:
    """All kinds of plain instruction, with their fillings."""
    rng = random.Random(7)
    return (*_numbers(rng), *_units(), *_grammar(), *_letters(rng), *_calendar(), *_world(), *_manners())


def filling_held_out(kind: Kind, filling: str) -> bool:
    """Whether no training row has this filling. "mouse" is trained: its plural is the README's example."""
    if len(kind.fillings) <= FEW or filling == "mouse":
        return False
    return zlib.crc32(f"{kind.key}:{filling}".encode()) % 100 < HELD_OUT_PERCENT


def task(kind: Kind, filling: tuple[str, str], rng: random.Random, wording: Wording = "train") -> PlainTask:
    """The instruction of a kind for one filling."""
    f, a, *others = filling[0], *filling[1].split("|")
    instruction = capitalise(rng.choice(wordings(kind.wordings, "ask", wording)).format(f=f))
    answer = a if kind.answer == "{a}" else capitalise(kind.answer.format(f=f, a=a))
    if kind.answer == "{a}" and not others:
        return PlainTask(kind.key, instruction, answer, (a,), "exact")
    if f == a or kind.key in WHOLE:
        return PlainTask(kind.key, instruction, answer, (answer,), "exact")
    said_again = has_words(a, [f])  # "an apple" for "apple": the filling belongs to the answer
    return PlainTask(kind.key, instruction, answer, (a, *others), "words", () if said_again else (f,))


def random_task(rng: random.Random, side: str = "train", wording: Wording = "train") -> PlainTask:
    """A task of a random kind, with a filling of the side "train" or "heldout"."""
    kind = rng.choice([k for k in kinds() if side == "train" or len(fillings(k, side))])
    return task(kind, rng.choice(fillings(kind, side)), rng, wording)


@functools.cache
def fillings(kind: Kind, side: str) -> tuple[tuple[str, str], ...]:
    """The fillings of a kind that training has, or that are held out."""
    return tuple(f for f in kind.fillings if filling_held_out(kind, f[0]) == (side == "heldout"))
