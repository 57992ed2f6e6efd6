"""`python -m selfrag_jax evaluate`: a config's evaluation, resumable, with its table printed and, if asked, filed."""

import pathlib
import shutil

from absl import flags

from selfrag_jax.cli.flags import parse
from selfrag_jax.errors import UserError

USAGE = "python -m selfrag_jax evaluate --config=configs/demo.py [flags]"
SUMMARY = "Answers held-out questions in every mode, reads labelled rows, and counts. Run again, it goes on."
MARKERS = "evaluation"


def main(arguments: list[str]) -> None:
    """Parses the command line, evaluates and prints the table. Raises UserError for bad input."""
    invocation = parse(arguments, usage=USAGE, summary=SUMMARY, define=_define_flags)
    workdir = pathlib.Path(invocation["workdir"])
    if workdir.exists() and not workdir.is_dir():
        raise UserError(f"--workdir={workdir} is a file; a folder is wanted")
    if invocation["restart"] and workdir.is_dir():
        if not (workdir / "config.json").is_file() and any(workdir.iterdir()):
            raise UserError(f"--restart: {workdir} is no run of this command; remove it yourself or name another")
        shutil.rmtree(workdir)
    if invocation.config.retrieval.corpus != "demo":
        raise UserError(
            f"config.retrieval.corpus={invocation.config.retrieval.corpus!r} has no evaluation; configs/demo.py has one"
        )
    from selfrag_jax.demo.evaluate import evaluate
    from selfrag_jax.evaluation.report import put_into, write_text

    text = evaluate(invocation.config, workdir)
    print(text)
    if invocation["readme"]:
        readme = pathlib.Path(invocation["readme"])
        put_into(readme, MARKERS, text)
        answers = readme.with_name("ANSWERS.md")
        head = "# Twenty answers, drawn by a seed and not edited\n\nWritten by `make evaluate`.\n\n"
        write_text(answers, head + (workdir / "answers.md").read_text(encoding="utf-8"))


def _define_flags(values: flags.FlagValues) -> None:
    flags.DEFINE_string("workdir", "runs/evaluate", "where questions, answers and figures go", flag_values=values)
    flags.DEFINE_string("readme", None, "a file to write the table into, between its markers", flag_values=values)
    flags.DEFINE_boolean("restart", False, "throw away an earlier run in --workdir", flag_values=values)
