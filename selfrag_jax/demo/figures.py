"""The figures of the demo's evaluation: what is counted over which answers, and what is asked of each."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from selfrag_jax.demo.evaluation import KINDS
from selfrag_jax.demo.judged import Judged
from selfrag_jax.demo.passages import WORDINGS, Wording
from selfrag_jax.evaluation.intervals import Share, difference, share

Key = tuple[str, str, Wording]  # kind or "popqa", mode, wording
GOOD = ("Relevant", "Fully supported")  # the labels that are no miss
MARGIN = 0.20  # by how much a model has to beat classifiers that understand nothing


@dataclasses.dataclass(frozen=True)
class Labels:
    """Readings of one group on labelled rows: whether each is right, by the model and by the baselines."""

    model: list[bool]
    units: list[str]  # the draw that each row came of: a twin or a contrast belongs to its row
    baselines: dict[str, list[bool]]
    parts: dict[str, list[bool]]  # of the model, by the kind of passage or statement


@dataclasses.dataclass(frozen=True)
class Results:
    """Everything that figures are counted over."""

    judged: Mapping[Key, Sequence[Judged]]
    labels: Mapping[tuple[str, Wording], Labels]
    found: Mapping[tuple[str, Wording], Sequence[tuple[int, int]]]  # of a question's gold passages those retrieved, all
    seconds: Mapping[Key, float]  # what answering took
    turned: Sequence[bool]  # of each plain question whether training shows it turned round (`turned`)


@dataclasses.dataclass(frozen=True)
class Figure:
    """One line of the table. `must` and `stretch` are shares; `below`: what counts is to stay under them.

    A `must` of 0 asks for more than nothing: the whole interval above 0.
    """

    name: str
    share: Share
    must: float | None = None
    stretch: float | None = None
    below: bool = False
    points: bool = False  # a difference in points, not a share

    @property
    def verdict(self) -> str:
        """stretch | must | short of it | "" where nothing is asked."""
        if self.must is None:
            return ""
        if self.must == 0:
            return "must" if self.share.low > 0 else "short of it"
        sign = -1 if self.below else 1
        if self.stretch is not None and sign * self.share.value >= sign * self.stretch:
            return "stretch"
        return "must" if sign * self.share.value >= sign * self.must else "short of it"


def rights(judged: Sequence[Judged], unaided: bool = False) -> list[bool]:
    """Whether each is right, and if `unaided` none was retrieved for that needed no retrieval."""
    return [one.right and not (unaided and one.looked and not one.needs_retrieval) for one in judged]


def units(judged: Sequence[Judged]) -> list[str]:
    """What each is about: the questions about one entity are drawn together in the intervals."""
    return [one.unit for one in judged]


def accuracy(judged: Sequence[Judged]) -> Share:
    """The share that is right."""
    return share(rights(judged), units=units(judged))


def figures(results: Results) -> list[Figure]:
    """The table's lines, in order; those of cells that were not run are left out."""
    made = [*_answers(results), *_labels(results), *_long(results)]
    for wording in WORDINGS:
        made += [*_decisions(results, wording), *_citations(results, wording)]
    made += [
        Figure(
            f"recall@5 of the gold passages, {kind}{_suffix(wording)}",
            share([hit for hit, _ in hits], [all_of for _, all_of in hits]),
        )
        for (kind, wording), hits in results.found.items()
    ]
    return [figure for figure in made if figure.share.n]


def _suffix(wording: Wording) -> str:
    return "" if wording == "train" else ", held-out wordings"


def _of(results: Results, kind: str, mode: str, wording: Wording = "train") -> Sequence[Judged]:
    return results.judged.get((kind, mode, wording), ())


def _answers(results: Results) -> list[Figure]:
    short, never = _of(results, "short", "adaptive"), _of(results, "short", "never")
    # Without a passage the value counts in whatever words it comes: there the model has no sentence to copy.
    off = difference(rights(short), [one.value_stands for one in never], units(short))
    stands = share([one.value_stands for one in short], units=units(short))
    lost = {kind: _lost(results, [kind]) for kind in KINDS}
    worst = max((one for one in lost.values() if one.n), key=lambda one: one.value, default=share([]))
    return [
        Figure("short answers, gold passage", accuracy(_of(results, "short", "gold")), 0.97, 0.99),
        Figure("short answers, adaptive, from the index", accuracy(short), 0.90, 0.95),
        Figure("the same, judged by the value alone", stands),
        Figure("points lost with retrieval off", off, 0.60, points=True),
        Figure("points lost by held-out wordings, short", lost["short"], 0.06, 0.03, below=True, points=True),
        Figure("points lost by held-out wordings, all", _lost(results, KINDS), 0.06, 0.03, below=True, points=True),
        Figure("points lost by held-out wordings, worst kind", worst, 0.06, 0.03, below=True, points=True),
        Figure("true/false, adaptive", accuracy(_of(results, "boolean", "adaptive")), 0.90, 0.95),
        Figure("four options, adaptive", accuracy(_of(results, "options", "adaptive")), 0.90, 0.95),
        Figure("PopQA capitals, factbook passage", accuracy(_of(results, "popqa", "gold")), 0.85, 0.92),
        Figure("PopQA capitals, from the index", accuracy(_of(results, "popqa", "adaptive")), 0.80, 0.90),
        *_plain(results),
    ]


def _plain(results: Results) -> list[Figure]:
    plain = rights(_of(results, "plain", "adaptive"), unaided=True)
    fresh = [hit for hit, turned in zip(plain, results.turned, strict=True) if not turned] if plain else []
    return [
        Figure("plain instructions without retrieval, right", share(plain), 0.90),
        Figure("the same, without those that training shows turned round", share(fresh)),
    ]


