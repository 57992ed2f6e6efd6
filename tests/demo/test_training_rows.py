"""Training rows: their grammar, and their labels worked out again from the text and the facts alone."""

import importlib
import itertools
import random
import re
from collections import Counter

import pytest

from selfrag_jax import reflection
from selfrag_jax.data.datasets import DEMO
from selfrag_jax.demo import plain, practice, questions
from selfrag_jax.demo.facts import entities
from selfrag_jax.demo.paraphrases import EVERY
from selfrag_jax.demo.passages import WORDINGS, passages, wordings
from selfrag_jax.demo.recipes import RECIPES, SEEDS
from selfrag_jax.demo.relations import HELD_OUT_WORDINGS, RELATIONS
from selfrag_jax.demo.rows import VERIFY, labelled_rows, training_rows
from selfrag_jax.demo.sheets import VARIANTS, sheet
from tests.demo.reader import unframed

SEGMENT = re.compile(
    r"(?:\[Retrieval\]<paragraph>(?P<title>[^\n]+)\n(?P<text>[^\n]+)</paragraph>(?P<rel>\[Relevant\]|\[Irrelevant\])"
    r"|(?P<cont>\[Continue to Use Evidence\]))(?P<said>[^\[]+)"
    r"(?P<sup>\[Fully supported\]|\[Partially supported\]|\[No support / Contradictory\])?"
)


@pytest.fixture(scope="module")
def corpus():
    prose = [p for wording in WORDINGS for p in passages(wording)]
    unasked = {recipe.unasked for recipe in RECIPES.values()}
    sheets = [sheet(p, variant, most) for p in passages() for variant in range(VARIANTS) for most in unasked]
    return {(p.title, p.text): p for p in (*prose, *sheets)}


ALONE = ("demo_plain", "demo_practice")  # kinds of rows without twins and contrasts
VERDICT = re.compile(r", so (?:this is (true|false)|the answer is ([A-D]))\.$")


def segments(output: str) -> list[re.Match]:
    body = re.sub(r"\[Utility:[1-5]\]$", "", output)
    found, at = [], 0
    while at < len(body):
        match = SEGMENT.match(body, at)
        assert match, body[at:]
        found.append(match)
        at = match.end()
    return found


def relevant_sentence(output: str) -> str:
    """The first sentence after [Relevant]; empty where there is none."""
    found = re.search(r"\[Relevant\]([^\[]+)\[", output)
    return found[1] if found else ""


def test_grammar(rows):
    for row in rows:
        assert set(row) == {"instruction", "input", "output", "id", "dataset_name"}
        assert row["instruction"].strip() == row["instruction"] and row["instruction"] and row["input"] == ""
        output = row["output"]
        assert len(re.findall(r"\[Utility:[1-5]\]", output)) == 1 and re.search(r"\[Utility:[1-5]\]$", output)
        reflection.parse(output)
        if output.startswith("[No Retrieval]"):
            assert re.fullmatch(r"\[No Retrieval\][^\[]+\[Utility:5\]", output), output
            continue
        for match in segments(output):
            supported = match["sup"] is not None
            assert supported == (match["rel"] == "[Relevant]" or match["cont"] is not None), output
        assert not segments(output)[0]["cont"], output
    assert len({row["id"] for row in rows}) == len({(r["instruction"], r["output"]) for r in rows}) == len(rows)


def test_held_out_rows_carry_right_labels_too(corpus):
    for wording in WORDINGS:
        rows = list(labelled_rows("heldout", 2, 800, wording))
        seen = {token for token in (*reflection.ISSUP, *reflection.ISREL) for row in rows if token in row["output"]}
        assert seen == {*reflection.ISSUP, *reflection.ISREL}
        test_support_labels_follow_from_passage_and_sentence(rows, corpus)
        test_relevance_follows_from_the_question(rows, corpus)
        test_truth_values_and_options_agree_with_the_facts(rows)


def test_support_labels_follow_from_passage_and_sentence(rows, corpus):
    """Every label again, from the sentences that the passage in force supports and nothing else."""
    table = {e.key: e for e in entities()}
    counts: Counter[str] = Counter()
    for row in rows:
        if row["output"].startswith("[No Retrieval]"):
            continue
        for match in segments(row["output"]):
            if match["title"]:
                passage = corpus[match["title"], match["text"]]
                entity = table[passage.entity]
                made = [RELATIONS[r].answer.format(x=entity.name, v=entity.facts[r]) for r in passage.relations]
                supported = {m[0].upper() + m[1:] for m in made}
            said = VERDICT.sub(".", match["said"])
            if match["sup"] is None:
                assert said.startswith("The passage "), row
                continue
            counts[match["sup"]] += 1
            lower = {s.removesuffix(".").casefold() for s in supported}
            whole = said.removesuffix(".").casefold()
            if whole in lower:
                verdict = "[Fully supported]"
            else:
                cuts = [m.start() for m in re.finditer(", and ", whole)]
                halves = [(whole[:c] in lower) + (whole[c + 6 :] in lower) for c in cuts] or [0]
                verdict = ("[No support / Contradictory]", "[Partially supported]", "[Fully supported]")[max(halves)]
            assert verdict == match["sup"], row
    assert min(counts.values()) > 0.03 * sum(counts.values())


