"""Weights from a Hugging Face directory or a GGUF file into the stacked tree, and out to a Hugging Face directory.

Every tensor is cast and turned straight into its place in a preallocated `[L, …]` buffer, on a few threads, so that
loading needs little more memory than the tree itself.
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from selfrag_jax.errors import UserError
from selfrag_jax.files import write_text
from selfrag_jax.models import llama, llama_config, safetensors
from selfrag_jax.models.gguf_file import GgufFile
from selfrag_jax.models.linear import quantize_int8
from selfrag_jax.models.llama import Params, ParamSpec
from selfrag_jax.models.llama_config import LlamaConfig
from selfrag_jax.tokenizer import Tokenizer

_THREADS = min(8, os.cpu_count() or 1)
_TABLES = ("embed", "head")  # [V, D]: one row per token


class _Source(Protocol):
    """A weight file, or a directory of them."""

    source: str
    shapes: dict[str, tuple[int, ...]]

    def read(self, name: str, out: np.ndarray) -> None: ...


def load(
    path: pathlib.Path | str, *, new_tokens: int = 0, vocab_multiple: int = 1, dtype: Any = np.float32
) -> tuple[LlamaConfig, Params]:
    """The configuration and the weights of a model.

    Args:
        path: a Hugging Face directory (config.json and safetensors), or a .gguf file.
        new_tokens: ids added after the model's own; their rows start as the mean of its rows (`prepare_vocabulary`).
        vocab_multiple: the tables are padded with zero rows to a multiple of this.
        dtype: of every leaf.

    Returns:
        The configuration, whose `vocab_size` counts the new tokens but not the padding, and the tree of NumPy arrays
        in the shapes of `llama.abstract_params(config, rows)`.

    Raises:
        UserError: a missing or truncated file, another architecture, a tensor that is missing, unknown or misshapen.
    """
    config, source, names = _open(pathlib.Path(path))
    rows = _padded(config.vocab_size + new_tokens, vocab_multiple)
    params: Params = {"blocks": {}}
    jobs: list[tuple[str, np.ndarray]] = []
    for name, spec in llama.top_table(config).items():
        shape = _shape(spec, config, rows)
        params[name] = _aligned_empty(shape, dtype)
        out = params[name][: config.vocab_size] if name in _TABLES else params[name]
        _check(source, names(spec), out.shape)
        jobs.append((names(spec), out))
    for name, spec in llama.block_table(config).items():
        params["blocks"][name] = leaf = _aligned_empty(_shape(spec, config, rows), dtype)
        for layer in range(config.num_layers):
            out = leaf[layer].T if spec.transposed else leaf[layer]
            _check(source, names(spec).format(layer), out.shape)
            jobs.append((names(spec).format(layer), out))
    _refuse_unknown(source, config, {name for name, _ in jobs})
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda job: source.read(*job), sorted(jobs, key=lambda job: -job[1].nbytes)))
    for name in _TABLES:
        if name in params:
            _fill_new_rows(params[name], config.vocab_size, new_tokens)
    return dataclasses.replace(config, vocab_size=config.vocab_size + new_tokens), params


def _open(path: pathlib.Path) -> tuple[LlamaConfig, _Source, Any]:
    """The configuration, the opened source, and how a ParamSpec is called in it."""
    if path.is_dir():
        return read_config(path), safetensors.SafetensorsDirectory(path), lambda spec: spec.hf
    if not path.exists():
        raise UserError(f"{path}: no such file or directory; give a Hugging Face directory or a .gguf file")
    source = GgufFile(path)
    return source.config, source, lambda spec: spec.gguf


def read_config(path: pathlib.Path) -> LlamaConfig:
    """The configuration of a Hugging Face directory or a GGUF file, without its weights. Raises UserError as `load`."""
    if not path.is_dir():
        return _open(path)[0]
    file = path / "config.json"
    try:
        return llama_config.from_hf(json.loads(file.read_text("utf-8")), str(file))
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}); is this a Hugging Face directory?") from None
    except ValueError as error:
        raise UserError(f"{file}: not valid JSON ({error}); download it again") from None


def _shape(spec: ParamSpec, config: LlamaConfig, rows: int) -> tuple[int, ...]:
    sizes = llama.axis_sizes(config, rows)
    return tuple(sizes[axis] for axis in spec.axes)


def _padded(rows: int, multiple: int) -> int:
    return -(-rows // multiple) * multiple


def _aligned_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An uninitialised array on a 64-byte boundary: `jax.device_put` takes such a one over on a CPU without a copy."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


def _check(source: _Source, name: str, shape: tuple[int, ...]) -> None:
    if name not in source.shapes:
        raise UserError(f"{source.source}: the tensor {name} is missing; is the download complete?")
    if tuple(source.shapes[name]) != tuple(shape):
        raise UserError(f"{source.source}: {name} has shape {source.shapes[name]}, but the configuration says {shape}")


def _refuse_unknown(source: _Source, config: LlamaConfig, used: set[str]) -> None:
    """A tensor that nothing reads means a network that is not this one."""
    unknown = sorted(name for name in source.shapes.keys() - used if not name.endswith("rotary_emb.inv_freq"))
    if config.tie_embeddings and "lm_head.weight" in unknown:
        unknown.remove("lm_head.weight")  # some writers store the tied table twice
    if unknown:
        raise UserError(f"{source.source}: {len(unknown)} tensors do not belong to a Llama, the first is {unknown[0]}")


def _fill_new_rows(table: np.ndarray, used: int, new: int) -> None:
    """New rows as the mean of those in use, so that a new token starts out likely to be none in particular."""
    table[used : used + new] = table[:used].mean(axis=0, dtype=np.float32).astype(table.dtype)
    table[used + new :] = 0


def load_with(
    path: pathlib.Path | str, tokenizer: Tokenizer, *, vocab_multiple: int = 1, dtype: Any = np.float32
) -> tuple[LlamaConfig, Params]:
    """`load`, with rows for the ids that the tokenizer added, each the mean of the rows before them.

    Where the model's tables are longer than its own vocabulary, added ids fall on rows that stood unused; these start
    from the mean like new ones.
    """
    own = read_config(pathlib.Path(path)).vocab_size
    new_tokens = max(0, tokenizer.vocab_size - own)
    config, params = load(path, new_tokens=new_tokens, vocab_multiple=vocab_multiple, dtype=dtype)
    first = tokenizer.vocab_size - tokenizer.num_added
    for table in (params[name] for name in _TABLES if name in params and first < own):
        table[first : tokenizer.vocab_size] = table[:first].mean(axis=0, dtype=np.float32)
    return config, params


def prepare_vocabulary(
    params: Params, config: LlamaConfig, new_tokens: int, multiple: int = 1
) -> tuple[Params, LlamaConfig]:
    """Add rows for `new_tokens` ids to a tree, and pad its tables to a multiple.

    Embedding and head each get the mean of their own rows in use. The padding is zero, and `llama.logits` masks it
    because the returned `config.vocab_size` leaves it out. The given tree is not changed.
    """
    used, params = config.vocab_size, dict(params)
    for name in _TABLES:
        if name in params:
            old = np.asarray(params[name])
            params[name] = _aligned_empty((_padded(used + new_tokens, multiple), old.shape[1]), old.dtype)
            params[name][:used] = old[:used]
            _fill_new_rows(params[name], used, new_tokens)
    return params, dataclasses.replace(config, vocab_size=used + new_tokens)


@jax.jit
def _quantize_matrix(w_IO: jax.Array) -> Any:
    return quantize_int8(w_IO)


def quantize(params: Params, config: LlamaConfig, kind: str = "int8", *, dynamic: bool = False) -> Params:
    """The tree with every matrix of the blocks and the tables as `linear.Int8Weight`; vectors stay as they are.

    Tables are turned to [D, V]: quantised with D as the input axis, as the head uses them. With `dynamic`, activations
    are rounded too (`linear.Int8Weight`); embedding look-ups are the same either way.
    """
    if kind != "int8":
        raise UserError(f"weights={kind!r} is not a quantisation; expected int8")

    def quantized(w: Any) -> Any:
        return dataclasses.replace(_quantize_matrix(jnp.asarray(w)), dynamic=dynamic)

    table = llama.block_table(config)
    blocks = {name: quantized(w) if table[name].transposed else w for name, w in params["blocks"].items()}
    top = {name: quantized(jnp.asarray(params[name]).T) for name in _TABLES if name in params}
    return {**params, **top, "blocks": blocks}


def named_tensors(params: Params, config: LlamaConfig) -> Iterator[tuple[str, np.ndarray]]:
    """The Hugging Face name and the tensor, as files have it, of every parameter; vocabulary padding is left out."""
    for name, spec in llama.top_table(config).items():
        array = np.asarray(params[name])
        yield spec.hf, array[: config.vocab_size] if name in _TABLES else array
    for name, spec in llama.block_table(config).items():
        for layer, array in enumerate(np.asarray(params["blocks"][name])):
            yield spec.hf.format(layer), array.T if spec.transposed else array


def export_hf(params: Params, config: LlamaConfig, directory: pathlib.Path, *, dtype: Any = None) -> None:
    """Write config.json and model.safetensors, which `load` and `transformers` read.

    Args:
        params: plain arrays (an adapter merged, nothing quantised); tables may be padded, files are not.
        dtype: of the stored tensors; by default that of each leaf.

    Raises UserError for a configuration that Hugging Face cannot express.
    """
    hf_config = llama_config.to_hf(config)
    tensors = {name: array if dtype is None else array.astype(dtype) for name, array in named_tensors(params, config)}
    stored = next(iter(tensors.values())).dtype
    hf_config["dtype"] = stored.name
    directory.mkdir(parents=True, exist_ok=True)
    safetensors.write(directory / "model.safetensors", tensors, {"format": "pt"})
    write_text(directory / "config.json", json.dumps(hf_config, indent=2) + "\n")
