"""The demo's evaluation from end to end: write the questions, answer and read them, count, and write the report.

    WORKDIR/config.json, environment.json   what was run, and on what
    WORKDIR/questions/, labelled/           what was asked, and the labelled rows
    WORKDIR/answers/, labels/, retrieval/   what came of it, a row each, answers with their candidate trees
    WORKDIR/judged/                         what each answer was found to be, from which the figures are counted
    WORKDIR/report.json, report.md          the figures
    WORKDIR/answers.md                      twenty answers to be read

Run again, it goes on where it stopped; what is finished is not done anew.
"""

import dataclasses
import importlib.util
import json
import pathlib
import sys
import time
from typing import Any

from selfrag_jax.config import Config
from selfrag_jax.config_check import flatten
from selfrag_jax.demo import labels as labelled
from selfrag_jax.demo.figures import Figure, Labels, Results, figures
from selfrag_jax.demo.judged import judge_all
from selfrag_jax.demo.passages import Wording
from selfrag_jax.demo.protocol import (
    DERIVED,
    DemoCell,
    held_out_index,
    write_held_out_corpus,
    write_labelled,
    write_questions,
)
from selfrag_jax.demo.tables import NAMES, answers_text, figures_table, kinds_table
from selfrag_jax.demo.turned import turned_round
from selfrag_jax.errors import UserError
from selfrag_jax.evaluation.cells import ALONE, Engines, Process, joined, run_cell, run_derived, run_retrieval, seconds
from selfrag_jax.evaluation.environment import environment
from selfrag_jax.files import read_jsonl, write_jsonl, write_text
from selfrag_jax.training import card

FOLDERS = ("questions", "labelled", "answers", "labels", "retrieval", "judged")
SHOWN = 20  # answers in answers.md
RECALL_AT = 5


def evaluate(config: Config, workdir: pathlib.Path, process: Process = ALONE) -> str | None:
    """Run whatever is not finished and return the report as Markdown; a worker does its share and returns None.

    Raises UserError for a missing model, index or package, and for a folder that was begun with other settings.
    """
    # Of several processes the one that started them has prepared the folder.
    cells = prepare(config, workdir) if process.count == 1 else write_questions(config, workdir / "questions")
    engines = Engines(config)
    for (group, _), path in write_labelled(config, workdir / "labelled").items():
        labelled.read_labels(config, group, path, engines, workdir / "labels" / path.name, process)
    for cell in sorted(cells, key=_turn):
        _answer(config, cell, engines, workdir / "answers", process)
    if process.count > 1:
        return None
    results = collect(config, workdir, cells, engines)
    return _write_report(config, workdir, cells, results, engines.retriever(config.retrieval.index_dir).method)


def _turn(cell: DemoCell) -> int:
    """When a cell comes: derived ones late, when every process has done its share of what they are derived from, and
    last those that no figure with a bound is counted over."""
    if cell.wording == "heldout" and cell.mode == "gold":
        return 2
    return int(cell.mode in DERIVED)


def prepare(config: Config, workdir: pathlib.Path) -> list[DemoCell]:
    """Write what is asked and what it is asked of, and build the indices that are missing. Raises UserError."""
    if importlib.util.find_spec("sklearn") is None:
        raise UserError("the baselines need scikit-learn, which is not installed: pip install -e '.[evaluate]'")
    settings, known = json.dumps(flatten(config), indent=2) + "\n", workdir / "config.json"
    if known.is_file() and known.read_text(encoding="utf-8") != settings:
        raise UserError(f"{known} holds other settings; name another --workdir, or begin anew with --restart")
    for name in FOLDERS:
        (workdir / name).mkdir(parents=True, exist_ok=True)
    write_text(known, settings)
    _note_environment(workdir / "environment.json")
    cells = write_questions(config, workdir / "questions")
    _ensure_indices(config)
    return cells


def _note_environment(path: pathlib.Path) -> None:
    """Add where and with what code this start runs to those of the starts before, and say if the code is another."""
    starts = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    here = environment()
    if starts and starts[-1]["source"] != here["source"]:
        print(f"{path}: begun with the code of {starts[-1]['commit']}, goes on with {here['commit']}", file=sys.stderr)
    if not starts or starts[-1] != here:
        write_text(path, json.dumps([*starts, here], indent=2) + "\n")


def _answer(config: Config, cell: DemoCell, engines: Engines, answers: pathlib.Path, process: Process) -> None:
    """Answer this process's share of a cell; nothing of a derived one whose adaptive answers are not all there yet."""
    if cell.mode not in DERIVED:
        run_cell(config, cell.cell, engines, answers, process)
        return
    adaptive = answers / f"{cell.source}-adaptive.jsonl"
    if adaptive.is_file():
        run_derived(config, cell.cell, cell.mode, adaptive, engines, answers, process)