def test_relevance_follows_from_the_question(rows, corpus):
    """Relevant means that the sentence's entity and fact are in the passage; irrelevant ones lack what is asked."""
    table = {e.key: e for e in entities()}
    for row in rows:
        if row["dataset_name"] not in ("demo_short_irrelevant", "demo_options_irrelevant"):
            continue
        (match,) = segments(row["output"])
        passage, entity = corpus[match["title"], match["text"]], None
        noun = match["said"].removeprefix("The passage does not give ").removesuffix(".")
        entity = table[passage.entity]
        assert noun not in {RELATIONS[r].noun.format(x=entity.name) for r in passage.relations}, row
        assert row["output"].endswith("[Utility:1]")


def test_truth_values_and_options_agree_with_the_facts(rows):
    for row in rows:
        said = relevant_sentence(row["output"])
        verdict = VERDICT.search(said)
        kind = row["dataset_name"].removesuffix("_contrast")
        closed = kind in ("demo_boolean", "demo_options")
        assert (verdict is not None) == closed, row
        if verdict is None:
            continue
        sentence = VERDICT.sub(".", said)
        if kind == "demo_boolean":
            assert (sentence in row["instruction"]) == (verdict[1] == "true"), row
        else:
            given = re.search(r"(?s).*\sA\. (.+?)\sB\. (.+?)\sC\. (.+?)\sD\. (.+)$", row["instruction"])
            options = dict(zip("ABCD", given.groups(), strict=True))
            assert options[verdict[2]] in sentence, row
            assert len(set(options.values())) == 4


def test_notes_are_answered_by_what_they_say(longer):
    """The value of the note is the one answered; it is the one claimed, or stands under the letter, or it is not."""
    verdicts: Counter[str] = Counter()
    for row in longer:
        if not row["dataset_name"].startswith("demo_note"):
            continue
        value, verdict = re.fullmatch(
            r"\[No Retrieval\]The note says (.+), so (.+)\.\[Utility:5\]", row["output"]
        ).groups()
        note, claim = re.match(
            r"(?:The note says|Read the note:) (.+?)\. (?=Wh|Find|True|Does)(.*)", unframed(row["instruction"]), re.S
        ).groups()
        assert note == value, row
        verdicts[verdict] += 1
        if verdict.startswith("the answer is"):
            assert re.search(rf"\b{verdict[-1]}\. {re.escape(value)}(?:\s[B-D]\. |$)", claim), row
        else:
            assert (value in claim) == (verdict == "this is true"), row
    assert len(verdicts) == 6 and min(verdicts.values()) > 0.1 * sum(verdicts.values())


def test_dictated_statements_are_the_only_unsupported_ones(rows):
    for row in rows:
        if "[No support" in row["output"] or "[Partially" in row["output"]:
            assert row["dataset_name"] in ("demo_verify", "demo_verify_contrast")
            said = relevant_sentence(row["output"])
            assert said and said in row["instruction"]


def test_a_twin_follows_its_row(rows, corpus, recipe):
    """The same question, and a passage that does not state what the row's passage was asked for."""
    table = {e.key: e for e in entities()}
    twins = [(a, b) for a, b in itertools.pairwise(rows) if b["dataset_name"].endswith("_irrelevant")]
    assert len(twins) > sum(not row["dataset_name"].startswith(ALONE) for row in rows) / 6
    mix = RECIPES[recipe].mix
    mostly_practice = mix.get("practice", 0) > sum(mix.values()) / 2  # which has no twins
    assert len(twins) > len(rows) / (20 if mostly_practice else 10)
    same_entity = 0
    for row, twin in twins:
        assert twin["dataset_name"] == row["dataset_name"] + "_irrelevant"
        assert twin["instruction"] == row["instruction"]
        assert reflection.RELEVANT in row["output"] and reflection.RELEVANT not in twin["output"]
        given, missing = (corpus[m["title"], m["text"]] for m in (segments(r["output"])[0] for r in (row, twin)))
        if missing.entity != given.entity:
            continue
        assert row["dataset_name"] != "demo_long", row
        same_entity += 1
        entity, said = table[given.entity], row["output"].casefold()
        asked = {r for r in given.relations if questions.statement(entity, RELATIONS[r])[:-1].casefold() in said}
        assert not asked & set(missing.relations), (row, twin)
    assert same_entity > len(twins) / 20


