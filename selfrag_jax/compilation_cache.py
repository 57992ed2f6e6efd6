"""JAX's persistent compilation cache: what one run compiled, the next one reads."""

import hashlib
import os
import pathlib
import platform


def cache_dir() -> pathlib.Path:
    """Where compiled programs are kept: `$XDG_CACHE_HOME/selfrag_jax/xla-…`, by default under ~/.cache.

    The folder's name tells processors apart: programs for one may not run on another that shares the home directory.
    """
    root = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path("~/.cache").expanduser())
    return root / "selfrag_jax" / f"xla-{platform.machine()}-{_processor()}"


def enable() -> None:
    """Turns the cache on, for programs of every size; call it before anything is compiled.

    JAX_COMPILATION_CACHE_DIR, where it is set, names another folder (empty: no cache).
    """
    import jax

    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(cache_dir()))


def _processor() -> str:
    """A short name of this processor's instruction set: a digest of the flags that Linux lists, else of its name."""
    flags = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next((line for line in file if line.startswith(("flags", "Features"))), flags)
    except OSError:
        pass
    return hashlib.sha256(flags.encode()).hexdigest()[:8]
