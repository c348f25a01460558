"""Slices with steps as Relax writes them: bounds by axis, negative ones from the end, any step but 0."""

from __future__ import annotations

from tvm import relax

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.relax_types import slice_ranges


def slice_of(call: relax.Call) -> ir.StridedSlice | None:
    """The step of a ``strided_slice`` with constant bounds of axes of constant extent; None for any other."""
    ranges = slice_ranges(call)
    if ranges is None:
        return None
    taken = [ranges.get(axis, range(1)) for axis in range(call.ty.ndim)]
    return ir.StridedSlice(tuple(one.start if one else 0 for one in taken), tuple(one.step for one in taken))
