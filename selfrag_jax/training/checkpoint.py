"""Checkpoints with orbax: the train state, the place in the data stream, and what run they belong to.

Order at the start of a run: resume if there is a whole checkpoint, else start. A checkpoint is written beside and
renamed, so one that a kill cut short is never seen; one that turns out damaged is named and the one before is taken.
"""

import pathlib
import sys
import time
from typing import Any

import jax

from selfrag_jax.errors import UserError


class Checkpoints:
    """The checkpoints of one run, in `directory`."""

    def __init__(self, directory: pathlib.Path, keep: int, identity: dict[str, Any]):
        """Args:
        keep: how many of the newest stay.
        identity: plain values that a run must share with a checkpoint to go on from it.
        """
        import grain
        import orbax.checkpoint as ocp

        self._ocp, self._grain = ocp, grain
        self._identity = identity
        self._directory = directory
        handlers = ocp.handlers.DefaultCheckpointHandlerRegistry()
        handlers.add("state", ocp.args.StandardSave, ocp.StandardCheckpointHandler())
        handlers.add("state", ocp.args.StandardRestore, ocp.StandardCheckpointHandler())
        handlers.add("data", grain.checkpoint.CheckpointSave, grain.checkpoint.CheckpointHandler())
        handlers.add("data", grain.checkpoint.CheckpointRestore, grain.checkpoint.CheckpointHandler())
        handlers.add("run", ocp.args.JsonSave, ocp.JsonCheckpointHandler())
        handlers.add("run", ocp.args.JsonRestore, ocp.JsonCheckpointHandler())
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, enable_async_checkpointing=True)
        self._manager = ocp.CheckpointManager(directory.absolute(), options=options, handler_registry=handlers)

    def save(self, step: int, state: Any, data: Any) -> None:
        """Start writing; the arrays are copied first, so the caller may go on (and donate) at once."""
        if step in self._manager.all_steps():
            return
        args = self._ocp.args.Composite(
            state=self._ocp.args.StandardSave(state),
            data=self._grain.checkpoint.CheckpointSave(data),
            run=self._ocp.args.JsonSave(self._identity),
        )
        self._manager.save(step, args=args)

    def restore(self, state: Any, data: Any) -> tuple[int, Any]:
        """The newest whole checkpoint as (step, state), with `data` set to its place; (0, state) where there is none.

        Args:
            state: the fresh state, whose shapes and shardings the restored one gets.

        Raises:
            UserError: the checkpoint is of a run with another identity, or there are some and none can be read.
        """
        wanted = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), state)
        damaged: dict[int, str] = {}
        for step in sorted(self._manager.all_steps(), reverse=True):
            try:
                found = self._read(step, wanted, data)
            except UserError:
                raise
            except Exception as error:  # whatever the readers of damaged files may raise
                damaged[step] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
                continue
            self._set_aside(damaged)
            return step, found
        if damaged:
            newest, reason = next(iter(damaged.items()))
            raise UserError(
                f"{self._directory}: no checkpoint can be read, {newest} because of {reason};"
                " to begin anew take another --workdir"
            )
        return 0, state

    def _read(self, step: int, wanted: Any, data: Any) -> Any:
        run = self._manager.restore(step, args=self._ocp.args.Composite(run=self._ocp.args.JsonRestore()))
        self._check(run["run"], step)
        args = self._ocp.args.Composite(
            state=self._ocp.args.StandardRestore(wanted), data=self._grain.checkpoint.CheckpointRestore(data)
        )
        return self._manager.restore(step, args=args)["state"]

    def _set_aside(self, damaged: dict[int, str]) -> None:
        """Rename what could not be read, so that the run can save these steps again; nothing is deleted."""
        for step, reason in damaged.items():
            print(
                f"{self._directory}: checkpoint {step} is damaged, the one before is used ({reason})", file=sys.stderr
            )
            (self._directory / str(step)).rename(self._directory / f"damaged-{step}-{time.time_ns()}")
        if damaged:
            self._manager.reload()

    def _check(self, found: dict[str, Any], step: int) -> None:
        for name in sorted(self._identity.keys() | found.keys()):
            here, there = self._identity.get(name), found.get(name)
            if here != there:
                raise UserError(
                    f"{self._directory}: checkpoint {step} is of a run with {name}={there}, this one has {here};"
                    " take another --workdir, or the config it was begun with"
                )

    def wait(self) -> None:
        """Return when everything saved is on disk."""
        self._manager.wait_until_finished()

    def close(self) -> None:
        self.wait()
        self._manager.close()
