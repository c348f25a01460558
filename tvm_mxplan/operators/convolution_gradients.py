"""Gradients of convolutions as operators of Relax.

    R.mxplan.convolution_backward_data(grad, weights, strides, padding, dilation, groups, extents)
    R.mxplan.convolution_backward_weights(src, grad, strides, padding, dilation, groups, extents)

    src      (N, C, ...)             what the convolution reads
    weights  (K, C / groups, ...)
    grad     (N, K, ...)             the gradient of what it writes

Each gives the gradient of the operand that it names, whose spatial ``extents`` the other two do not tell: a
stride may leave the last rows of an image unread.  All attributes are the convolution's own.  One to three
spatial axes, channels first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tvm
from tvm import relax, te, tirx, topi

from .registration import Operator, dtype_of, numbers, shape_of


@dataclass(frozen=True)
class Window:
    """The window of a convolution: strides and dilation by spatial axis, padding before all, then behind."""

    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    @classmethod
    def of(cls, call: relax.Call) -> Window:
        """The window of a convolution of Relax's, or of a gradient."""
        attrs = call.attrs
        return cls(
            numbers(attrs["strides"]),
            numbers(attrs["padding"]),
            numbers(attrs["dilation"]),
            int(attrs["groups"]),
        )


def backward_data(
    grad: relax.Expr, weights: relax.Expr, window: Window, extents: Sequence[int]
) -> relax.Call:
    """The gradient of what a convolution reads, of the spatial ``extents``."""
    return BACKWARD_DATA.call(grad, weights, **_attributes(window, extents))


def backward_weights(src: relax.Expr, grad: relax.Expr, window: Window, extents: Sequence[int]) -> relax.Call:
    """The gradient of a convolution's weights, of the spatial ``extents``."""
    return BACKWARD_WEIGHTS.call(src, grad, **_attributes(window, extents))


def misfit(call: relax.Call) -> str | None:
    """Says how the gradient that ``backward_weights`` reads has not a row for each window; None if it has."""
    src, grad = (shape_of(arg) for arg in call.args)
    window, extents = Window.of(call), numbers(call.attrs["extents"])
    axes = len(extents)
    for axis in range(axes):
        reach = (extents[axis] - 1) * window.dilation[axis] + 1
        padded = src[2 + axis] + window.padding[axis] + window.padding[axes + axis]
        rows = (padded - reach) // window.strides[axis] + 1
        if rows != grad[2 + axis]:
            return f"windows at {rows} places on axis {axis}, and a gradient of {grad[2 + axis]}"
    return None


def _attributes(window: Window, extents: Sequence[int]) -> dict[str, object]:
    return {
        "strides": list(window.strides),
        "padding": list(window.padding),
        "dilation": list(window.dilation),
        "groups": window.groups,
        "extents": list(extents),
    }


def _data_type(call: relax.Call) -> tvm.ir.Type:
    grad, weights = call.args
    channels = shape_of(weights)[1] * int(call.attrs["groups"])
    shape = (shape_of(grad)[0], channels, *numbers(call.attrs["extents"]))
    return relax.TensorType(shape, dtype_of(grad))


def _weights_type(call: relax.Call) -> tvm.ir.Type:
    src, grad = call.args
    channels = shape_of(src)[1] // int(call.attrs["groups"])
    shape = (shape_of(grad)[1], channels, *numbers(call.attrs["extents"]))
    return relax.TensorType(shape, dtype_of(grad))


def _legalize_data(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    window, shape = Window.of(call), numbers(call.ty.shape.values)
    spatial = range(len(window.strides))

    def compute(grad: te.Tensor, weights: te.Tensor) -> te.Tensor:
        filters, inner, *kernel = numbers(weights.shape)
        each = filters // window.groups
        of_group = te.reduce_axis((0, each), "k")
        taps = [te.reduce_axis((0, size), "r") for size in kernel]

        def element(n: tirx.Expr, c: tirx.Expr, *at: tirx.Expr) -> tirx.Expr:
            filter_at = c // inner * each + of_group
            places = [at[i] + window.padding[i] - taps[i] * window.dilation[i] for i in spatial]
            rows = [place // window.strides[i] for i, place in enumerate(places)]
            met = [place % window.strides[i] == 0 for i, place in enumerate(places)]
            inside = [
                test for i, row in enumerate(rows) for test in (places[i] >= 0, row < grad.shape[2 + i])
            ]
            value = grad(n, filter_at, *rows) * weights(filter_at, c % inner, *taps)
            zero = tirx.const(0, grad.dtype)
            return te.sum(tirx.if_then_else(_all([*met, *inside]), value, zero), [of_group, *taps])

        return te.compute(shape, element, "backward_data")

    return builder.call_te(compute, *call.args, primfunc_name_hint="convolution_backward_data")


def _legalize_weights(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    window, shape = Window.of(call), numbers(call.ty.shape.values)
    spatial = len(window.strides)

    def compute(src: te.Tensor, grad: te.Tensor) -> te.Tensor:
        filters, inner = shape[:2]
        each = filters // window.groups
        before = [0, 0, *window.padding[:spatial]]
        # Far enough for the last tap of the last row.
        needed = [
            (int(grad.shape[2 + i]) - 1) * window.strides[i] + (shape[2 + i] - 1) * window.dilation[i] + 1
            for i in range(spatial)
        ]
        behind = [max(0, needed[i] - int(src.shape[2 + i]) - window.padding[i]) for i in range(spatial)]
        padded = topi.nn.pad(src, before, [0, 0, *behind])
        samples = te.reduce_axis((0, grad.shape[0]), "n")
        rows = [te.reduce_axis((0, extent), "o") for extent in grad.shape[2:]]

        def element(k: tirx.Expr, c: tirx.Expr, *taps: tirx.Expr) -> tirx.Expr:
            places = [row * window.strides[i] + taps[i] * window.dilation[i] for i, row in enumerate(rows)]
            value = padded(samples, k // each * inner + c, *places) * grad(samples, k, *rows)
            return te.sum(value, [samples, *rows])

        return te.compute(shape, element, "backward_weights")

    return builder.call_te(compute, *call.args, primfunc_name_hint="convolution_backward_weights")


def _all(tests: Sequence[tirx.Expr]) -> tirx.Expr:
    found = tests[0]
    for test in tests[1:]:
        found = tirx.And(found, test)
    return found


BACKWARD_DATA = Operator(
    "convolution_backward_data", "the gradient of what a convolution reads", _data_type, _legalize_data
)
BACKWARD_WEIGHTS = Operator(
    "convolution_backward_weights",
    "the gradient of a convolution's weights",
    _weights_type,
    _legalize_weights,
)
