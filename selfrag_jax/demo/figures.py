"""The figures of the demo's evaluation: what is counted over which answers, and what is asked of each."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from selfrag_jax.demo.evaluation import KINDS
from selfrag_jax.demo.judged import Judged
from selfrag_jax.demo.passages import WORDINGS, Wording
from selfrag_jax.evaluation.intervals import Share, difference, share

Key = tuple[str, str, Wording]  # kind or "popqa", mode, wording
MARGIN = 0.20  # by how much a model has to beat classifiers that understand nothing


@dataclasses.dataclass(frozen=True)
class Labels:
    """Readings of one group on labelled rows: whether each is right, by the model and by the baselines."""

    model: list[bool]
    baselines: dict[str, list[bool]]
    parts: dict[str, list[bool]]  # of the model, by the kind of passage or statement


@dataclasses.dataclass(frozen=True)
class Results:
    """Everything that figures are counted over."""

    judged: Mapping[Key, Sequence[Judged]]
    labels: Mapping[tuple[str, Wording], Labels]
    found: Mapping[tuple[str, Wording], Sequence[tuple[int, int]]]  # of a question's gold passages those retrieved, all
    seconds: Mapping[Key, float]  # what answering took


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


def rights(judged: Sequence[Judged]) -> list[bool]:
    """Whether each is right."""
    return [one.right for one in judged]


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
    def right(kind: str, mode: str) -> Share:
        return share(rights(_of(results, kind, mode)))

    adaptive, never = rights(_of(results, "short", "adaptive")), rights(_of(results, "short", "never"))
    worst = max((_lost(results, kind) for kind in KINDS), key=lambda lost: lost.value)
    short_lost = _lost(results, "short")
    plain = [one.right and not one.retrievals for one in _of(results, "plain", "adaptive")]
    return [
        Figure("short answers, gold passage", right("short", "gold"), 0.97, 0.99),
        Figure("short answers, adaptive, from the index", right("short", "adaptive"), 0.90, 0.95),
        Figure("points lost with retrieval off", difference(adaptive, never), 0.60, points=True),
        Figure("points lost by held-out wordings, short", short_lost, 0.06, 0.03, below=True, points=True),
        Figure("points lost by held-out wordings, worst kind", worst, 0.06, 0.03, below=True, points=True),
        Figure("true/false, adaptive", right("boolean", "adaptive"), 0.90, 0.95),
        Figure("four options, adaptive", right("options", "adaptive"), 0.90, 0.95),
        Figure("PopQA capitals, factbook passage", right("popqa", "gold"), 0.85, 0.92),
        Figure("PopQA capitals, from the index", right("popqa", "adaptive"), 0.80, 0.90),
        Figure("plain instructions without retrieval, right", share(plain), 0.90),
    ]


def _lost(results: Results, kind: str) -> Share:
    """Points between the two wordings of the same questions."""
    known, new = (rights(_of(results, kind, "adaptive", wording)) for wording in ("train", "heldout"))
    return difference(known, new) if known and new else share([])


def _decisions(results: Results, wording: Wording) -> list[Figure]:
    every = [one for kind in KINDS for one in _of(results, kind, "adaptive", wording)]
    asked = (0.98, 0.995) if wording == "train" else (None, None)
    needed = [one.wanted for one in every if one.needs_retrieval]
    spared = [not one.wanted for one in every if not one.needs_retrieval]
    return [
        Figure(f"retrieves where it is needed{_suffix(wording)}", share(needed), *asked),
        Figure(f"does not where it is not{_suffix(wording)}", share(spared), *asked),
    ]


def _labels(results: Results) -> list[Figure]:
    asked = {"isrel": ("IsRel, near-miss passages", 0.96, 0.99), "issup": ("IsSup, near-miss statements", 0.93, 0.97)}
    made = []
    for (group, wording), labels in results.labels.items():
        name, must, stretch = asked[group]
        if wording != "train":
            made.append(Figure(name + _suffix(wording), share(labels.model)))
            continue
        made.append(Figure(name, share(labels.model), must, stretch))
        made += [Figure(f"{name}: {part}", share(hits)) for part, hits in labels.parts.items()]
        for baseline, hits in labels.baselines.items():
            made.append(Figure(f"{name}: {baseline}", share(hits)))
            ahead = difference(labels.model, hits)
            wanted = None if baseline == "word overlap" else MARGIN
            made.append(Figure(f"{name}: points ahead of {baseline}", ahead, wanted, points=True))
    return made


def _citations(results: Results, wording: Wording) -> list[Figure]:
    every = [one for kind in KINDS for one in _of(results, kind, "adaptive", wording)]
    cited = [one.cited for one in every if one.needs_retrieval]
    precision = share([c.supporting for c in cited], [c.citations for c in cited])
    recall = share([c.supported for c in cited], [c.sentences for c in cited])
    musts = ((0.90, 0.95), (0.85, 0.92)) if wording == "train" else ((None, None), (None, None))
    return [
        Figure(f"citation precision{_suffix(wording)}", precision, *musts[0]),
        Figure(f"citation recall{_suffix(wording)}", recall, *musts[1]),
    ]


def _long(results: Results) -> list[Figure]:
    made = []
    for form, name, must in (("tell", "tell me about X", 0.30), ("both", "two facts", None)):
        long = [one for one in _of(results, "long", "adaptive") if one.form == form]
        one_look = [one for one in _of(results, "long", "one_look") if one.form == form]
        lost = difference(rights(long), rights(one_look)) if one_look else share([])
        made += [
            Figure(f"{name}: right", share(rights(long))),
            Figure(f"{name}: cites passages of two retrievals", share(_two_looks(long)), must),
            Figure(f"{name}: points lost with the second retrieval off", lost, 0, points=True),
            Figure(f"{name}: continues with a passage", share([one.continued > 0 for one in long])),
        ]
    return made


def _two_looks(judged: Sequence[Judged]) -> list[bool]:
    return [one.retrievals > 1 and one.passages > 1 for one in judged]


def questions_per_second(results: Results, kind: str, mode: str) -> float:
    """Over the whole cell; NaN where it was not run."""
    key: Key = (kind, mode, "train")
    return len(results.judged[key]) / results.seconds[key] if key in results.judged else float(np.nan)
