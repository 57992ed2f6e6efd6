"""Paths in configs: a plain path, or `package:NAME/…` for a file that an installed package ships."""

import glob
import importlib.util
import pathlib

from selfrag_jax.errors import UserError


def resolve(path: str) -> pathlib.Path:
    """The file or directory that a config's path names.

    `package:NAME/PATTERN` looks inside the installed package NAME without importing it (its code and its
    dependencies are not needed); PATTERN may hold wildcards and must match one entry.

    Raises UserError when the package is not installed, or nothing, or more than one entry, matches.
    """
    if not path.startswith("package:"):
        return pathlib.Path(path).expanduser()
    name, _, pattern = path.removeprefix("package:").partition("/")
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f"{path}: the package {name} is not installed; run `make install`")
    found = sorted(glob.glob(pattern, root_dir=spec.submodule_search_locations[0])) if pattern else ["."]
    if not found:
        raise UserError(f"{path}: the package {name} has no such file; correct the path, or reinstall the package")
    if len(found) > 1:
        raise UserError(f"{path}: {len(found)} files match in the package {name}; name one of them")
    return pathlib.Path(spec.submodule_search_locations[0], found[0])