def _ensure_indices(config: Config) -> None:
    from selfrag_jax.retrieval.build import ensure_index

    ensure_index(config.retrieval)
    corpus = write_held_out_corpus(config)
    ensure_index(dataclasses.replace(config.retrieval, corpus=str(corpus), index_dir=held_out_index(config)))


def _labels(config: Config, workdir: pathlib.Path) -> dict[tuple[str, Wording], Labels]:
    """What the model and the baselines make of the labelled rows; the baselines only of those in known wordings."""
    found: dict[tuple[str, Wording], Labels] = {}
    for (group, wording), path in write_labelled(config, workdir / "labelled").items():
        readings, rows = read_jsonl(workdir / "labels" / path.name), read_jsonl(path)
        model = [reading["said"] == reading["gold"] for reading in readings]
        known = wording == "train"
        found[group, wording] = Labels(
            model,
            [reading["id"].partition("#")[0] for reading in readings],
            labelled.baselines(group, rows) if known else {},
            labelled.parts(group, rows, readings, wording) if known else {},
        )
    return found


def collect(config: Config, workdir: pathlib.Path, cells: list[DemoCell], engines: Engines) -> Results:
    """Everything that the figures are counted over, from the files of a finished run."""
    judged, took, found = {}, {}, {}
    turned: list[bool] = []
    for cell in cells:
        key = (cell.source, cell.mode, cell.wording)
        output = workdir / "answers" / f"{cell.cell.name}.jsonl"
        pairs = joined(cell.cell.questions, output)
        judged[key], took[key] = judge_all(pairs), seconds(output)
        write_jsonl(workdir / "judged" / output.name, map(dataclasses.asdict, judged[key]))
        if key == ("plain", "adaptive", "train"):
            turned = turned_round([question for question, _ in pairs])
        if cell.mode == "adaptive" and cell.source not in ("plain", "popqa"):
            hits = run_retrieval(config, cell.cell, engines, workdir / "retrieval", RECALL_AT)
            found[cell.source, cell.wording] = [
                (len({*row["gold"]} & {*hit["found"]}), min(len(row["gold"]), RECALL_AT))
                for row, hit in joined(cell.cell.questions, hits)
            ]
    return Results(judged, _labels(config, workdir), found, took, turned)


def _provenance(config: Config, workdir: pathlib.Path, method: str) -> str:
    """The day of the last answer, and what gave the answers: code, adapter, search, seed of the questions."""
    timings = [path.stat().st_mtime for path in workdir.glob("*/*.timings.jsonl")]
    starts = json.loads((workdir / "environment.json").read_text(encoding="utf-8"))
    code = ", ".join(dict.fromkeys(f"{start['commit']} ({start['source']})" for start in starts))
    adapter = "none"
    if config.model.adapter:
        adapter = card.start(config.model.adapter)["weights_sha256"][:12]
    day = time.strftime("%Y-%m-%d", time.localtime(max(timings, default=time.time())))
    return f"{day}, code {code}, adapter {adapter}, {method} search, questions of seed {config.evaluate.seed}."


def _write_report(config: Config, workdir: pathlib.Path, cells: list[DemoCell], results: Results, method: str) -> str:
    made = figures(results)
    asked = sum(len(judged) for judged in results.judged.values())
    timings = [line for path in sorted(workdir.glob("*/*.timings.jsonl")) for line in read_jsonl(path)]
    decoded = sum(line["rows"] for path in workdir.glob("answers/*.timings.jsonl") for line in read_jsonl(path))
    minutes = sum(line["seconds"] for line in timings) / 60
    text = (
        f"{_provenance(config, workdir, method)} {asked:,} answers, {decoded:,} of them decoded and the others derived;"
        f" {minutes:.0f} minutes of work, processes added up.\n\n"
        f"{kinds_table(results)}\n\n{figures_table(made)}\n"
    )
    write_text(workdir / "report.md", text)
    write_text(workdir / "report.json", json.dumps([_plain(figure) for figure in made], indent=2) + "\n")
    shown = {}
    for cell in cells:
        if cell.mode == "adaptive" and cell.wording == "train" and cell.source != "popqa":
            pairs = joined(cell.cell.questions, workdir / "answers" / f"{cell.cell.name}.jsonl")
            rights = [one.right for one in results.judged[cell.source, cell.mode, cell.wording]]
            shown[NAMES[cell.source]] = [(*pair, right) for pair, right in zip(pairs, rights, strict=True)]
    write_text(workdir / "answers.md", answers_text(shown, 0, SHOWN))
    return text


def _plain(figure: Figure) -> dict[str, Any]:
    return {**dataclasses.asdict(figure), "verdict": figure.verdict}