def test_a_contrast_follows_its_row(rows, recipe):
    """The same passage and the same words but for one value, or options in another order, and another verdict."""
    contrasts = [(a, b) for a, b in itertools.pairwise(rows) if b["dataset_name"].endswith("_contrast")]
    kinds = Counter(row["dataset_name"] for row in rows)
    for kind, wanted in {**RECIPES[recipe].contrasts, "note": 1.0}.items():  # as often as the recipe says
        assert kinds[f"demo_{kind}_contrast"] / kinds[f"demo_{kind}"] == pytest.approx(wanted, abs=0.07), kind
    for row, other in contrasts:
        assert other["dataset_name"] == row["dataset_name"] + "_contrast"
        assert [r["id"].partition("#")[2] for r in (row, other)] == ["0", "1"]
        assert row["id"].partition("#")[0] == other["id"].partition("#")[0]
        kind = row["dataset_name"].removeprefix("demo_")
        if kind != "note":
            one, two = (segments(r["output"])[0] for r in (row, other))
            assert (one["title"], one["text"]) == (two["title"], two["text"])
        said = [re.split(r"\]", r["output"])[-3 if kind != "note" else 1].partition("[")[0] for r in (row, other)]
        verdicts = [VERDICT.search(text) for text in said]
        if kind == "verify":
            assert one["sup"] != two["sup"], row
        else:
            assert verdicts[0][0] != verdicts[1][0], row
        if kind == "options":
            assert sorted(re.findall(r"\S+", row["instruction"])) == sorted(re.findall(r"\S+", other["instruction"]))
            continue
        a, b = (re.findall(r"\S+", r["instruction"]) for r in (row, other))
        alike = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
        alike += sum(
            1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(a[::-1], b[::-1], strict=False))
        )
        assert max(len(a), len(b)) - alike <= 12, "one value is all that differs"


def test_no_held_out_wording_in_training(rows):
    """The last wordings of the tables never occur: neither in questions nor in passages."""
    text = "\n".join(row["instruction"] + "\n" + row["output"] for row in rows)
    sentences = set(re.split(r"(?<=[.?:])\s", text))
    for relation in RELATIONS.values():
        for templates, count in ((relation.full, "full"), (relation.short, "short"), (relation.ask, "ask")):
            train, held_out = templates[: -HELD_OUT_WORDINGS[count]], templates[-HELD_OUT_WORDINGS[count] :]
            for template in held_out:
                assert template not in train
                pattern = re.escape(template).replace(r"\{x\}", ".{2,40}").replace(r"\{v\}", ".{1,60}")
                hits = [s for s in sentences if re.fullmatch(pattern, s, re.IGNORECASE)]
                loose = [re.escape(t).replace(r"\{x\}", ".{2,40}").replace(r"\{v\}", ".{1,60}") for t in train]
                assert not [s for s in hits if not any(re.fullmatch(p, s, re.IGNORECASE) for p in loose)], template


def test_no_held_out_question_form_in_training(rows):
    asked = [unframed(row["instruction"]) for row in rows]
    forms = (questions.ASK_NOUN, questions.TRUE_FALSE, questions.CHOOSE, questions.TELL, questions.TELL_BOTH, VERIFY)
    for templates in forms:
        for used, template in [(False, templates[-1]), *((True, t) for t in templates[:-1])]:
            pattern = re.sub(r"\\\{\w\\\}", lambda _: r"[^\n]{1,160}", re.escape(template))
            assert any(re.fullmatch(pattern, a) for a in asked) == used, template
    for kind in plain.kinds():
        pattern = re.escape(kind.wordings[-1][:1].upper() + kind.wordings[-1][1:]).replace(r"\{f\}", ".+")
        assert not [a for a in asked if re.fullmatch(pattern, a)], kind.wordings[-1]


