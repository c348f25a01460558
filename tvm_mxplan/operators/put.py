"""Elements of a tensor in the place of some of another's, as an operator of Relax: ``mxplan.put``.

    R.mxplan.put(data, part, axis, begin, step)

    data   of any shape and type
    part   of the same but along ``axis``: elements begin, begin + step, ... of data's
    result data with part in their place; it may stand where data does, if nothing reads that afterwards

Graphs have it for assignments to slices, ``y[:, 1:3] = part``.
"""

from __future__ import annotations

import tvm
from tvm import relax, te, tirx

from .registration import Operator


def put(data: relax.Expr, part: relax.Expr, axis: int, begin: int, step: int = 1) -> relax.Call:
    """The call of the operator; see the module's text."""
    return PUT.call(data, part, axis=axis, begin=begin, step=step)


def put_by_kernel(
    builder: relax.BlockBuilder,
    data: relax.Expr,
    part: relax.Expr,
    axis: int,
    bounds: tuple[tirx.Expr, tirx.Expr],
    step: int = 1,
) -> relax.Call:
    """A call of a kernel that does the same; its bounds, first and behind the last, need not be numbers."""

    def kernel(
        tensor: te.Tensor, part: te.Tensor, first: tirx.Expr, last: tirx.Expr, *_: tirx.Expr
    ) -> te.Tensor:
        def element(*index: tirx.Var) -> tirx.Expr:
            beyond = index[axis].astype("int64") - first
            inside = tirx.all(beyond >= 0, index[axis] < last, tirx.floormod(beyond, step) == 0)
            place = list(index)
            place[axis] = tirx.floordiv(beyond, step)
            return tirx.if_then_else(inside, part(*place), tensor(*index))

        return te.compute(tensor.shape, element, "put")

    return builder.call_te(kernel, data, part, *bounds, primfunc_name_hint="put_slice")


def place_of(call: relax.Call, axis: int) -> tuple[int, int]:
    """The beginning of a call's part along an axis, and its step."""
    along = axis == int(call.attrs["axis"])
    return (int(call.attrs["begin"]), int(call.attrs["step"])) if along else (0, 1)


def _type(call: relax.Call) -> tvm.ir.Type:
    return call.args[0].ty


def _legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    axis = int(call.attrs["axis"])
    begin, step = place_of(call, axis)
    end = begin + step * call.args[1].ty.shape.values[axis]
    bounds = tirx.IntImm("int64", begin), end
    return put_by_kernel(builder, call.args[0], call.args[1], axis, bounds, step)


PUT = Operator("put", "a tensor with another in the place of some of its elements", _type, _legalize)
