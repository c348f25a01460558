"""Tensors between guards: what stands around them is watched, and shows where a kernel reads it.

The guards of what is read are NaN (255 or -1 around integers), so that reading beyond an operand spoils the
result; those of what is written hold a pattern that nobody computes.  The result starts as NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm_mxplan.byoc.arrays import tensor_of
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.opcheck.estimate import Array

_GUARD = 4096  # bytes
_ALIGNMENT = 64
_PATTERN = np.uint8(0xA5)
_NAN = np.uint8(0xFF)


class Guarded:
    """A tensor; ``written`` says which guards it gets."""

    def __init__(self, shape: tuple[int, ...], dtype: str = "float32", *, written: bool) -> None:
        nbytes = numpy_type(dtype).itemsize * int(np.prod(shape))
        self._guard = _PATTERN if written else _NAN
        raw = np.full(nbytes + 2 * _GUARD + _ALIGNMENT, self._guard, np.uint8)
        begin = _GUARD + -(raw.ctypes.data + _GUARD) % _ALIGNMENT
        self._before, self._after = raw[:begin], raw[begin + nbytes :]
        self.bytes = raw[begin : begin + nbytes]
        self.bytes[:] = _NAN
        self.array: Array = self.bytes.view(numpy_type(dtype)).reshape(shape)
        self.tensor: Any = tensor_of(self.array)

    def refill(self) -> None:
        """Undo what was written inside and around."""
        for area, value in ((self._before, self._guard), (self._after, self._guard), (self.bytes, _NAN)):
            area[:] = value

    def trespassed(self) -> str:
        """Describes where the guards were written to, '' if nowhere."""
        after = np.flatnonzero(self._after != self._guard)
        if after.size:
            return f"{after.size} bytes written behind the tensor, the first at {int(after[0])}"
        before = np.flatnonzero(self._before != self._guard)
        if before.size:
            return f"{before.size} bytes written in front of the tensor"
        return ""
