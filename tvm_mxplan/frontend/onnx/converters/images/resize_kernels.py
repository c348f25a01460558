"""Kernels that resize one axis: a table of positions and weights, and a sum by it.

Tables of axes whose sizes are numbers are made now, others by a kernel when the model runs; both by the
formulas of ``interpolation.py``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import tvm
from tvm import relax, te, tirx

from ...dimensions.dims import Dim, expression
from ...values import dtype_of
from .interpolation import Axis, Rule, coordinate_of, inside, taps_of


def resized_along(builder: relax.BlockBuilder, data: relax.Expr, axis: Axis, rule: Rule) -> relax.Expr:
    """One axis of a tensor resized; with antialiasing, sizes and scale have to be known."""
    dtype = dtype_of(data)
    crops = rule.coordinates == "tf_crop_and_resize"
    if axis.is_known:
        positions, weights, outside = _known_table(axis, rule)
        tables: list[relax.Expr] = [relax.const(positions, "int32")]
        tables += [relax.const(weights.astype(dtype), dtype)] if rule.method != "nearest" else []
        tables += [relax.const(outside, "int32")] if crops else []
    else:
        tables = _emitted_table(builder, axis, rule, dtype)

    def kernel(tensor: te.Tensor, result: Dim, *tables: te.Tensor) -> te.Tensor:
        shape = list(tensor.shape)
        shape[axis.axis] = result
        taps = 1 if rule.method == "nearest" else int(tables[0].shape[1])

        def element(*index: tirx.Var) -> tirx.Expr:
            at = index[axis.axis]
            read = [
                tensor(*index[: axis.axis], tables[0][at, tap], *index[axis.axis + 1 :])
                for tap in range(taps)
            ]
            value = read[0]
            if rule.method != "nearest":
                value = read[0] * tables[1][at, 0]
                for tap in range(1, taps):
                    value = value + read[tap] * tables[1][at, tap]
            if crops:
                value = tirx.if_then_else(tables[-1][at] != 0, tirx.const(rule.extrapolation, dtype), value)
            return value

        return te.compute(shape, element, "resized")

    return builder.emit_te(kernel, data, expression(axis.result), *tables, primfunc_name_hint="resize_axis")


def _known_table(axis: Axis, rule: Rule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions and weights for each element of the result, and whether it lies outside of the input."""
    at = np.arange(int(axis.result), dtype="float64")
    last = int(axis.size) - 1
    coordinates = coordinate_of(at, axis, rule, np)
    taps = taps_of(coordinates, axis, rule, np)
    shape = (len(at), len(taps))
    positions = np.empty(shape, "int32")
    weights = np.empty(shape, "float64")
    for tap, (position, weight) in enumerate(taps):
        positions[:, tap] = np.clip(position, 0, max(last, 0))
        weights[:, tap] = weight
    outside = np.logical_not(inside(coordinates, axis, np))
    return positions, weights, outside.astype("int32")


def _emitted_table(builder: relax.BlockBuilder, axis: Axis, rule: Rule, dtype: str) -> list[relax.Expr]:
    """The same tables, made by a kernel when the model runs."""
    crops = rule.coordinates == "tf_crop_and_resize"
    operands = [pair[0] for pair in (axis.scale_at, axis.region_at) if pair is not None]

    def tables(size: Dim, result: Dim, *tensors: te.Tensor) -> list[te.Tensor]:
        left = list(tensors)
        local = replace(axis, size=size, result=result)
        if axis.scale_at is not None:
            local = replace(local, scale=left.pop(0)[axis.scale_at[1]].astype("float64"))
        if axis.region_at is not None:
            region = left.pop(0)
            ends = tuple(region[at].astype("float64") for at in axis.region_at[1:])
            local = replace(local, region=ends)
        last = tirx.max(expression(size) - 1, tirx.const(0, "int64"))

        # A tensor of its own: TVM cannot bind what float64 makes of a loop's variable to a name.
        coordinates = te.compute(
            (result,),
            lambda at: coordinate_of(at.astype("float64"), local, rule, _Expressions),
            "coordinates",
        )

        def taps(at: tirx.Var) -> list[tuple[tirx.Expr, tirx.Expr]]:
            return taps_of(coordinates(at), local, rule, _Expressions)

        def position(at: tirx.Var, tap: tirx.Var) -> tirx.Expr:
            found = [pair[0].astype("int64") for pair in taps(at)]
            return tirx.max(tirx.min(_picked(found, tap), last), tirx.const(0, "int64")).astype("int32")

        count = {"nearest": 1, "linear": 2, "cubic": 4}[rule.method]
        made = [te.compute((result, count), position, "positions")]
        if rule.method != "nearest":
            made.append(
                te.compute(
                    (result, count),
                    lambda at, tap: _picked([pair[1] for pair in taps(at)], tap).astype(dtype),
                    "weights",
                )
            )
        if crops:
            made.append(
                te.compute(
                    (result,),
                    lambda at: tirx.Select(
                        inside(coordinates(at), local, _Expressions),
                        tirx.const(0, "int32"),
                        tirx.const(1, "int32"),
                    ),
                    "outside",
                )
            )
        return made

    found = builder.emit_te(
        tables, expression(axis.size), expression(axis.result), *operands, primfunc_name_hint="resize_table"
    )
    if isinstance(found.ty, relax.TensorType):
        return [found]
    return [builder.emit(relax.TupleGetItem(found, at)) for at in range(len(found.ty.fields))]


def _picked(values: list[tirx.Expr], at: tirx.Var) -> tirx.Expr:
    """The value at a position that is an expression."""
    picked = values[-1]
    for number in range(len(values) - 2, -1, -1):
        picked = tirx.if_then_else(at.equal(number), values[number], picked)
    return picked


class _Expressions:
    """Numpy's names for what the formulas need, on expressions of TVM."""

    floor = staticmethod(tirx.floor)
    ceil = staticmethod(tirx.ceil)
    where = staticmethod(tirx.if_then_else)
    logical_and = staticmethod(tirx.And)

    @staticmethod
    def less(left: object, right: object) -> tirx.Expr:
        return tirx.LT(_wide(left), _wide(right))

    @staticmethod
    def less_equal(left: object, right: object) -> tirx.Expr:
        return tirx.LE(_wide(left), _wide(right))

    @staticmethod
    def equal(left: object, right: object) -> tirx.Expr:
        return tirx.EQ(_wide(left), _wide(right))

    @staticmethod
    def float64(value: object) -> tirx.Expr:
        return _wide(value)

    @staticmethod
    def float32(value: object) -> tirx.Expr:
        return _wide(value).astype("float32")


def _wide(value: object) -> tirx.Expr:
    if tvm.ir.is_prim_expr(value):
        return value.astype("float64")  # type: ignore[attr-defined]
    return tirx.const(float(value), "float64")  # type: ignore[arg-type]
