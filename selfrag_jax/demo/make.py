"""`python -m selfrag_jax.demo.make --what=passages|rows|eval|stats`: the demo's files, as JSONL.

passages: the corpus, {id, title, text}; rows: generator rows in the published format, for training or, with
`--side=heldout`, to measure labels on; eval: held-out questions for `decode.py --input`; stats: what is in them all,
printed as JSON.
"""

import argparse
import collections
import json
import pathlib
import sys
from typing import Any

from selfrag_jax.demo.evaluation import KINDS, evaluation_rows
from selfrag_jax.demo.facts import entities
from selfrag_jax.demo.passages import passages
from selfrag_jax.demo.plain import kinds
from selfrag_jax.demo.rows import ROWS, labelled_rows, training_rows
from selfrag_jax.demo.split import held_out
from selfrag_jax.errors import UserError
from selfrag_jax.files import write_jsonl
from selfrag_jax.reflection import REFLECTION


def stats(seed: int, count: int) -> dict[str, Any]:
    """Entities by kind and side, passages, and rows by kind and by reflection token."""
    rows = list(training_rows(seed, count))
    outputs = "".join(row["output"] for row in rows)
    sides = collections.Counter(f"{e.kind} {'held out' if held_out(e) else 'training'}" for e in entities())
    return {
        "entities": dict(sorted(sides.items())),
        "passages": len(passages()),
        "plain kinds": len(kinds()),
        "rows": len(rows),
        "rows by kind": dict(collections.Counter(row["dataset_name"] for row in rows).most_common()),
        "tokens": {token: outputs.count(token) for token in REFLECTION},
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m selfrag_jax.demo.make", description=__doc__)
    parser.add_argument("--what", required=True, choices=("passages", "rows", "eval", "stats"))
    parser.add_argument("--output", help="the JSONL file to write (all but stats)")
    parser.add_argument("--kind", default="short", choices=KINDS, help="kind of question (eval)")
    parser.add_argument("--n", type=int, default=None, help=f"how many rows ({ROWS}) or questions (200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--side", default="train", choices=("train", "heldout"), help="side of the split (rows)")
    parser.add_argument(
        "--wording",
        default="train",
        choices=("train", "heldout"),
        help="wordings (passages, eval, rows of the held-out side)",
    )
    parser.add_argument("--gold", action="store_true", help="put the right passages into the questions (eval)")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    args = _parser().parse_args(argv)
    if args.n is not None and args.n < 1:
        raise UserError(f"--n={args.n}: give a number of rows, 1 or more")
    if args.what == "stats":
        print(json.dumps(stats(args.seed, args.n or ROWS), indent=2))
        return 0
    if not args.output:
        raise UserError(f"--what={args.what} needs --output=FILE.jsonl")
    path = pathlib.Path(args.output)
    if args.what == "passages":
        count = write_jsonl(path, (passage.row for passage in passages(args.wording)))
    elif args.what == "rows":
        count = write_jsonl(path, labelled_rows(args.side, args.seed, args.n or ROWS, args.wording))
    else:
        count = write_jsonl(path, evaluation_rows(args.kind, args.n or 200, args.seed, args.wording, args.gold))
    print(f"{count} rows in {path}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
