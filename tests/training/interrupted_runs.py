"""Trains one config twice: straight through, and cut short three times. Run by test_trainer.py.

python interrupted_runs.py FOLDER: each run is a process of its own, forked after the imports, which cost the most.
"""

import os
import pathlib
import signal
import sys

from selfrag_jax.config import Config
from selfrag_jax.config_file import config_from_json
from selfrag_jax.training import checkpoint, metrics, trainer


def at_save(number: int, *, durable: bool) -> None:
    """Kill this process when checkpoint `number` is on disk, or (not durable) while it is being written."""
    save = checkpoint.Checkpoints.save

    def and_die(self, step, state, data):
        save(self, step, state, data)
        if step == number:
            if durable:
                self.wait()
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoint.Checkpoints.save = and_die


def at_line(number: int) -> None:
    """Ask this process to stop when the line of step `number` has been written."""
    write = metrics.MetricsFile.write

    def and_ask(self, record):
        write(self, record)
        if record["step"] == number:
            os.kill(os.getpid(), signal.SIGTERM)

    metrics.MetricsFile.write = and_ask


def forked(config: Config, workdir: pathlib.Path, prepare=lambda: None) -> int:
    """Exit status of a training process (negative: the signal that ended it)."""
    pid = os.fork()
    if pid == 0:
        prepare()
        try:
            trainer.train(config, workdir)
        except SystemExit as stop:
            os._exit(int(stop.code or 0))
        except BaseException as error:
            print(f"failed: {error!r}", flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(folder: pathlib.Path) -> None:
    """Makes every run and prints its name and exit code; the test reads them."""
    import grain  # noqa: F401
    import orbax.checkpoint  # noqa: F401
    import tensorflow_datasets  # noqa: F401

    config = config_from_json((folder / "config.json").read_text())
    print("whole", forked(config, folder / "whole"))
    cut = folder / "cut"
    print("killed", forked(config, cut, lambda: at_save(4, durable=True)))
    print("torn", forked(config, cut, lambda: at_save(8, durable=False)))
    print("asked", forked(config, cut, lambda: at_line(9)))
    print("finished", forked(config, cut))
    print("again", forked(config, cut))


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main(pathlib.Path(sys.argv[1]))
