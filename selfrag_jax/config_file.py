"""Configs on disk: the Python file that defines one, and the JSON record of the one that was used."""

import dataclasses
import importlib.util
import json
import pathlib
import re
import sys
import traceback
import types
from typing import Any

from selfrag_jax.config import Config
from selfrag_jax.config_check import nearest, unknown_field, validate
from selfrag_jax.errors import UserError


def load_config(path: str | pathlib.Path) -> Config:
    """Runs the config file at `path` and returns its checked `get_config()`.

    Raises UserError, one line that names the file (and the line in it), when the file is missing, fails to run, has no
    `get_config`, or yields a config with an unknown, mistyped or out-of-range field.
    """
    path = pathlib.Path(path).expanduser()
    if not str(path) or path == pathlib.Path():
        raise UserError("--config is empty; name a config file, e.g. --config=configs/demo.py")
    if not path.is_file():
        raise UserError(f"{path}: there is no such config file{_others(path)}")
    try:
        config = _run(path).get_config()
    except UserError:
        raise
    except Exception as error:  # the file is the user's code: whatever it raises is told in one line
        raise UserError(f"{_position(error, path)}: {_reason(error)}") from error
    if not isinstance(config, Config):
        raise UserError(f"{path}: get_config() returns {type(config).__name__}, not selfrag_jax.config.Config")
    return validate(config, str(path))


def config_to_json(config: Config) -> str:
    """The resolved config as indented JSON; `config_from_json` reads it back."""
    return json.dumps(dataclasses.asdict(config), indent=2, ensure_ascii=False) + "\n"


def config_from_json(text: str, where: str = "config") -> Config:
    """The config that `config_to_json` wrote; fields that are absent keep their defaults.

    Raises UserError, with `where` (the file's name) in front, for broken JSON and for unknown or mistyped fields.
    """
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise UserError(f"{where}: not JSON ({error})") from error
    if not isinstance(tree, dict):
        raise UserError(f"{where}: a JSON object is wanted, not {type(tree).__name__}")
    return validate(_fill(Config, tree, "", where), where)


def _fill(config_type: type, tree: dict[str, Any], prefix: str, where: str) -> Any:
    types_by_name = {field.name: field.type for field in dataclasses.fields(config_type)}
    values = {}
    for name, value in tree.items():
        if name not in types_by_name:
            raise unknown_field(prefix + name, where)
        nested = types_by_name[name]
        if isinstance(nested, type) and dataclasses.is_dataclass(nested) and isinstance(value, dict):
            value = _fill(nested, value, f"{prefix}{name}.", where)
        values[name] = value
    return config_type(**values)


def _run(path: pathlib.Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"selfrag_config_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path}: a config is a Python file, with a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    # A config may build on another one beside it (`import demo`).
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent.resolve()))
    if not callable(getattr(module, "get_config", None)):
        raise UserError(f"{path}: defines no get_config()")
    return module


def _position(error: Exception, path: pathlib.Path) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if pathlib.Path(frame.filename) == path]
    return f"{path}:{frames[-1].lineno}" if frames else str(path)


def _reason(error: Exception) -> str:
    message = " ".join(str(error).split())
    unexpected = re.search(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'", message)
    if unexpected:
        group, name = unexpected.groups()
        section = group.removesuffix("Config").lower()
        guess = nearest(f"{section}.{name}" if section else name)
        return f"{group} has no field {name}" + (f"; did you mean {guess}?" if guess else "")
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _others(path: pathlib.Path) -> str:
    found = sorted(str(other) for other in path.parent.glob("*.py")) if path.parent.is_dir() else []
    if found and path.parent != pathlib.Path():
        return f"; {path.parent} holds {', '.join(pathlib.Path(other).name for other in found)}"
    return "; name one with --config=PATH (the examples are in the checkout's configs/)"
