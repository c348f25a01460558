"""Slices with steps as Relax writes them: bounds by axis, negative ones from the end, any step but 0."""

from __future__ import annotations

from tvm import relax

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.relax_types import bounds_of, shape_of


def slice_of(call: relax.Call) -> ir.StridedSlice | None:
    """The step of a ``strided_slice`` with constant bounds of axes of constant extent; None for any other."""
    source, shape, bounds = shape_of(call.args[0]), shape_of(call), bounds_of(call)
    if source is None or shape is None or bounds is None:
        return None
    axes, begins, ends, *given = bounds
    steps_of = given[0] if given else (1,) * len(axes)
    begin, steps = [0] * len(source), [1] * len(source)
    for axis, first, last, step in zip(axes, begins, ends, steps_of, strict=True):
        extent = source[axis]
        if not isinstance(extent, int) or step == 0:
            return None
        taken = range(*slice(first, last, step).indices(extent))
        if len(taken) != shape[axis]:
            return None
        begin[axis] = taken.start if len(taken) else 0
        steps[axis] = step
    return ir.StridedSlice(tuple(begin), tuple(steps))
