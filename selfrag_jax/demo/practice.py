"""More fillings for the kinds of plain instruction that a first training leaves weak, for a second one.

Two sorts were weak on words and numbers not trained on: kinds that follow a rule (compare two numbers, spell, count),
of which the first training shows too few cases to tell the rule from the cases, and kinds that ask what the base model
knows (synonyms, tools, sounds), where a few more cases teach what is asked for. The fillings that are held out of a
kind stay held out here: both go by `plain.filling_held_out`.
"""

import functools
import random
from collections.abc import Mapping
from types import MappingProxyType

from selfrag_jax.demo import plain_words as w
from selfrag_jax.demo.passages import Wording
from selfrag_jax.demo.plain import PlainTask, filling_held_out, fillings, kinds, task, with_article

RULE_WEIGHT = 4  # how often a kind of the first sort is drawn, relative to 1 for a kind that was not weak
KNOWLEDGE_WEIGHT = 3
# Kinds that two trainings did not teach, and how much more a third practises them: every number was even, spelling went
# wrong after two letters. "article" is here because it was unlearnt while parity was learnt.
STUBBORN = {"spell": 6.0, "even_odd": 3.0, "article": 8.0, "number_word": 2.0, "letter_after": 2.0, "young": 2.0}
# The same for the sixth training: kinds that five left weak, most of them in wordings that they had not seen.
WEAK = {
    "spell": 3.0, "repeat": 2.0, "comparative": 5.0, "article": 5.0, "example": 5.0, "goodbye": 4.0, "opposite": 4.0,
    "series": 3.0, "tool": 2.0, "plural": 2.0, "question": 2.0, "polite": 2.0, "reverse_list": 1.5, "young": 1.5,
    "synonym": 1.5, "smaller": 1.5,
}  # fmt: skip
# And for the seventh.
LAST = {
    "category": 3.0, "repeat": 2.0, "comparative": 6.0, "question": 5.0, "spell": 2.5, "article": 5.0, "tool": 2.0,
    "young": 2.0, "example": 4.0, "opposite": 2.0, "goodbye": 2.0, "polite": 2.0, "lower": 1.5, "letter_after": 1.5,
}  # fmt: skip

_SYNONYMS = w.pairs("""
glad:happy, afraid:scared, quick:fast, clever:smart, ill:sick, silent:quiet, tiny:small, wealthy:rich, stone:rock,
trash:garbage, story:tale, close:near, pretty:beautiful, odd:strange, difficult:hard, yell:shout, leap:jump,
pick:choose, finish:end, start:begin, bucket:pail, couch:sofa, film:movie, shop:store, car:automobile, child:kid,
doctor:physician, lawyer:attorney, infant:baby, woman:lady, autumn:fall, soil:earth, sea:ocean, journey:trip,
answer:reply, present:gift, taste:flavour, smell:scent, trade:deal, ship:boat, mend:repair, shut:close, allow:permit,
forbid:ban, build:construct, collect:gather, connect:join, damage:harm, defend:protect, demand:ask, discover:find,
enemy:foe, evil:wicked, exam:test, fortunate:lucky, glue:paste, grab:seize, guess:suppose, hate:detest, honest:truthful,
keep:retain, lazy:idle, middle:centre, naughty:bad, obtain:get, polite:courteous, rescue:save, ruin:destroy,
shiny:bright, slim:thin, spoil:ruin, stare:gaze, sweet:sugary, thief:robber, vanish:disappear, victory:win
""")
_TOOLS = w.pairs("""
drink tea:a cup, water the plants:a watering can, light a candle:a match, climb to the roof:a ladder,
catch a fish:a fishing rod, play tennis:a racket, see far away:a telescope, write on a board:chalk,
erase a pencil line:an eraser, carry your books:a bag, cut the grass:a lawn mower, cut down a tree:a saw,
drill a hole:a drill, pull out a nail:pliers, iron a shirt:an iron, bake a cake:an oven, keep food cold:a fridge,
dry your hair:a hair dryer, send an email:a computer, look at your face:a mirror, wash your hands:soap,
stir the soup:a spoon, weigh flour:a scale, rake the leaves:a rake, tie a parcel:string, peel a potato:a peeler,
clean the carpet:a vacuum cleaner, see in the dark:a torch, find the way:a map, unlock the door:a key
""")
_SOUNDS = w.pairs("""
chick:peeps, turkey:gobbles, goose:honks, goat:bleats, elephant:trumpets, parrot:squawks, cricket:chirps, dove:coos,
puppy:yaps, kitten:mews, hen:clucks, tiger:growls, hyena:laughs, seal:barks, fly:buzzes, raven:croaks, pony:neighs
""")
_YOUNG = w.pairs("""
wolf:cub, fox:cub, tiger:cub, rabbit:kit, eagle:eaglet, seal:pup, whale:calf, elephant:calf, donkey:foal, hare:leveret,
fish:fry, turkey:poult, spider:spiderling, giraffe:calf, zebra:foal, pigeon:squab, toad:tadpole, otter:pup
""")
_ADVERBS = w.pairs("""
neat:neatly, nice:nicely, rare:rarely, real:really, rude:rudely, secret:secretly, serious:seriously, sharp:sharply,
silent:silently, smooth:smoothly, strange:strangely, strict:strictly, strong:strongly, sweet:sweetly, tight:tightly,
usual:usually, weak:weakly, wild:wildly, wise:wisely, wrong:wrongly, busy:busily, hungry:hungrily, noisy:noisily,
lucky:luckily, heavy:heavily, greedy:greedily, steady:steadily, crazy:crazily, cheerful:cheerfully, final:finally,
honest:honestly, eager:eagerly, fierce:fiercely, bright:brightly, rapid:rapidly, deep:deeply, bold:boldly
""")
_MIXES = w.pairs("""
white and blue:light blue, white and green:light green, black and blue:dark blue, blue and black:dark blue,
black and green:dark green, green and black:dark green, red and black:dark red, black and red:dark red,
yellow and white:light yellow, white and yellow:light yellow, red and green:brown, green and red:brown
""")


