"""`python -m selfrag_jax evaluate`: a config's evaluation, resumable, with its table printed and, if asked, filed."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

import filelock
from absl import flags

from selfrag_jax.cli.flags import Invocation, parse
from selfrag_jax.errors import UserError
from selfrag_jax.evaluation.report import check_markers, put_into

USAGE = "python -m selfrag_jax evaluate --config=configs/demo.py [flags]"
SUMMARY = "Answers held-out questions in every mode, reads labelled rows, and counts. Run again, it goes on."
MARKERS = "evaluation"
ANSWERS = "# Twenty answers, drawn by a seed and not edited\n\nWritten by `make evaluate`: adaptive retrieval.\n\n"


def main(arguments: list[str]) -> None:
    """Parses the command line, evaluates and prints the table. Raises UserError for bad input."""
    invocation = parse(arguments, usage=USAGE, summary=SUMMARY, define=_define_flags)
    config, workdir = invocation.config, pathlib.Path(invocation["workdir"])
    if config.retrieval.corpus != "demo":
        raise UserError(
            f"config.retrieval.corpus={config.retrieval.corpus!r} has no evaluation; configs/demo.py has one"
        )
    if workdir.exists() and not workdir.is_dir():
        raise UserError(f"--workdir={workdir} is a file; a folder is wanted")
    if invocation["readme"]:
        check_markers(pathlib.Path(invocation["readme"]), MARKERS)
    from selfrag_jax.demo.evaluate import evaluate
    from selfrag_jax.evaluation.cells import Process

    process = Process(invocation["process"], invocation["process_count"], invocation["parent"])
    if process.count > 1:  # a worker of one that holds the folder
        evaluate(config, workdir, process)
        return
    if invocation["restart"]:
        _check_ours(workdir)
    with _held(workdir):
        if invocation["restart"]:
            _throw_away(workdir)
        if invocation["processes"] > 1:
            _work_in_processes(invocation, arguments)
        text = evaluate(config, workdir)
        print(text)
        if invocation["readme"] and text:
            _file(pathlib.Path(invocation["readme"]), text, workdir)


@contextlib.contextmanager
def _held(workdir: pathlib.Path) -> Iterator[None]:
    """The folder for one run at a time. Raises UserError where another holds it; a killed one holds nothing."""
    workdir.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(workdir / ".lock", timeout=0)
    try:
        with lock:
            yield
    except filelock.Timeout:
        raise UserError(
            f"--workdir={workdir}: another evaluation is at work in it; wait for it, or name another folder"
        ) from None


def _check_ours(workdir: pathlib.Path) -> None:
    """Raise UserError for a folder that holds something else than a run of this command."""
    if workdir.is_dir() and any(workdir.iterdir()) and not (workdir / ".lock").is_file():
        raise UserError(f"--restart: {workdir} is no run of this command; remove it yourself or name another")


def _throw_away(workdir: pathlib.Path) -> None:
    """Remove what an earlier run left, and nothing that is not this command's."""
    from selfrag_jax.demo.evaluate import FOLDERS

    for name in FOLDERS:
        shutil.rmtree(workdir / name, ignore_errors=True)
    for pattern in ("config.json", "environment.json", "report.*", "answers.md", "process-*.log"):
        for path in workdir.glob(pattern):
            path.unlink()


def _work_in_processes(invocation: Invocation, arguments: list[str]) -> None:
    """Share the work among processes on this machine, each on cores of its own; what they leave, this one does.

    Small products gain little from a second thread, so two processes on two cores answer more than one on both.
    """
    from selfrag_jax.demo.evaluate import prepare

    count, workdir = invocation["processes"], pathlib.Path(invocation["workdir"])
    prepare(invocation.config, workdir)  # once, before they would all begin to build the index
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
    workers = []
    try:
        for index in range(count):
            command = [sys.executable, "-m", "selfrag_jax", "evaluate", *arguments]
            # Of a flag that is given twice the last one counts.
            command += ["--processes=1", "--norestart", "--readme="]
            command += [f"--process={index}", f"--process_count={count}", f"--parent={os.getpid()}"]
            if cores:
                os.sched_setaffinity(0, cores[index % len(cores) :: count] or cores)  # which the worker inherits
            with (workdir / f"process-{index}.log").open("w") as file:
                errors = None if index == 0 else file  # one bar is enough; the others' are in their logs
                workers.append(subprocess.Popen(command, stdout=file, stderr=errors))
        for worker in workers:
            worker.wait()
    finally:
        if cores:
            os.sched_setaffinity(0, cores)
        for worker in workers:
            worker.terminate()
    for index, worker in enumerate(workers):
        if worker.returncode:
            log = workdir / f"process-{index}.log"
            print(f"process {index} ended with status {worker.returncode} ({log}); going on alone", file=sys.stderr)


def _file(readme: pathlib.Path, text: str, workdir: pathlib.Path) -> None:
    """Write the tables between the README's markers, and the twenty answers into a file beside it."""
    from selfrag_jax.files import write_text

    put_into(readme, MARKERS, text)
    write_text(readme.with_name("ANSWERS.md"), ANSWERS + (workdir / "answers.md").read_text(encoding="utf-8"))


def _define_flags(values: flags.FlagValues) -> None:
    flags.DEFINE_string("workdir", "runs/evaluate", "where questions, answers and figures go", flag_values=values)
    flags.DEFINE_string("readme", "", "a file to write the table into, between its markers", flag_values=values)
    flags.DEFINE_boolean("restart", False, "throw away an earlier run in --workdir", flag_values=values)
    flags.DEFINE_integer(
        "processes", 1, "start so many on this machine, on cores of their own", flag_values=values, lower_bound=1
    )
    flags.DEFINE_integer("process", 0, "(set by --processes)", flag_values=values, lower_bound=0)
    flags.DEFINE_integer("process_count", 1, "(set by --processes)", flag_values=values, lower_bound=1)
    flags.DEFINE_integer("parent", 0, "(set by --processes)", flag_values=values, lower_bound=0)
