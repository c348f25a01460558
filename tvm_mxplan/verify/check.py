"""Running one kernel on the operands of ``data``, and holding what it wrote against ``references``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.kernel import Kernel
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.layout.layout_arrays import pack
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.core.verification import Checked
from tvm_mxplan.errors import MxplanError, UnsupportedError
from tvm_mxplan.opcheck.physical import read

from .data import Array, drawn, operands
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
_UNTOUCHED = -7.0e33
"""What stands around and in a result before it is written."""


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
    """What one run has wrong, '' if nothing."""
    program, step = kernel.program, kernel.step
    inputs = [_stored(arrays[value], program.values[value]) for value in program.of_kind("input")]
    value = program.values[step.dst]
    layout, shape = parse_layout(value.layout), static_shape(value.shape)
    count = layout.elements(shape)
    dtype = numpy_type(value.dtype)
    untouched = _untouched(dtype)
    memory = np.full(count + 2 * _GUARD, untouched)
    out = memory[_GUARD : _GUARD + count].view(dtype).reshape(layout.physical_shape(shape))
    prior = None
    if any(isinstance(post_op, ir.SumPostOp) for post_op in step.post_ops):
        prior = drawn(shape, 0).astype(dtype, copy=False)
        out[...] = pack(prior, layout)
    function(*inputs, out)
    if (memory[:_GUARD] != untouched).any() or (memory[_GUARD + count :] != untouched).any():
        return "it writes outside of its result"
    if layout.pads(shape):
        out[out == 0] = 0  # a minus zero in the padding does no harm
    written = read(out.reshape(-1).view(np.uint8), value)
    finding = judge(Run(program, dict(arrays), prior, written.logical, stated))
    if finding is not None:
        return str(finding)
    return f"{written.dirty} elements in the padding of dst are not zero" if written.dirty else ""


def _untouched(dtype: np.dtype[Any]) -> Array:
    """What stands in memory of a type before it is written; as plain bytes where it holds no such number."""
    if dtype.kind in "biu":
        return np.frombuffer(b"\x5a" * dtype.itemsize, f"u{dtype.itemsize}")[0]
    return np.asarray(_UNTOUCHED, dtype)


def _turns(kernel: Kernel) -> int:
    """How many inputs a kernel is run on."""
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