_MORE_WORDS = w.words("""
able acid aim air arch area army ash back bad ball band bank bar barn base bath beach bean beat bell belt bend best
bill bit bite blow blue boat body bold bone boot bowl boy bread brick broom brown bulb burn bush cake calm camp can
cap card care cart case cash cave chain chart cheek chef chin city clay cliff club coal coast coin comb cook cool copy
corn cost crab crew crop crown cry cube curb dark date dawn day deal dear deck deed deep deer desk dew dig dirt dish
dive dock doll dome dot down draw dress drip drop dry dust duty each east edge elm end envy even exit face fact fair
fall far farm fast fat feed felt fern fig file film fin fire firm fit flag flat flood floor flow flute fog folk food
foot fork form fort four frame free fruit fuel full fund fur gain gap gate gear gift girl goal goat gold grain grape
grey grid grin grip grow gulf gun hail hair half hall ham harp hawk hay heap heat heel herb hill hint hip hive hole
honey hook hope horn host hour hug hut idea inch ink iron isle ivy jail jaw job join joke jump kiss knee knot lace lad
lake land lane last law lawn lead leap left lens lid lift lime line list loan lock loft log long loop loud love luck
lump lung mail main mark mask mast mat meal meat mill mint mist mix mole month moss moth mud nail name neck need news
nine noise noon nose note nut oar oats oil old open oven own pace pack page pain pair palm pan park part path peak
pear peel pie pile pine pipe plan plum pole pond pool
""")
_MORE_MEMBERS = {
    "A fruit.": "apricot fig papaya pineapple strawberry raspberry blueberry date lime coconut",
    "An animal.": "fox deer mouse elephant monkey zebra giraffe camel donkey squirrel beaver panda",
    "A colour.": "beige turquoise scarlet crimson navy maroon",
    "A vegetable.": "broccoli cauliflower lettuce celery cucumber pumpkin radish asparagus",
    "A tool.": "screwdriver pickaxe crowbar file spanner hoe sickle",
    "An instrument.": "trombone clarinet oboe saxophone tuba banjo accordion harmonica",
    "A garment.": "trousers blouse dress pullover cardigan vest apron shawl",
    "A bird.": "parrot penguin stork heron seagull falcon hawk raven owlet woodpecker",
    "A drink.": "wine beer cider soda smoothie",
    "A vehicle.": "motorcycle lorry scooter tractor taxi ambulance",
    "A flower.": "daffodil carnation iris pansy lilac marigold peony",
    "A sport.": "basketball volleyball baseball rugby badminton fencing wrestling skiing",
}


