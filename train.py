"""`python train.py …`: the same as `selfrag train …`."""

import sys

from selfrag_jax.cli import run_command

if __name__ == "__main__":
    sys.exit(run_command("train", sys.argv[1:]))
