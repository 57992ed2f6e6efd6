"""The command line: `selfrag COMMAND …`, `python -m selfrag_jax COMMAND …`, `python decode.py …`, `python train.py …`.

A UserError becomes one line on stderr and exit status 2, Ctrl-C status 130; any other exception is ours and keeps its
traceback. Commands are imported when they are run: `--help` must not wait for JAX.
"""

import importlib
import os
import sys
from collections.abc import Callable, Sequence

from selfrag_jax.errors import UserError

COMMANDS = {
    "decode": "answer a question, or a file of them",
    "train": "train the generator; run again, it goes on",
    "index": "corpus to embeddings to ScaNN index",
    "evaluate": "answer held-out questions in every mode, and count",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `selfrag COMMAND …` with `arguments` (default: the process's) and returns the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments and arguments[0] in COMMANDS:
        return run_command(arguments[0], arguments[1:])
    return _guarded(lambda: _list_commands(arguments))


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit status: 0, 2 (UserError), 130 (Ctrl-C), 141 (closed pipe)."""
    return _guarded(lambda: _call(name, list(arguments)))


def _guarded(action: Callable[[], None]) -> int:
    try:
        action()
        sys.stdout.flush()
    except UserError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `… | head`: the reader has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return 0


def _list_commands(arguments: list[str]) -> None:
    if not arguments:
        raise UserError(f"no command; the commands are {', '.join(COMMANDS)}, and --help tells what they do")
    if arguments[0] not in ("--help", "-h", "help"):
        raise UserError(f"there is no command {arguments[0]!r}; the commands are {', '.join(COMMANDS)}")
    listing = "\n".join(f"  {name:<10}{summary}" for name, summary in COMMANDS.items())
    print(f"usage: selfrag COMMAND …\n\ncommands:\n{listing}\n\nselfrag COMMAND --help tells more of one.")


def _call(name: str, arguments: list[str]) -> None:
    module = importlib.import_module(f"selfrag_jax.cli.{name}")
    if hasattr(module, "main"):  # the command has flags of its own
        module.main(arguments)
        return
    from selfrag_jax.cli.flags import parse

    module.run(parse(arguments, usage=f"selfrag {name} [flags]", summary=COMMANDS[name]).config)