def _lost(results: Results, kinds: Sequence[str]) -> Share:
    """Points between the two wordings of the same questions, of the kinds that were answered in both."""
    both = [[_of(results, kind, "adaptive", wording) for wording in WORDINGS] for kind in kinds]
    known, new = ([one for pair in both if all(pair) for one in pair[number]] for number in range(2))
    return difference(rights(known, unaided=True), rights(new, unaided=True), units(known))


def _decisions(results: Results, wording: Wording) -> list[Figure]:
    every = [one for kind in KINDS for one in _of(results, kind, "adaptive", wording)]
    asked = (0.98, 0.995) if wording == "train" else (None, None)
    needing = [one for one in every if one.needs_retrieval]
    needed = share([one.wanted for one in needing], units=units(needing))
    spared = [not one.looked for one in every if not one.needs_retrieval]
    return [
        Figure(f"retrieves where it is needed{_suffix(wording)}", needed, *asked),
        Figure(f"does not where it is not{_suffix(wording)}", share(spared), *asked),
    ]


def _labels(results: Results) -> list[Figure]:
    asked = {"isrel": ("IsRel, near-miss passages", 0.96, 0.99), "issup": ("IsSup, near-miss statements", 0.93, 0.97)}
    made = []
    for (group, wording), labels in results.labels.items():
        name, must, stretch = asked[group]
        if wording != "train":
            made.append(Figure(name + _suffix(wording), share(labels.model, units=labels.units)))
            continue
        made.append(Figure(name, share(labels.model, units=labels.units), must, stretch))
        made.append(Figure(f"{name}: the misses alone", _misses(labels), must, stretch))
        made += [Figure(f"{name}: {part}", share(hits)) for part, hits in labels.parts.items()]
        for baseline, hits in labels.baselines.items():
            made.append(Figure(f"{name}: {baseline}", share(hits, units=labels.units)))
            ahead = difference(labels.model, hits, labels.units)
            wanted = None if baseline == "word overlap" else MARGIN
            made.append(Figure(f"{name}: points ahead of {baseline}", ahead, wanted, points=True))
    return made


def _misses(labels: Labels) -> Share:
    """The rows whose right label is the bad one: half of the rows or fewer, and the harder half."""
    return share([hit for part, hits in labels.parts.items() if part not in GOOD for hit in hits])


def _citations(results: Results, wording: Wording) -> list[Figure]:
    every = [one for kind in KINDS for one in _of(results, kind, "adaptive", wording)]
    precision, recall = _cited([one for one in every if one.needs_retrieval])
    musts = ((0.90, 0.95), (0.85, 0.92)) if wording == "train" else ((None, None), (None, None))
    made = [
        Figure(f"citation precision{_suffix(wording)}", precision, *musts[0]),
        Figure(f"citation recall{_suffix(wording)}", recall, *musts[1]),
    ]
    for kind in KINDS:
        precision, recall = _cited([one for one in _of(results, kind, "adaptive", wording) if one.needs_retrieval])
        made.append(Figure(f"citation precision, {kind}{_suffix(wording)}", precision))
        made.append(Figure(f"citation recall, {kind}{_suffix(wording)}", recall))
    return made


def _cited(citing: Sequence[Judged]) -> tuple[Share, Share]:
    """Precision over all citations and recall over all sentences of these answers."""
    cited, about = [one.cited for one in citing], units(citing)
    precision = share([c.supporting for c in cited], [c.citations for c in cited], about)
    return precision, share([c.supported for c in cited], [c.sentences for c in cited], about)


def _long(results: Results) -> list[Figure]:
    made = []
    for form, name, must in (("tell", "tell me about X", 0.30), ("both", "two facts", None)):
        long = [one for one in _of(results, "long", "adaptive") if one.form == form]
        one_look = [one for one in _of(results, "long", "one_look") if one.form == form]
        about = units(long)
        lost = difference(rights(long), rights(one_look), about) if one_look else share([])
        told, told_once = ([one.share_told for one in answers] for answers in (long, one_look))
        facts_lost = difference(told, told_once, about) if one_look else share([])
        sound = [one.right and one.cited.supported == one.cited.sentences for one in long]
        twice = share([one.retrievals > 1 and one.passages > 1 for one in long], units=about)
        made += [
            Figure(f"{name}: right", accuracy(long)),
            Figure(f"{name}: right, and every sentence supported", share(sound, units=about)),
            Figure(f"{name}: two retrievals, each with a citation that holds", twice, must),
            Figure(f"{name}: points lost with the second retrieval off", lost, 0, points=True),
            Figure(f"{name}: facts told, of those wanted", share(told, units=about)),
            Figure(f"{name}: points of these lost with the second retrieval off", facts_lost, 0, points=True),
        ]
        made += _continued(name, long)
    return made


def _continued(name: str, long: Sequence[Judged]) -> list[Figure]:
    """How often an answer goes on with the passage in force: for two facts that should be where one states both."""
    apart = [one for one in long if not one.one_passage]
    together = [one for one in long if one.one_passage]
    return [
        Figure(f"{name}: continues, one passage states all", share([one.continued > 0 for one in together])),
        Figure(f"{name}: continues, no passage states all", share([one.continued > 0 for one in apart])),
    ]


def questions_per_second(results: Results, kind: str, mode: str) -> float:
    """Over the whole cell; NaN where it was not run."""
    key: Key = (kind, mode, "train")
    return len(results.judged[key]) / results.seconds[key] if key in results.judged else float(np.nan)
