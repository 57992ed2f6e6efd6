"""Tensors of a Hugging Face directory, each in its own dtype, read from a memory map; and a writer of the same format.

A file is a little-endian u64 header size, a JSON header `{name: {dtype, shape, data_offsets}}`, then the bytes. NumPy
has no bfloat16 or float8 of its own, so the dtypes come from `ml_dtypes`.
"""

import json
import mmap
import os
import pathlib
import secrets
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from selfrag_jax.errors import UserError

_DTYPES: dict[str, np.dtype] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_PIECE_BYTES = 1 << 20  # pieces of about this size stay in the cache while they are cast and turned


class SafetensorsFile:
    """One file, mapped; nothing is read but the header until a tensor is asked for."""

    def __init__(self, path: pathlib.Path):
        """Raises UserError when the file is missing, truncated or not safetensors."""
        self.path = path
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < 8:
                    raise UserError(f"{path}: only {size} bytes long; download the file again")
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}); check the path or download it again") from None
        self._data_begin, self.header, self.metadata = _header(self._map, path)

    def view(self, name: str) -> np.ndarray:
        """The tensor as a read-only view of the map, in the dtype of the file; reading its elements reads the disk."""
        entry = self.header[name]
        begin, end = entry["data_offsets"]
        data = memoryview(self._map)[self._data_begin + begin : self._data_begin + end]
        return np.frombuffer(data, _DTYPES[entry["dtype"]]).reshape(entry["shape"])

    def read(self, name: str, out: np.ndarray) -> None:
        """Copy the tensor into `out` (its shape, any strides, any dtype), and let go of the pages it was read from."""
        copy_rows(self.view(name), out)
        begin, end = (self._data_begin + offset for offset in self.header[name]["data_offsets"])
        begin -= begin % mmap.PAGESIZE
        if hasattr(self._map, "madvise") and hasattr(mmap, "MADV_DONTNEED") and end > begin:
            self._map.madvise(mmap.MADV_DONTNEED, begin, end - begin)  # else they count as ours beside the copy


def copy_rows(source: np.ndarray, out: np.ndarray) -> None:
    """`out[...] = source`, a few rows at a time: several times faster when `out` is transposed or of another dtype."""
    if source.shape != out.shape:
        raise ValueError(f"a tensor of shape {source.shape} does not fit a buffer of shape {out.shape}")
    if source.ndim < 2:
        out[...] = source
        return
    rows = max(1, _PIECE_BYTES // max(1, source[0].nbytes))
    for start in range(0, len(source), rows):
        out[start : start + rows] = source[start : start + rows].astype(out.dtype)


def _header(data: mmap.mmap, path: pathlib.Path) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Where the data begins, the checked entries by name, and the file's own metadata."""
    begin = 8 + int.from_bytes(data[:8], "little")
    if begin > len(data):
        raise UserError(f"{path}: ends within its header ({len(data)} of {begin} bytes); download the file again")
    try:
        header = json.loads(data[8:begin])
        metadata = header.pop("__metadata__", {})
        for name, entry in header.items():
            first, last = entry["data_offsets"]
            if entry["dtype"] not in _DTYPES:
                raise UserError(f"{path}: the tensor {name} has dtype {entry['dtype']}, which is not supported")
            if last - first != int(np.prod(entry["shape"], dtype=np.int64)) * _DTYPES[entry["dtype"]].itemsize:
                raise UserError(f"{path}: the size of the tensor {name} contradicts its shape; download the file again")
            if begin + last > len(data):
                raise UserError(
                    f"{path}: truncated ({len(data)} bytes; the tensor {name} ends at {begin + last});"
                    " download the file again"
                )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: not a safetensors file (its header makes no sense); download it again") from None
    return begin, header, metadata


class SafetensorsDirectory:
    """The tensors of a directory: `model.safetensors`, or shards with or without `model.safetensors.index.json`."""

    def __init__(self, directory: pathlib.Path):
        """Raises UserError when there is no weight file, or one is missing, truncated or not safetensors."""
        self.source = str(directory)
        index = directory / "model.safetensors.index.json"
        expected: dict[str, str] = {}
        if index.is_file():
            try:
                expected = json.loads(index.read_text("utf-8"))["weight_map"]
                names = sorted(set(expected.values()))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise UserError(f"{index}: not a safetensors index (no weight_map); download it again") from None
        else:
            names = sorted(path.name for path in directory.glob("*.safetensors") if not path.name.startswith("adapter"))
        if not names:
            raise UserError(f"{directory}: no *.safetensors file there; convert or download the weights in that format")
        files = {name: SafetensorsFile(directory / name) for name in names}
        self._files = {tensor: file for file in files.values() for tensor in file.header}
        for tensor, name in expected.items():
            if tensor not in files[name].header:
                raise UserError(
                    f"{files[name].path}: the index puts the tensor {tensor} there; download the file again"
                )
        self.shapes = {tensor: tuple(file.header[tensor]["shape"]) for tensor, file in self._files.items()}

    def view(self, name: str) -> np.ndarray:
        """See SafetensorsFile.view."""
        return self._files[name].view(name)

    def read(self, name: str, out: np.ndarray) -> None:
        """See SafetensorsFile.read."""
        self._files[name].read(name, out)


def write(path: pathlib.Path, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors (and string metadata) to `path`, beside first and then renamed, so that it is whole or absent."""
    arrays = {name: np.asarray(array) for name, array in tensors.items()}
    # Widest first, as the format asks, so that every tensor is aligned to its elements.
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    at = 0
    for name in order:
        array = arrays[name]
        end = at + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(beside, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name in order:
                np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).tofile(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
