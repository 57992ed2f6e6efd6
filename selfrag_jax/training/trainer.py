"""The training loop: resume or start, step, log, save; a signal saves first and stops.

workdir/config.json      the resolved config
workdir/metrics.jsonl    one line a step
workdir/checkpoints/     state and place in the data, the newest few
workdir/adapter/         what came of it (or workdir/model/, where every parameter was trained)
"""

import dataclasses
import os
import pathlib
import signal
import sys
from typing import Any

import jax
import numpy as np

from selfrag_jax import paths
from selfrag_jax.config import Config
from selfrag_jax.config_file import config_to_json
from selfrag_jax.data import datasets, pipeline
from selfrag_jax.files import write_text
from selfrag_jax.models import lora, weights
from selfrag_jax.training import card, optimizer, setup
from selfrag_jax.training.checkpoint import Checkpoints
from selfrag_jax.training.metrics import MetricsFile, Progress, as_record


class _Signals:
    """Catches SIGTERM and SIGINT while it is entered, so that the loop can stop between two steps."""

    def __enter__(self) -> "_Signals":
        self.received = 0
        self._old: dict[int, Any] = {n: signal.signal(n, self._note) for n in (signal.SIGTERM, signal.SIGINT)}
        return self

    def _note(self, number: int, frame: Any) -> None:
        if self.received:  # asked twice: at once
            signal.signal(number, self._old[number])
            raise KeyboardInterrupt
        self.received = number
        print("\nfinishing this step and saving; once more to stop at once", file=sys.stderr)

    def __exit__(self, *exception: Any) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)


def train(config: Config, workdir: str | os.PathLike[str]) -> None:
    """Train as the config says; where the workdir holds a checkpoint of this run, go on from it.

    On SIGTERM or SIGINT the state is saved and the process ends with status 143 or 130.

    Raises:
        UserError: unusable rows, model or settings, or a workdir of another run.
    """
    folder = pathlib.Path(workdir)
    folder.mkdir(parents=True, exist_ok=True)
    source, rows_digest = datasets.prepare(config, folder / "rows")
    run = setup.make_run(config)
    cut, empty = pipeline.survey(source, run.tokenizer, config.data)
    if cut or empty:
        what = f"{cut:.1%} of the rows are cut at data.sequence_length={config.data.sequence_length}"
        print(f"about {what}, {empty:.1%} have nothing to learn within it and are left out", file=sys.stderr)
    stream = pipeline.batches(
        source,
        run.tokenizer,
        config.data,
        seed=config.seed,
        shard=(jax.process_index(), jax.process_count()),
    )
    checkpoints = Checkpoints(folder / "checkpoints", config.train.keep_checkpoints, _identity(config, rows_digest))
    start, run.state = checkpoints.restore(run.state, stream)
    write_text(folder / "config.json", config_to_json(config))
    _announce(config, run, len(source), start)
    metrics = MetricsFile(folder / "metrics.jsonl", start)
    try:
        with _Signals() as signals:
            _loop(config, run, stream, checkpoints, metrics, start, signals)
            stopped = signals.received
        checkpoints.wait()
    finally:
        metrics.close()
        checkpoints.close()
    if stopped:
        print(f"saved at step {len(metrics.records)}; the same command goes on from there", file=sys.stderr)
        raise KeyboardInterrupt if stopped == signal.SIGINT else SystemExit(128 + stopped)
    _finish(config, run, folder, metrics, len(source), rows_digest)


def _loop(config, run, stream, checkpoints, metrics, start, signals) -> None:
    """Steps start + 1 … config.train.steps. Metrics are fetched one step late, so that the device never waits."""
    rate = optimizer.schedule(config.train, config.train.learning_rate)
    progress = Progress(start, config.train.steps, config.train.log_every)
    waiting: tuple[int, Any] | None = None

    def log() -> None:
        if waiting is not None:
            number, values = waiting
            record = as_record(number, jax.device_get(values), float(np.float32(rate(number - 1))))
            if not np.isfinite(record["loss"]):
                raise FloatingPointError(f"the loss of step {number} is {record['loss']}; lower the learning rate")
            metrics.write(record)
            progress.update(record)

    try:
        for number in range(start + 1, config.train.steps + 1):
            values = run.step(next(stream))
            log()
            waiting = number, values
            last = number == config.train.steps or signals.received
            if last or number % config.train.checkpoint_every == 0:
                log()
                waiting = None
                checkpoints.save(number, run.state, stream)
            if last:
                return
    finally:
        progress.close()


def _identity(config: Config, rows_digest: str) -> dict[str, Any]:
    """What a run must share with a checkpoint to go on from it: all that changes a step.

    The number of steps is free, so that a run can be made longer; the learning rate then follows the new length. So is
    what is done once all steps are: a finished run that is run again with another blend is written anew.
    """
    identity: dict[str, Any] = {"seed": config.seed, "rows_sha256": rows_digest}
    if config.model.adapter:
        identity["model.adapter (weights_sha256)"] = card.start(config.model.adapter)["weights_sha256"]
    for name in ("path", "weights", "vocab_multiple"):
        identity[f"model.{name}"] = getattr(config.model, name)
    for name in ("sequence_length", "batch_size", "mask", "pack"):
        identity[f"data.{name}"] = getattr(config.data, name)
    free = ("steps", "blend", "log_every", "checkpoint_every", "keep_checkpoints", "remat")
    settings = dataclasses.asdict(config.train)
    return identity | {f"train.{name}": value for name, value in settings.items() if name not in free}


def _announce(config: Config, run: setup.Run, rows: int, start: int) -> None:
    trained = sum(x.size for x in jax.tree.leaves(run.state["trained"]))
    what = f"a LoRA adapter of rank {run.meta.rank} and the token rows" if run.meta else "every parameter"
    devices = f"{run.mesh.size} {jax.devices()[0].platform} device{'s' if run.mesh.size > 1 else ''}"
    print(f"training {what} ({trained:,} numbers) on {rows:,} rows, {devices}, {config.model.weights}", file=sys.stderr)
    if start:
        print(f"going on after step {start}", file=sys.stderr)


def _finish(config, run, folder, metrics, rows, rows_digest) -> None:
    """Write the adapter, or the whole model, with its card, its config and its log."""
    trained = jax.device_get(run.state["trained"])
    facts = card.facts(config, metrics.records, rows, rows_digest)
    if run.meta is None:
        directory = folder / "model"
        weights.export_hf(trained, run.llama_config, directory)
    else:
        directory = folder / "adapter"
        if config.train.blend < 1:
            before, _ = lora.load_adapter(paths.resolve(config.model.adapter))
            trained = lora.blend(before, trained, config.train.blend)
        lora.save_adapter(directory, trained, dataclasses.replace(run.meta, training=facts))
    write_text(directory / "config.json" if run.meta else directory / "training.json", config_to_json(config))
    write_text(directory / "README.md", card.render(config, facts, adapter=run.meta is not None))
    write_text(directory / "metrics.jsonl", (folder / "metrics.jsonl").read_text(encoding="utf-8"))
    print(f"wrote {directory}", file=sys.stderr)
