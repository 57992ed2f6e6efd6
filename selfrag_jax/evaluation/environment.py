"""What a run ran on, for whoever reads its figures later."""

import hashlib
import importlib.metadata
import os
import pathlib
import platform
import subprocess
from typing import Any

PACKAGES = ("jax", "jaxlib", "flax", "numpy", "scann", "transformers", "tokenizers", "scikit-learn")


def environment() -> dict[str, Any]:
    """Versions, devices, processor and commit; loads JAX."""
    import jax

    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "devices": [str(device) for device in jax.devices()],
        "commit": _commit(),
        "source": source_digest(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def source_digest() -> str:
    """SHA-256 over the package's modules, by which two states of one commit are told apart; the first 12 digits."""
    package, digest = pathlib.Path(__file__).parent.parent, hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """The commit that is checked out, with a + where files differ from it; "" outside of a repository."""
    try:
        run = subprocess.run(
            ["git", "describe", "--always", "--abbrev=12", "--dirty=+"],
            cwd=pathlib.Path(__file__).parent, capture_output=True, text=True, timeout=20,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""
