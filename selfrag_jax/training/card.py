"""The adapter card: what an adapter is, and how it was made, for people and (in adapter.json) for programs."""

import json
import pathlib
import shlex
import sys
from typing import Any

from selfrag_jax import paths
from selfrag_jax.config import Config
from selfrag_jax.training.metrics import summary

_LAST = 20  # steps over which the final figures are means


def facts(config: Config, records: list[dict[str, Any]], rows: int, rows_digest: str) -> dict[str, Any]:
    """How the run went: plain values."""
    first, last = summary(records[:_LAST]), summary(records[-_LAST:])
    return {
        "command": command(),
        "rows": config.data.rows,
        "row_count": rows,
        "rows_sha256": rows_digest,
        "steps": len(records),
        "tokens": sum(record["tokens"] for record in records),
        "learnt_tokens": sum(record["learnt"] for record in records),
        "first_loss": round(first["loss"], 4),
        "final_loss": round(last["loss"], 4),
        "final_accuracy": {name: round(value, 4) for name, value in last.items() if name != "loss"},
        "seed": config.seed,
        **({"started_from": start(config.model.adapter)} if config.model.adapter else {}),
        **({"blend": config.train.blend} if config.train.blend < 1 else {}),
    }


def start(adapter: str) -> dict[str, Any]:
    """Which adapter a run went on from, and how that one was made."""
    made = json.loads((paths.resolve(adapter) / "adapter.json").read_text(encoding="utf-8"))
    return {"path": adapter, "weights_sha256": made["weights_sha256"], "training": made["training"]}


def command() -> str:
    """The command line of this process, as it would be typed in the repository."""
    name = pathlib.PurePath(sys.argv[0]).name
    start = ["python", name] if name.endswith(".py") and name != "__main__.py" else ["python", "-m", "selfrag_jax"]
    return shlex.join(start + sys.argv[1:])


def _origin(facts: dict[str, Any]) -> str:
    """The line of the table that says what the run went on from; empty where it began anew."""
    if "started_from" not in facts:
        return ""
    first = facts["started_from"]
    before = f"{first['training'].get('steps', 0):,} steps on `{first['training'].get('rows', '?')}`"
    return f"| goes on from | `{first['path']}` ({before}), SHA-256 `{first['weights_sha256'][:16]}` |\n"


def _blend(facts: dict[str, Any]) -> str:
    """The line of the table that says what was written where it is not just what was trained."""
    if "blend" not in facts:
        return ""
    return f"| weights | {facts['blend']:g} of the trained ones, {1 - facts['blend']:g} of those it goes on from |\n"


def render(config: Config, facts: dict[str, Any], *, adapter: bool) -> str:
    """The card as Markdown."""
    accuracy = "".join(f"| {name} | {value:.1%} |\n" for name, value in facts["final_accuracy"].items())
    title = "LoRA adapter with reflection-token rows" if adapter else "Fine-tuned model"
    train, data = config.train, config.data
    shape = f"rank {train.lora_rank}, alpha {train.lora_alpha:g}, all matrices of every layer" if adapter else "full"
    return f"""# {title}

| | |
|---|---|
| base model | `{config.model.path}` |
| trained | {shape} |
{_origin(facts)}| rows | `{facts["rows"]}`: {facts["row_count"]:,}, SHA-256 `{facts["rows_sha256"][:16]}` |
| steps | {facts["steps"]:,} of {data.batch_size} sequences × {data.sequence_length} tokens, packed: {data.pack} |
| tokens | {facts["tokens"]:,} read, {facts["learnt_tokens"]:,} learnt (mask: {data.mask}) |
| optimiser | AdamW, peak rate {train.learning_rate:g}, {train.schedule} decay, clip {train.clip_norm:g} |
| loss | {facts["first_loss"]} over the first {_LAST} steps, {facts["final_loss"]} over the last {_LAST} |
{_blend(facts)}
```
{facts["command"]}
```

Accuracy of the learnt tokens over the last {_LAST} steps, by kind, on rows as they were trained on:

| kind | right |
|---|---|
{accuracy}
The resolved configuration is in `{"config.json" if adapter else "training.json"}`.

```json
{json.dumps(facts, indent=2)}
```
"""
