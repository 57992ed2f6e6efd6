"""Checkpoints with orbax: the train state, the place in the data stream, and what run they belong to.

Order at the start of a run: resume if there is a whole checkpoint, else start. A checkpoint is written beside and
renamed, so one that a kill cut short is never seen; one that turns out damaged is named and the one before is taken.
"""

import pathlib
import sys
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
            UserError: the checkpoint is of a run with another identity.
        """
        wanted = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), state)
        for step in sorted(self._manager.all_steps(), reverse=True):
            try:
                run = self._manager.restore(step, args=self._ocp.args.Composite(run=self._ocp.args.JsonRestore()))
                self._check(run["run"], step)
                args = self._ocp.args.Composite(
                    state=self._ocp.args.StandardRestore(wanted),
                    data=self._grain.checkpoint.CheckpointRestore(data),
                )
                return step, self._manager.restore(step, args=args)["state"]
            except UserError:
                raise
            except Exception as error:  # whatever a reader of damaged files may raise
                reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
                print(f"checkpoint {step} in {self._directory} is damaged and is not used ({reason})", file=sys.stderr)
                self._manager.delete(step)
        return 0, state

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
