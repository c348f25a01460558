"""Slices with steps as Relax writes them: bounds by axis, negative ones from the end, any step but 0."""

from __future__ import annotations

from tvm import relax

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import is_static
from tvm_mxplan.passes.relax_types import dim_of, shape_of


def slice_of(call: relax.Call) -> ir.StridedSlice | None:
    """The step of a ``strided_slice`` with constant bounds of axes of constant extent; None for any other."""
    source, shape = shape_of(call.args[0]), shape_of(call)
    arguments = call.args[1:]
    if source is None or shape is None or not all(isinstance(arg, relax.Tuple) for arg in arguments):
        return None
    bounds = [tuple(dim_of(field) for field in arg.fields) for arg in arguments]
    if any(None in one or not is_static(one) for one in bounds):  # type: ignore[arg-type]
        return None
    axes, begins, ends, *given = bounds
    steps_of = given[0] if given else (1,) * len(axes)
    begin, steps = [0] * len(source), [1] * len(source)
    for axis, first, last, step in zip(axes, begins, ends, steps_of, strict=True):
        extent = source[axis]  # type: ignore[index]
        if not isinstance(extent, int) or step == 0:
            return None
        taken = range(*slice(first, last, step).indices(extent))
        if len(taken) != shape[axis]:  # type: ignore[index]
            return None
        begin[axis] = taken.start if len(taken) else 0  # type: ignore[index]
        steps[axis] = step  # type: ignore[index, call-overload]
    return ir.StridedSlice(tuple(begin), tuple(steps))
