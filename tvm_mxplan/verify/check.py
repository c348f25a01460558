"""Running one kernel on the operands of ``data``, and holding what it wrote against ``references``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.decisions.verification import Checked
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.kernel import Kernel
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.layout.layout_arrays import pack
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.errors import MxplanError, UnsupportedError
from tvm_mxplan.opcheck.physical import CheckedTensor, read

from .data import operands
from .drawing import Array, drawn
from .references import Run, judge

MOST_BYTES = 1 << 30
"""Of a kernel's operands: what takes more is not run for a check."""
_POSITIONS = 8
"""A result with fewer positions (samples, pixels) is computed for as many inputs as make up for that: what a
function behind a sum hides at one position, it shows at another."""
_LARGE_BYTES = 64 << 20
_FEW = 3
"""Inputs at most, for a kernel whose operands take more than that."""
_GUARD = 1024
_LINE = 64
"""Bytes that begin at a multiple of themselves: what the runtime aligns memory to, which kernels rely on."""
_UNTOUCHED = -7.0e33
"""The number that stands around and in a result before it is written."""


def check(backend: Backend, kernel: Kernel) -> Checked:
    """Run ``kernel`` once, or a few times where it computes little; errors of the library are findings."""
    if kernel.nbytes > MOST_BYTES:
        return Checked("unchecked", f"its operands take more than {MOST_BYTES:,} bytes")
    program = kernel.program
    info = backend.describe(program).steps[0]
    if info.implementation != kernel.implementation:
        return Checked("unchecked", f"{info.implementation} runs it alone, not {kernel.implementation}")
    try:
        arrays = operands(program)
        constants = [_stored(arrays[v], program.values[v]) for v in program.of_kind("constant")]
        function = backend.trial(program, constants)
        for turn in range(_turns(kernel)):
            arrays = operands(program, turn, arrays)
            reason = _wrong(kernel, function, arrays, info.relative_error)
            if reason:
                return Checked("differs", reason)
    except UnsupportedError as error:
        return Checked("unchecked", str(error))
    except KeyError as error:
        return Checked("unchecked", f"no reference for {error}")
    except MemoryError:
        return Checked("unchecked", "not enough memory")
    except (MxplanError, RuntimeError) as error:
        return Checked("differs", f"does not run: {error}")
    return Checked("agreed")


def _wrong(
    kernel: Kernel, function: Callable[..., object], arrays: Mapping[int, Array], stated: float
) -> str:
    """Describes the error of one run, '' if there is none."""
    program, step = kernel.program, kernel.step
    inputs = [_stored(arrays[value], program.values[value]) for value in program.of_kind("input")]
    results = {o.role: _Guarded(program.values[o.value]) for o in step.operands if o.is_result}
    prior = None
    if any(isinstance(post_op, ir.SumPostOp) for post_op in step.post_ops):
        prior = drawn(results["dst"].shape, 0).astype(results["dst"].inside.dtype, copy=False)
        results["dst"].inside[...] = pack(prior, results["dst"].layout)
    function(*inputs, *(result.inside for result in results.values()))
    for role, result in results.items():
        if result.is_overrun:
            return f"it writes outside of its result {role}"
    written = {role: result.written() for role, result in results.items()}
    logical = {role: tensor.logical for role, tensor in written.items()}
    finding = judge(Run(program, dict(arrays), prior, logical.pop("dst"), stated, logical))
    if finding is not None:
        return str(finding)
    for role, tensor in written.items():
        if tensor.dirty:
            return f"{tensor.dirty} elements in the padding of {role} are not zero"
    return ""


class _Guarded:
    """Memory for a result, with some around it that nobody may write to."""

    def __init__(self, value: ir.Value) -> None:
        self.value = value
        self.layout, self.shape = parse_layout(value.layout), static_shape(value.shape)
        self._count = self.layout.elements(self.shape)
        dtype = numpy_type(value.dtype)
        self._untouched = _untouched(dtype)
        self._memory = _aligned(self._count + 2 * _GUARD, self._untouched)
        inside = self._memory[_GUARD : _GUARD + self._count].view(dtype)
        self.inside = inside.reshape(self.layout.physical_shape(self.shape))

    @property
    def is_overrun(self) -> bool:
        around = self._memory[:_GUARD], self._memory[_GUARD + self._count :]
        return any(bool((part != self._untouched).any()) for part in around)

    def written(self) -> CheckedTensor:
        if self.layout.pads(self.shape):
            self.inside[self.inside == 0] = 0  # a minus zero in the padding does no harm
        return read(self.inside.reshape(-1).view(np.uint8), self.value)


def _aligned(count: int, number: Any) -> Array:
    """So many of a number in memory aligned as arenas are: kernels may store whole lines of the cache."""
    memory = np.full(count + _LINE // number.itemsize, number)
    skipped = -memory.ctypes.data % _LINE // number.itemsize
    return memory[skipped : skipped + count]


def _untouched(dtype: np.dtype[Any]) -> Array:
    """Returns the number in memory before it is written; as plain bytes if the type holds no such number."""
    if dtype.kind in "biu":
        return np.frombuffer(b"\x5a" * dtype.itemsize, f"u{dtype.itemsize}")[0]
    return np.asarray(_UNTOUCHED, dtype)


def _turns(kernel: Kernel) -> int:
    """Returns the number of inputs that a kernel is run on."""
    shape = static_shape(kernel.program.values[kernel.step.dst].shape)
    match kernel.step.attrs:
        case ir.MatMul() | ir.InnerProduct():
            found = math.prod(shape[:-1])
        case ir.Convolution() | ir.Deconvolution():
            found = shape[0] * math.prod(shape[2:])
        case _:
            return 1
    turns = -(-_POSITIONS // max(1, found))
    return min(turns, _FEW) if kernel.nbytes > _LARGE_BYTES else turns


def _stored(array: Array, value: ir.Value) -> Array:
    """``array`` in the physical shape of its value."""
    return pack(array, parse_layout(value.layout))
