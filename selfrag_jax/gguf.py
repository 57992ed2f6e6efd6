"""The header of a GGUF file, read directly: its key-value pairs and where its tensors lie.

The `gguf` package's reader makes numpy views of every element, which costs eight seconds for a vocabulary of 49,152
tokens; this costs a tenth of one. Layout: magic, version u32, tensor count u64, pair count u64, the pairs, then of each
tensor its name, sizes, type and offset.
"""

import dataclasses
import mmap
import pathlib
import struct
from typing import Any

import numpy as np

from selfrag_jax.errors import UserError

# GGUF value types by number; 8 is a string and 9 an array.
_SCALARS = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    7: "?",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
_STRING, _ARRAY = 8, 9
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


class _Cursor:
    """A place in the file's bytes; every read moves it on."""

    def __init__(self, data: mmap.mmap):
        self.data = data
        self.at = 0

    def unpack(self, form: struct.Struct) -> int:
        (value,) = form.unpack_from(self.data, self.at)
        self.at += form.size
        return value

    def string(self) -> str:
        size = self.unpack(_U64)
        raw = self.data[self.at : self.at + size]
        if len(raw) != size:
            raise struct.error("string goes beyond the end")
        self.at += size
        return raw.decode("utf-8", "replace")

    def numbers(self, kind: int, count: int) -> np.ndarray:
        dtype = np.dtype(_SCALARS[kind])
        values = np.frombuffer(self.data, dtype, count, self.at).copy()
        self.at += dtype.itemsize * count
        return values

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY:
            return self.numbers(kind, 1)[0].item()
        kind, count = self.unpack(_U32), self.unpack(_U64)
        if kind == _STRING:
            return [self.string() for _ in range(count)]
        return [self.value(kind) for _ in range(count)] if kind == _ARRAY else self.numbers(kind, count)


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """Where a tensor lies in the file."""

    shape: tuple[int, ...]  # outermost first; the file has it innermost first
    kind: int  # the number of its ggml type
    begin: int  # in bytes from the start of the file


def read_metadata(path: pathlib.Path) -> dict[str, Any]:
    """Every key of the header: numbers, bools, strings, lists of strings, and 1-d numpy arrays of numbers.

    Raises UserError when the file is missing, is not GGUF version 2 or 3, or ends within its header.
    """
    return read_header(path)[0]


def read_header(path: pathlib.Path) -> tuple[dict[str, Any], dict[str, TensorInfo]]:
    """What `read_metadata` returns, and the tensors by name. The same errors."""
    try:
        with open(path, "rb") as file:
            magic = file.read(4)
            if magic != b"GGUF":
                raise UserError(f"{path}: not a GGUF file (it begins with {magic!r}); download it again")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _header(_Cursor(data), path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; check the path") from None


def _header(cursor: _Cursor, path: pathlib.Path) -> tuple[dict[str, Any], dict[str, TensorInfo]]:
    try:
        cursor.at = 4
        version = cursor.unpack(_U32)
        if version not in (2, 3):
            raise UserError(f"{path}: GGUF version {version}; versions 2 and 3 are read: convert it again")
        tensors, pairs = cursor.unpack(_U64), cursor.unpack(_U64)
        metadata = {cursor.string(): cursor.value(cursor.unpack(_U32)) for _ in range(pairs)}
        return metadata, _tensors(cursor, tensors, int(metadata.get("general.alignment", 32)))
    except (struct.error, ValueError, KeyError, OverflowError):
        # The file is truncated, or so damaged that a length or a type makes no sense.
        raise UserError(f"{path}: the header is damaged or ends early; download the file again") from None


def _tensors(cursor: _Cursor, count: int, alignment: int) -> dict[str, TensorInfo]:
    found = {}
    for _ in range(count):
        name = cursor.string()
        sizes = [cursor.unpack(_U64) for _ in range(cursor.unpack(_U32))]
        found[name] = TensorInfo(tuple(reversed(sizes)), cursor.unpack(_U32), cursor.unpack(_U64))
    base = -(-cursor.at // alignment) * alignment  # offsets count from here
    return {name: dataclasses.replace(info, begin=info.begin + base) for name, info in found.items()}
