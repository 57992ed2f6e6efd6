"""What a run writes down: `metrics.jsonl`, one line a step, and the progress bar.

No times stand in the file, so that two runs of one config can be compared byte by byte.
"""

import json
import pathlib
import time
from collections import deque
from typing import Any

import numpy as np

from selfrag_jax import progress, reflection
from selfrag_jax.files import write_jsonl
from selfrag_jax.tokenizer import Tokenizer

KINDS = ("text", *reflection.GROUPS, "fence")


def token_kinds(tokenizer: Tokenizer, rows: int) -> np.ndarray:
    """The kind of every token id, as an index into `KINDS`, int32 [rows]."""
    kinds = np.zeros(rows, np.int32)
    for index, name in enumerate(KINDS[1:-1], 1):
        kinds[tokenizer.reflection.group(name)] = index
    kinds[[tokenizer.reflection[token] for token in reflection.FENCES]] = len(KINDS) - 1
    return kinds


def as_record(step: int, metrics: dict[str, Any], rate: float) -> dict[str, Any]:
    """One line of the file: the step (from 1), its loss, counts, rate, and loss and accuracy by kind of token."""
    by_kind = {}
    for index, name in enumerate(KINDS):
        count = int(metrics["kind_count"][index])
        if count:
            by_kind[name] = {
                "count": count,
                "loss": _rounded(metrics["kind_loss"][index] / count),
                "accuracy": _rounded(metrics["kind_correct"][index] / count),
            }
    return {
        "step": step,
        "loss": float(metrics["loss"]),
        "learnt": int(metrics["learnt"]),
        "tokens": int(metrics["tokens"]),
        "learning_rate": rate,
        "grad_norm": float(metrics["grad_norm"]),
        "kinds": by_kind,
    }


def _rounded(value: Any) -> float:
    return round(float(value), 6)


class MetricsFile:
    """Lines appended as they come; on resuming, the lines after the restored step are cut off first."""

    def __init__(self, path: pathlib.Path, step: int):
        self.records = [record for record in _whole_lines(path) if record["step"] <= step]
        write_jsonl(path, self.records)
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 (closed by `close`)

    def write(self, record: dict[str, Any]) -> None:
        """Put a step's record on disk before the next is computed."""
        self.records.append(record)
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _whole_lines(path: pathlib.Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            break  # a kill cut this line short
    return records


def summary(records: list[dict[str, Any]]) -> dict[str, float]:
    """Mean loss per learnt token, and accuracy by kind of token, over the steps given."""
    learnt = sum(r["learnt"] for r in records)
    result = {"loss": sum(r["loss"] * r["learnt"] for r in records) / max(1, learnt)}
    for name in KINDS:
        parts = [r["kinds"][name] for r in records if name in r["kinds"]]
        count = sum(p["count"] for p in parts)
        if count:
            result[name] = sum(p["accuracy"] * p["count"] for p in parts) / count
    return result


class Progress:
    """The bar: steps, time left, and over the last steps the loss, tokens a second and accuracy by group."""

    def __init__(self, start: int, steps: int, window: int):
        self._bar = progress.bar(steps, start, "step", dynamic_ncols=True, smoothing=0.1)
        self._recent: deque[dict[str, Any]] = deque(maxlen=max(1, window))
        self._times: deque[float] = deque([time.perf_counter()], maxlen=max(1, window) + 1)

    def update(self, record: dict[str, Any]) -> None:
        """One step forward, with the averages over the last steps beside the bar."""
        self._recent.append(record)
        self._times.append(time.perf_counter())
        tokens = sum(r["tokens"] for r in list(self._recent)[-(len(self._times) - 1) :])
        speed = tokens / max(1e-9, self._times[-1] - self._times[0])
        shown = summary(list(self._recent))
        groups = " ".join(f"{name} {shown[name]:.0%}" for name in reflection.GROUPS if name in shown)
        self._bar.set_postfix_str(f"loss {shown['loss']:.3f}, {speed:,.0f} tokens/s, {groups}", refresh=False)
        self._bar.update(1)

    def close(self) -> None:
        self._bar.close()
