"""`train.py --config=configs/X.py --workdir=runs/X`: trains; run again, it goes on."""

import pathlib

from absl import flags

from selfrag_jax.cli.flags import parse
from selfrag_jax.errors import UserError

USAGE = "train.py --config=configs/X.py --workdir=runs/X [flags]"
SUMMARY = "Trains the generator. Stop it at any time: the same command goes on from the last checkpoint."
DEFAULT_CONFIG = "configs/demo_generator.py"


def main(arguments: list[str]) -> None:
    """Parses the command line and trains. Raises UserError for bad input."""
    invocation = parse(arguments, usage=USAGE, summary=SUMMARY, define=_define_flags, default_config=DEFAULT_CONFIG)
    workdir = invocation["workdir"]
    if not workdir:
        raise UserError("--workdir is missing; it names the folder for checkpoints and logs, e.g. --workdir=runs/X")
    if pathlib.Path(workdir).is_file():
        raise UserError(f"--workdir={workdir} is a file; a folder is wanted")
    from selfrag_jax import compilation_cache

    compilation_cache.enable()
    from selfrag_jax.training.trainer import train

    train(invocation.config, pathlib.Path(workdir))


def _define_flags(values: flags.FlagValues) -> None:
    flags.DEFINE_string("workdir", None, "where checkpoints, the log and the adapter go", flag_values=values)
