"""`decode.py "question"`: one answer with its citations; `decode.py --input=… --output=…`: a file of them."""

import functools
import json
import pathlib
import sys
from typing import TYPE_CHECKING

from absl import flags

from selfrag_jax.cli.flags import Invocation, parse
from selfrag_jax.config import Config
from selfrag_jax.config_check import flatten
from selfrag_jax.errors import UserError
from selfrag_jax.runner import Report, processes_from_environment, run_units

if TYPE_CHECKING:
    from selfrag_jax.decoding.engine import Engine

USAGE = 'decode.py "question" [flags]   or   decode.py --input=rows.jsonl --output=answers.jsonl [flags]'
SUMMARY = "Answers with Self-RAG: retrieves where the model asks for it, criticises every candidate, cites."


def main(arguments: list[str]) -> None:
    """Parses the command line and answers. Raises UserError for bad input, before anything is loaded if possible."""
    invocation = parse(arguments, usage=USAGE, summary=SUMMARY, define=_define_flags, positional=True)
    questions = invocation.arguments
    if invocation["input"] is None:
        _answer_one(invocation, _the_question(questions, invocation))
    elif questions:
        raise UserError(f"a question ({questions[0]!r}) and --input were given; ask one or the other")
    else:
        _answer_file(invocation)


def _define_flags(values: flags.FlagValues) -> None:
    index, count = processes_from_environment()
    flags.DEFINE_string("input", None, "questions as JSONL: instruction or question, …", flag_values=values)
    flags.DEFINE_string("output", None, "where the answers to --input go, as JSONL", flag_values=values)
    flags.DEFINE_boolean("json", False, "print the whole candidate tree as JSON", flag_values=values)
    flags.DEFINE_boolean("tree", False, "add the candidate tree to every row of --output", flag_values=values)
    flags.DEFINE_boolean(
        "skip_bad", False, "leave out rows that cannot be answered, and count them", flag_values=values
    )
    flags.DEFINE_boolean("restart", False, "throw away an earlier --output and begin anew", flag_values=values)
    flags.DEFINE_integer(
        "process_index", index, "this process, of process_count that share --output", flag_values=values
    )
    flags.DEFINE_integer("process_count", count, "processes that share --output", flag_values=values, lower_bound=1)


def _the_question(questions: list[str], invocation: Invocation) -> str:
    for name in ("output", "tree", "skip_bad", "restart"):
        if invocation.flags[name].present:
            raise UserError(f"--{name} goes with --input=rows.jsonl, which is missing")
    if not questions:
        raise UserError('no question; usage: decode.py "What is the capital of Liechtenstein?"')
    if len(questions) > 1:
        raise UserError(f"{len(questions)} arguments where one question is wanted; put it in quotes")
    if not questions[0].strip():
        raise UserError("the question is empty")
    return questions[0]


def _load_engine(config: Config, needs_index: bool = True) -> "Engine":
    """The engine; where the index is needed it is opened first, since that is quick and the likeliest to be missing."""
    from selfrag_jax import compilation_cache

    compilation_cache.enable()
    from selfrag_jax.decoding.engine import Engine
    from selfrag_jax.decoding.load import IndexRetriever

    retriever = IndexRetriever(config.retrieval)
    if needs_index and config.decode.retrieve != "never":
        retriever.open()
    return Engine.from_config(config, retriever)


def _answer_one(invocation: Invocation, question: str) -> None:
    engine = _load_engine(invocation.config)
    if invocation["json"]:
        print(engine.answer(question).to_json(timings=True, indent=2))
        return
    from selfrag_jax.decoding.render import details, render

    if not sys.stdout.isatty():
        print(render(engine.answer(question)))
        return
    stream = engine.stream(question)
    for segment in stream:
        print(segment.text, end="", flush=True)
    print(f"\n\n{details(stream.result)}" if stream.result.text else render(stream.result))


def _answer_file(invocation: Invocation) -> None:
    source, output = pathlib.Path(invocation["input"]), invocation["output"]
    if invocation["json"]:
        raise UserError("--json prints one answer; with --input, --tree adds the tree to each row of --output")
    if not output:
        raise UserError(f"--input={source} needs --output=answers.jsonl")
    if not source.is_file():
        raise UserError(f"{source}: there is no such file")
    if pathlib.Path(output).resolve() == source.resolve():
        raise UserError(f"--output={output} is the input file; name another")
    from selfrag_jax.data.rows import read_questions
    from selfrag_jax.evaluation.answers import answer_unit, files_behind

    rows = list(read_questions(source))
    if not rows:
        raise UserError(f"{source}: holds no rows")
    config, tree = invocation.config, invocation["tree"]
    needs_index = any(row.ctxs is None for row in rows)
    engine = functools.cache(lambda: _load_engine(config, needs_index))  # not loaded when every unit is finished
    report = run_units(
        rows,
        lambda unit: answer_unit(engine(), unit, tree),
        pathlib.Path(output),
        unit_size=config.decode.batch_size,
        inputs=[source, *files_behind(config, needs_index)],
        settings={**flatten(config), "tree": tree},
        process_index=invocation["process_index"],
        process_count=invocation["process_count"],
        skip_bad=invocation["skip_bad"],
        restart=invocation["restart"],
        description="decode",
    )
    print(summary(pathlib.Path(output), report))


def summary(output: pathlib.Path, report: Report) -> str:
    """What a run over a file says at its end: rows, how many are right, how often it retrieved, what was left out."""
    if not report.finished:
        return f"{output}: this process's share is done; the last process to finish writes the file"
    with output.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    judged = [row["correct"] for row in rows if "correct" in row]
    retrieved = sum(row["retrievals"] > 0 for row in rows)
    lines = [f"{output}: {len(rows)} answers"]
    if judged:
        lines.append(f"right: {sum(judged)} of {len(judged)} ({100 * sum(judged) / len(judged):.1f} %)")
    if rows:
        lines.append(f"retrieved for: {retrieved} of {len(rows)} ({100 * retrieved / len(rows):.1f} %)")
    if report.bad:
        lines.append(f"left out: {report.bad} rows, listed in {output}.bad.jsonl")
    if report.units_kept and not report.units_done:
        print("nothing to do: every answer was there", file=sys.stderr)
    return "\n".join(lines)
