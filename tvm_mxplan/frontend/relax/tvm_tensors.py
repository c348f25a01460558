"""Tensors and lists of named tensors in TVM's binary form: ``save_param_dict`` files, arrays inside of JSON.

    tensor: magic, 0, device, rank, element type, extents, bytes, data
    list:   magic, 0, names, count, tensors

All numbers are little-endian.  The bytes may come from anybody: each count is held against what is left.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO, NoReturn

import ml_dtypes
import numpy as np

from ...errors import InvalidInputError, UnsupportedError
from ..aligned import aligned_bytes
from .tvm_magic import LIST_MAGIC, LIST_START, TENSOR_MAGIC

_MOST_AXES = 32
_LONGEST_NAME = 4096
_SLICE = 1 << 28
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_DTYPES = {
    **{f"{kind}{bits}": np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "uint1": np.dtype(bool),
    "bool8": np.dtype(bool),
    "bool1": np.dtype(bool),
}


def looks_like_parameters(start: bytes) -> bool:
    """Whether a file that begins so is a list of named tensors."""
    return start[:8] == LIST_START


def read_parameters(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file that ``save_param_dict`` wrote, by name.

    Raises
    ------
    InvalidInputError : the file is missing, truncated, or something else.
    UnsupportedError : an element type that numpy does not have.
    """
    try:
        with path.open("rb") as file:
            return _Reader(file, os.fstat(file.fileno()).st_size, str(path)).parameters()
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read ({error.strerror}); expected parameters") from error


def read_tensor(file: BinaryIO, size: int, what: str) -> np.ndarray:
    """One tensor from ``file``, which holds ``size`` bytes; see :func:`read_parameters`."""
    return _Reader(file, size, what).tensor()


class _Reader:
    """Takes bytes from a file while there are as many left."""

    def __init__(self, file: BinaryIO, size: int, what: str) -> None:
        self._file = file
        self._left = size
        self._what = what

    def parameters(self) -> dict[str, np.ndarray]:
        self._magic(LIST_MAGIC, "a file of relay.save_param_dict")
        names = [self._name() for _ in range(self._count(8))]
        if self._number("<Q") != len(names):
            self._wrong("as many tensors as names")
        found: dict[str, np.ndarray] = {}
        for name in names:
            if name in found:
                self._wrong(f"each name once, and {name[:60]!a} stands twice")
            found[name] = self.tensor()
        return found

    def tensor(self) -> np.ndarray:
        self._magic(TENSOR_MAGIC, "a tensor of TVM")
        self._take(8)  # the device that it was on
        rank = self._number("<i")
        if not 0 <= rank <= _MOST_AXES:
            self._wrong(f"a rank from 0 to {_MOST_AXES}, got {rank}")
        kind, bits, lanes = struct.unpack("<BBH", self._take(4))
        name = f"{_KINDS.get(kind, f'type {kind} of ')}{bits}"
        if name not in _DTYPES or lanes != 1:
            raise UnsupportedError(
                f"{self._what}: a tensor of {name} with {lanes} lane(s); expected numbers of 8 to 64 bits"
            )
        dtype = _DTYPES[name]
        shape = struct.unpack(f"<{rank}q", self._take(8 * rank))
        if any(extent < 0 for extent in shape):
            self._wrong(f"extents of 0 or more, got {list(shape)}")
        nbytes, elements = self._number("<q"), 1
        for extent in shape:
            elements *= extent
        if nbytes != elements * dtype.itemsize:
            self._wrong(f"{elements * dtype.itemsize:,} bytes for {name}{list(shape)}, got {nbytes:,}")
        if nbytes > self._left:
            self._wrong(f"{nbytes:,} bytes of a tensor, got {self._left:,}: it is truncated")
        return self._data(nbytes).view(dtype).reshape(shape)

    def _data(self, nbytes: int) -> np.ndarray:
        data = aligned_bytes(nbytes)
        view, read = data.data, 0
        while read < nbytes and (some := self._file.readinto(view[read : read + _SLICE])):  # type: ignore[attr-defined]
            read += some
        if read < nbytes:
            self._wrong(f"{nbytes:,} bytes of a tensor, got {read:,}: it is truncated")
        self._left -= nbytes
        return data

    def _magic(self, magic: int, what: str) -> None:
        if self._left < 16 or self._number("<Q") != magic:
            self._wrong(what)
        self._take(8)

    def _name(self) -> str:
        length = self._number("<Q")
        if length > _LONGEST_NAME:
            self._wrong(f"a name of up to {_LONGEST_NAME:,} bytes, got {length:,}")
        return self._take(length).decode("utf-8", "replace")

    def _count(self, least: int) -> int:
        """A number of things of at least as many bytes each."""
        count = self._number("<Q")
        if count * least > self._left:
            self._wrong(f"{count:,} names, and there are {self._left:,} bytes: it is truncated")
        return count

    def _number(self, form: str) -> int:
        (number,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return int(number)

    def _take(self, count: int) -> bytes:
        data = self._file.read(count) if count <= self._left else b""
        if len(data) < count:
            self._wrong(f"{count:,} more bytes, got {len(data):,}: it is truncated")
        self._left -= count
        return data

    def _wrong(self, expected: str) -> NoReturn:
        raise InvalidInputError(f"{self._what}: expected {expected}; save it again")
