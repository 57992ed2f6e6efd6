"""Checks on a finished config: every name known, every type right, every choice among its options.

A dataclass takes any attribute, and a config file is Python, so a mistyped field would otherwise be set and never
read. Every error is a UserError of one line with the field's dotted name.
"""

import dataclasses
import difflib
import math
from collections.abc import Iterator
from typing import Any

from selfrag_jax.config import Config
from selfrag_jax.errors import UserError

CHOICES: dict[str, tuple[str, ...]] = {
    "model.weights": ("f32", "bf16", "int8", "int8_dynamic"),
    "retrieval.searcher": ("auto", "scann", "exact"),
    "decode.retrieve": ("threshold", "token", "always", "never"),
    "decode.threshold_over": ("two", "three"),
    "decode.critique": ("graded", "ideal"),
    "decode.first_term": ("mean_prob", "prob", "log_prob", "none"),
    "decode.combine": ("mean", "sum", "product"),
    "decode.history": ("segments", "passages", "text"),
    "decode.stop_at": ("retrieve", "eos"),
    "decode.absent": ("renormalise", "zero"),
    "data.mask": ("paper", "reference"),
    "train.schedule": ("linear", "cosine"),
}

# Inclusive bounds; None: no bound on that side.
RANGES: dict[str, tuple[float | None, float | None]] = {
    "seed": (0, None),
    "model.vocab_multiple": (1, None),
    "retrieval.max_length": (8, None),
    "retrieval.top_k": (1, None),
    "retrieval.batch_tokens": (1, None),
    "decode.threshold": (0, 1),
    "decode.min_group_mass": (0, 1),
    "decode.beam": (1, None),
    "decode.max_depth": (1, None),
    "decode.max_retrievals": (0, None),
    "decode.max_new_tokens": (1, None),
    "decode.max_segment_tokens": (0, None),
    "decode.probe_tokens": (0, None),
    "decode.batch_size": (1, None),
    "data.sequence_length": (8, None),
    "data.batch_size": (1, None),
    "evaluate.per_kind": (1, None),
    "evaluate.labelled": (1, None),
    "train.steps": (1, None),
    "train.learning_rate": (0, None),
    "train.token_learning_rate": (0, None),
    "train.warmup_ratio": (0, 1),
    "train.weight_decay": (0, None),
    "train.clip_norm": (0, None),
    "train.lora_rank": (0, None),
    "train.blend": (0, 1),
    "train.microbatches": (1, None),
    "train.log_every": (1, None),
    "train.checkpoint_every": (1, None),
    "train.keep_checkpoints": (1, None),
}


def field_types(config_type: type = Config, prefix: str = "") -> Iterator[tuple[str, type]]:
    """Every setting as (dotted name, type), the nested dataclasses opened: `("decode.threshold", float)`, …"""
    for field in dataclasses.fields(config_type):
        assert isinstance(field.type, type), f"{prefix}{field.name}: config fields are annotated with plain types"
        if dataclasses.is_dataclass(field.type):
            yield from field_types(field.type, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, field.type


def flatten(config: Config) -> dict[str, Any]:
    """Every setting's value by its dotted name, in the order of `selfrag_jax/config.py`."""

    def value(name: str) -> Any:
        node: Any = config
        for part in name.split("."):
            node = getattr(node, part)
        return node

    return {name: value(name) for name, _ in field_types()}


def nearest(name: str) -> str:
    """The known dotted name that `name` most likely means, or "" if none is near.

    The last part counts most: `decode.treshold`, `retrieval.threshold` and `threshold` all mean `decode.threshold`.
    """
    known = [known_name for known_name, _ in field_types()]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    if close:
        return close[0]
    by_last_part = {known_name.rpartition(".")[2]: known_name for known_name in known}
    close = difflib.get_close_matches(name.rpartition(".")[2], by_last_part, n=1, cutoff=0.75)
    return by_last_part[close[0]] if close else ""


def unknown_field(name: str, where: str) -> UserError:
    """The error for a setting that does not exist, with the nearest one that does."""
    sections = [field.name for field in dataclasses.fields(Config) if dataclasses.is_dataclass(field.type)]
    if name in sections:
        return UserError(f"{where}: {name} is a group of settings, not a setting; set one of its fields, {name}.…")
    guess = nearest(name)
    hint = f"did you mean {guess}?" if guess else "see selfrag_jax/config.py for every setting"
    return UserError(f"{where}: there is no setting {name}; {hint}")


def validate(config: Config, where: str = "config") -> Config:
    """Returns `config` when every field is known, of its type, within its bounds and among its choices.

    `where` begins the error's line: the config file's name, or `config`. An int is taken where a float is wanted.
    Raises UserError on the first fault, in the order of `selfrag_jax/config.py`.
    """
    _check_names(config, "", where)
    for name, expected in field_types():
        _check_value(config, name, expected, where)
    if config.data.batch_size % config.train.microbatches:
        raise UserError(
            f"{where}: train.microbatches={config.train.microbatches} does not divide data.batch_size="
            f"{config.data.batch_size}"
        )
    if config.train.blend < 1 and not (config.model.adapter and config.train.lora_rank):
        raise UserError(
            f"{where}: train.blend={config.train.blend:g} mixes the trained adapter with the one it started from, but"
            " there is none; name it in model.adapter, or leave train.blend at 1"
        )
    return config


def _check_names(node: Any, prefix: str, where: str) -> None:
    fields = {field.name: field for field in dataclasses.fields(node)}
    for name, value in vars(node).items():
        if name not in fields:
            raise unknown_field(prefix + name, where)
        expected = fields[name].type
        if dataclasses.is_dataclass(expected):
            if type(value) is not expected:
                kind = type(value).__name__
                raise UserError(f"{where}: {prefix}{name} must be a {_type_name(expected)}, not {kind}")
            _check_names(value, f"{prefix}{name}.", where)


def _check_value(config: Config, name: str, expected: type, where: str) -> None:
    holder: Any = config
    *path, last = name.split(".")
    for part in path:
        holder = getattr(holder, part)
    value: Any = getattr(holder, last)
    if expected is float and type(value) is int:
        value = float(value)
        setattr(holder, last, value)
    if not _is_exactly(value, expected):
        raise UserError(f"{where}: {name}={value!r} is of type {type(value).__name__}; {type_hint(expected)} is wanted")
    if name in CHOICES and value not in CHOICES[name]:
        raise UserError(f"{where}: {name}={value!r} is not one of {', '.join(CHOICES[name])}")
    if expected is float and not math.isfinite(value):
        raise UserError(f"{where}: {name}={value!r} is not a finite number")
    low, high = RANGES.get(name, (None, None))
    if low is not None and value < low:
        raise UserError(f"{where}: {name}={value!r} is too small; the least is {low}")
    if high is not None and value > high:
        raise UserError(f"{where}: {name}={value!r} is too large; the most is {high}")


def _is_exactly(value: Any, expected: type) -> bool:
    return type(value) is expected  # a bool is an int to isinstance


def type_hint(expected: type) -> str:
    """How a type is named to a user: "a whole number", "true or false", …"""
    return {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}[expected]


def _type_name(expected: Any) -> str:
    return getattr(expected, "__name__", str(expected))
