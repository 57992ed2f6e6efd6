"""`python decode.py …`: the same as `selfrag decode …`."""

import sys

from selfrag_jax.cli import run_command

if __name__ == "__main__":
    sys.exit(run_command("decode", sys.argv[1:]))