def test_mix_and_determinism(rows, recipe):
    # Of the first rows: later on most short plain instructions are there already, and none is drawn twice.
    share = Counter(row["dataset_name"].removeprefix("demo_") for row in rows[:2000])
    wanted = RECIPES[recipe]
    mix = wanted.mix
    for kind, parts in mix.items():
        assert share[kind] / sum(share[k] for k in mix) == pytest.approx(parts / sum(mix.values()), abs=0.04), kind
    share = Counter(row["dataset_name"].removeprefix("demo_") for row in rows)

    def about(often: float, count: int) -> object:
        return pytest.approx(often, abs=max(0.05, 3 * (often * (1 - often) / max(count, 1)) ** 0.5))

    for kind, often in wanted.twins.items():
        alone = share[kind] - share[f"{kind}_contrast"]  # a row has a twin or a contrast
        assert share[f"{kind}_irrelevant"] / max(alone, 1) == about(often, alone), kind
    for kind, often in wanted.contrasts.items():
        assert share[f"{kind}_contrast"] / share[kind] == about(often, share[kind]), kind
    tokens = Counter(re.findall("|".join(map(re.escape, reflection.REFLECTION)), " ".join(r["output"] for r in rows)))
    assert set(tokens) == set(reflection.REFLECTION)
    supports = sum(tokens[t] for t in reflection.ISSUP)
    for token in (reflection.PARTIALLY, reflection.NO_SUPPORT):
        assert 0.03 < tokens[token] / supports < (0.1 if recipe == "demo" else 0.3)
    seed = SEEDS[recipe]
    assert rows[:200] == list(training_rows(seed, 200, recipe))
    assert rows[:50] != list(training_rows(seed + 1, 50, recipe))


def test_each_recipe_is_what_a_config_trains_on(recipe):
    """The seed that the tables of this package assume is the one that the training really takes."""
    config = importlib.import_module(f"configs.{recipe.replace('demo', 'demo_generator')}").get_config()
    assert (config.data.rows, config.seed) == (recipe, SEEDS[recipe])
    assert tuple(RECIPES) == DEMO


def test_nothing_held_out_of_a_plain_kind_is_trained(rows):
    """No held-out filling is asked about, in any training wording, in any recipe."""
    asked = {unframed(row["instruction"]) for row in rows if row["output"].startswith("[No Retrieval]")}
    forms = [(k, f) for k in plain.kinds() for f, _ in k.fillings if plain.filling_held_out(k, f)]
    assert len(forms) > 200
    for kind, filling in forms:
        for wording in (*kind.wordings, *wordings(kind.wordings, "ask", EVERY)):
            instruction = wording.format(f=filling)
            assert instruction[0].upper() + instruction[1:] not in asked


@pytest.mark.parametrize(
    "emphasis", [practice.STUBBORN, practice.WEAK, practice.LAST], ids=["stubborn", "weak", "last"]
)
def test_a_kind_that_stayed_weak_is_practised_more(emphasis):
    keys = tuple(emphasis)

    def share(emphasis):
        rng = random.Random(0)
        drawn = [practice.random_practice(rng, 1, emphasis)[0].kind for _ in range(4000)]
        return {key: drawn.count(key) / len(drawn) for key in keys}

    usual, more = share({}), share(emphasis)
    assert all(usual[key] > 0 for key in emphasis)
    assert all(more[key] > 1.4 * usual[key] for key, factor in emphasis.items() if factor >= 3)


def test_practice_answers_are_right(rows, recipe):
    """The answers of kinds that follow a rule, worked out again."""
    if recipe == "demo":
        return

    def filling(key: str, asked: str) -> str:
        """What the instruction, in some wording of the kind, is about."""
        kind = next(kind for kind in plain.kinds() if kind.key == key)
        ways = wordings(kind.wordings, "ask", EVERY)
        found = {m[1] for way in ways if (m := re.fullmatch(re.escape(way).replace(r"\{f\}", "(.+?)", 1), asked, re.I))}
        assert found, (key, asked)
        return min(found, key=len)  # "{f}: even or odd?" takes "Parity of 7: even or odd?" for its own too

    seen: Counter[str] = Counter()
    for row in rows:
        asked, said = unframed(row["instruction"]), re.sub(r"\[[^\]]+\]", "", row["output"])
        if compared := re.fullmatch(r"The (larger|smaller) number is (\d+)\.", said):
            numbers = re.fullmatch(r"(\d+) or (\d+)", filling(compared[1], asked)).groups()
            pick = max if compared[1] == "larger" else min
            assert int(compared[2]) == pick(map(int, numbers)), row
            seen["compared"] += 1
        elif parity := re.fullmatch(r"(\d+) is (even|odd)\.", said):
            assert filling("even_odd", asked) == parity[1] and parity[2] == ("even", "odd")[int(parity[1]) % 2], row
            seen["parity"] += 1
        elif re.fullmatch(r"\w(-\w)+", said):
            assert said.replace("-", "") == filling("spell", asked).lower(), row
            seen["spelt"] += 1
    assert min(seen.values()) > 50 and len(seen) == 3, seen