def _numbers() -> dict[str, list[tuple[str, str]]]:
    pairs = [(i, j) for i in range(1, 100) for j in range(1, 100) if i != j]
    return {
        "even_odd": [(str(i), "odd" if i % 2 else "even") for i in range(100, 1000)],
        "larger": [(f"{i} or {j}", str(max(i, j))) for i, j in pairs],
        "smaller": [(f"{i} or {j}", str(min(i, j))) for i, j in pairs],
    }


def _words() -> dict[str, list[tuple[str, str]]]:
    rng = random.Random(11)
    tables = (w.PLURALS, w.OPPOSITES, w.SYNONYMS, w.PASTS, w.COMPARATIVES, w.YOUNG, w.SOUNDS)
    known = {f for table in tables for f, _ in table if f.isalpha()}
    every = sorted({*known, *w.NOUNS, *w.SHORT_WORDS, *_MORE_WORDS})
    short = [word for word in every if len(word) <= 5]
    lists = [rng.sample(every, rng.choice((2, 3, 4))) for _ in range(1500)]
    phrases = [rng.sample(every, rng.choice((2, 3, 3, 4))) for _ in range(600)]
    return {
        "spell": [(word, "-".join(word)) for word in short],
        "repeat": [(word, f"{word} {word} {word}") for word in every],
        "upper": [(word, word.upper()) for word in short],
        "lower": [(word.upper(), word) for word in short],
        "first_letter": [(word, word[0]) for word in every],
        "count_list": [(", ".join(t), w.NUMBER_WORDS[len(t)]) for t in lists],
        "reverse_list": [(", ".join(t), ", ".join(t[::-1])) for t in lists],
        "acronym": [(" ".join(t), "".join(word[0] for word in t).upper()) for t in phrases],
    }


@functools.cache
def more() -> dict[str, tuple[tuple[str, str], ...]]:
    """Fillings by kind, beside those of `plain.kinds` and without the held-out ones. Kinds that have none to add but
    were weak have an empty entry."""
    added: dict[str, list[tuple[str, str]]] = {
        **_numbers(), **_words(), "number_word": [], "digits": [], "letter_after": [], "month_after": [],
        "adverb": list(_ADVERBS),
        "category": [(member, name) for name, members in _MORE_MEMBERS.items() for member in members.split()],
        "synonym": list(_SYNONYMS), "tool": list(_TOOLS), "mix": list(_MIXES),
        "sound": [(with_article(f), a) for f, a in _SOUNDS],
        "young": [(with_article(f), with_article(a)) for f, a in _YOUNG],
    }  # fmt: skip
    found = {}
    for kind in kinds():
        if kind.key in added:
            known = {f for f, _ in kind.fillings}
            fresh = dict(added[kind.key])
            found[kind.key] = tuple(
                (f, a) for f, a in fresh.items() if f not in known and not filling_held_out(kind, f)
            )
    return found


_ASK_KNOWLEDGE = frozenset({"synonym", "tool", "sound", "young", "mix", "adverb", "category"})


@functools.cache
def _weights() -> dict[str, float]:
    weak = {key: KNOWLEDGE_WEIGHT if key in _ASK_KNOWLEDGE else RULE_WEIGHT for key in more()}
    return {kind.key: weak.get(kind.key, 1) for kind in kinds()}


def random_practice(
    rng: random.Random, count: int, emphasis: Mapping[str, float] = MappingProxyType({}), wording: Wording = "train"
) -> list[PlainTask]:
    """Up to `count` training tasks of one random kind, weak kinds more often; fillings from the kind's own and `more`.

    Several of a kind, since what they have in common is learnt where it is all that they have in common. `emphasis`:
    how much more often than that a kind is drawn, `STUBBORN` or `WEAK`.
    """
    kind = rng.choices(kinds(), [weight * emphasis.get(key, 1) for key, weight in _weights().items()])[0]
    every = (*fillings(kind, "train"), *more().get(kind.key, ()))
    return [task(kind, filling, rng, wording) for filling in rng.sample(every, min(count, len(every)))]
