"""The command line of every command: positional arguments, its own flags, `--config=FILE` and `--config.FIELD=VALUE`.

`config_flags` does the overriding; what is wrapped around it turns its tracebacks into one line each.
"""

import dataclasses
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags
from ml_collections import config_flags

from selfrag_jax.config import Config
from selfrag_jax.config_check import field_types, flatten, type_hint, unknown_field, validate
from selfrag_jax.config_file import load_config
from selfrag_jax.errors import UserError

DEFAULT_CONFIG = "configs/demo.py"


@dataclasses.dataclass
class Invocation:
    """A parsed command line."""

    config: Config  # file and overrides, checked
    config_path: str
    arguments: list[str]  # what is not a flag
    flags: flags.FlagValues

    def __getitem__(self, name: str) -> Any:
        return self.flags[name].value


def parse(
    arguments: Sequence[str],
    *,
    usage: str,
    summary: str,
    define: Callable[[flags.FlagValues], None] | None = None,
    default_config: str = DEFAULT_CONFIG,
    positional: bool = False,
) -> Invocation:
    """Parses `arguments` (without the program's name), loads the config and applies the overrides.

    `define` adds the command's own flags; flags and positional arguments may mix, `--` ends the flags, and without
    `positional` only flags are taken. `--help` prints `usage`, `summary`, the flags and every setting, and raises
    SystemExit(0). Raises UserError for an unknown flag or setting (naming the nearest one), a value of the wrong
    type, and every fault of the config file.
    """
    values = flags.FlagValues()
    values.set_gnu_getopt(True)
    if define is not None:
        define(values)
    if any(argument in ("--help", "-h", "-help") for argument in _before_terminator(arguments)):
        _print_help(usage, summary, values, default_config)
        raise SystemExit(0)
    config_path, rest = _take_config(arguments, default_config)
    _check_override_names(rest)
    config = load_config(config_path)
    argv = [usage, *rest]
    config_flags.DEFINE_config_dataclass("config", config, flag_values=values, sys_argv=list(_before_terminator(argv)))
    try:
        left = values(argv)[1:]
    except flags.Error as error:
        raise UserError(_flag_error(error)) from error
    overridden = values["config"].value
    assert isinstance(overridden, Config)
    if left and not positional:
        raise UserError(f"unexpected argument {left[0]!r}; usage: {usage}")
    return Invocation(validate(overridden, "--config"), config_path, left, values)


def _before_terminator(arguments: Sequence[str]) -> Sequence[str]:
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _take_config(arguments: Sequence[str], default: str) -> tuple[str, list[str]]:
    """The config file's path, and the other arguments: where `--config` stands makes no difference."""
    path = default
    rest: list[str] = []
    remaining = list(arguments)
    while remaining:
        argument = remaining.pop(0)
        if argument == "--":
            return path, [*rest, argument, *remaining]
        if re.fullmatch(r"--?config", argument):
            if not remaining:
                raise UserError(f"{argument} needs a value: --config={default}")
            path = remaining.pop(0)
        elif match := re.match(r"--?config=", argument):
            path = argument[match.end() :]
        else:
            rest.append(argument)
    return path, rest


def _check_override_names(arguments: Sequence[str]) -> None:
    known = {name for name, _ in field_types()}
    for argument in _before_terminator(arguments):
        match = re.match(r"--?(?:no)?config\.([^=]*)", argument)
        if match and match[1] not in known:
            raise unknown_field(match[1], argument.partition("=")[0])


def _flag_error(error: flags.Error) -> str:
    message = " ".join(str(error).split())
    match = re.match(r"flag --config\.([\w.]+)=(.*?): ", message)
    if match:
        wanted = type_hint(dict(field_types())[match[1]])
        return f"--config.{match[1]}={match[2]}: {wanted} is wanted"
    if isinstance(error, flags.UnrecognizedFlagError):
        hint = (
            f"; did you mean --{error.args[0].split('Did you mean: ')[1].split(' ')[0]}?"
            if "Did you" in message
            else ""
        )
        return f"there is no flag --{error.flagname}{hint or '; --help lists them'}"
    return message[0].lower() + message[1:]


def _print_help(usage: str, summary: str, values: flags.FlagValues, default_config: str) -> None:
    print(f"usage: {usage}\n\n{summary}\n\nflags:")
    own = sorted(name for name in values if values[name].name == name)
    for name in own:
        flag = values[name]
        print(f"  --{name + ('' if flag.boolean else '=…'):<20} {flag.help}")
    print(f"  {'--config=FILE':<22} the config file (default: {default_config})")
    print(f"  {'--config.FIELD=VALUE':<22} another value for one setting (what they mean: selfrag_jax/config.py)\n")
    try:
        config = load_config(default_config)
    except UserError:  # help must work anywhere
        config = Config()
    for name, value in flatten(config).items():
        print(f"    {name} = {value!r}")
    sys.stdout.flush()
