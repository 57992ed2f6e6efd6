"""The demo's evaluation for people: its tables, and answers to be read one by one."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from selfrag_jax.demo.evaluation import KINDS
from selfrag_jax.demo.figures import Figure, Results, accuracy, questions_per_second
from selfrag_jax.demo.passages import Wording
from selfrag_jax.evaluation.intervals import share
from selfrag_jax.evaluation.report import table

Answered = tuple[dict[str, Any], dict[str, Any], bool]  # question, answer, whether it is right
COLUMNS: tuple[tuple[str, str, Wording], ...] = (
    ("adaptive", "adaptive", "train"),
    ("always", "always", "train"),
    ("never", "never", "train"),
    ("gold passage", "gold", "train"),
    ("one retrieval", "one_look", "train"),
    ("held-out wordings, adaptive", "adaptive", "heldout"),
    ("held-out wordings, gold", "gold", "heldout"),
)
NAMES = {
    "short": "short answers", "boolean": "true/false", "options": "four options", "long": "long answers",
    "plain": "plain instructions", "popqa": "PopQA capitals",
}  # fmt: skip


def kinds_table(results: Results) -> str:
    """Accuracy of every kind in every mode, in percent; how often the adaptive answers retrieved, and how many of them
    one process gave in a second."""
    rows = []
    for kind in (*KINDS, "popqa"):
        adaptive = results.judged.get((kind, "adaptive", "train"))
        if adaptive is None:
            continue
        cells = [accuracy(results.judged.get((kind, mode, wording), ())).percent() for _, mode, wording in COLUMNS]
        retrieved = share([one.retrievals > 0 for one in adaptive])
        rows.append([
            NAMES[kind], str(len(adaptive)), *cells, retrieved.percent(),
            f"{questions_per_second(results, kind, 'adaptive'):.2f}",
        ])  # fmt: skip
    return table(["right, %", "n", *(name for name, _, _ in COLUMNS), "retrieved", "questions/s"], rows)


def figures_table(figures: Sequence[Figure]) -> str:
    """The figures with what is asked of each."""

    def asked(value: float | None, figure: Figure) -> str:
        if value is None:
            return ""
        return "> 0" if value == 0 else f"{'≤' if figure.below else '≥'} {100 * value:g}"

    rows = [
        [f.name, f.share.percent(), str(f.share.n), asked(f.must, f), asked(f.stretch, f), f.verdict] for f in figures
    ]
    return table(["figure, % or points", "value (95 % interval)", "n", "must", "stretch", "reached"], rows)


def answers_text(cells: Mapping[str, Sequence[Answered]], seed: int, count: int) -> str:
    """`count` answers drawn by the seed, evenly over the cells, as they came, right and wrong."""
    rng = random.Random(seed)
    each = -(-count // len(cells))
    drawn = [(name, *one) for name in sorted(cells) for one in rng.sample(cells[name], min(each, len(cells[name])))]
    parts = []
    for number, (name, question, answer, right) in enumerate(drawn[:count], 1):
        mark = "right" if right else "wrong"
        lines = [f"### {number}. {name}: {mark}", "", *_quoted(question["instruction"], "> "), ""]
        lines += [*_quoted(answer["output"] or "(no text)", ""), ""]
        lines += [f"- [{c['number']}] {c['title']}: {' '.join(c['text'].split())}" for c in answer["citations"]]
        lines += [f"- retrieved {answer['retrievals']} ×; accepted: {'; '.join(question['answers'][:6])}"]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _quoted(text: str, mark: str) -> list[str]:
    return [f"{mark}{line}  " for line in text.splitlines()]
