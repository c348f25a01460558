"""Gradients of convolutions and pools, as operators that libraries take whole."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm import relax
from tvm.relax import op

from ...errors import UnsupportedError
from ...operators.convolution_gradients import Window, backward_data, backward_weights
from ...operators.pooling_gradients import (
    Pool,
    adaptive_average_pool_backward,
    average_pool_backward,
    max_pool_backward,
)
from .table import Backward, gradient_of

_SPATIAL = ("1d", "2d", "3d")
_LAYOUTS = {3: ("NCW", "OIW", "IOW"), 4: ("NCHW", "OIHW", "IOHW"), 5: ("NCDHW", "OIDHW", "IODHW")}


def _check_layouts(back: Backward, weights: int) -> None:
    attrs, layouts = back.call.attrs, _LAYOUTS[len(back.shape())]
    found = str(attrs.data_layout), str(attrs.kernel_layout), str(attrs.out_layout) or layouts[0]
    if found != (layouts[0], layouts[weights], layouts[0]):
        raise UnsupportedError(
            f"{back.call.op.name}: layouts {', '.join(found)} cannot be trained; expected "
            f"{layouts[0]} and {layouts[weights]}"
        )


def _early(back: Backward, weights_grad: relax.Expr) -> relax.Expr:
    """The weight gradient, in front of the data gradient where fewer bytes are alive so.

    What runs first leaves its result behind, the weight gradient, or lets go of what the other does not read,
    ``src``: the larger of the two had better not wait.
    """
    return back.emit(weights_grad) if math.prod(back.shape(0)) > math.prod(back.shape(1)) else weights_grad


@gradient_of(*(f"nn.conv{n}" for n in _SPATIAL))
def _convolution(back: Backward) -> list[relax.Expr]:
    _check_layouts(back, 1)
    src, weights = back.operands
    window = Window.of(back.call)
    weights_grad = _early(back, backward_weights(src, back.grad, window, back.shape(1)[2:]))
    return [backward_data(back.grad, weights, window, back.shape(0)[2:]), weights_grad]


@gradient_of(*(f"nn.conv{n}_transpose" for n in _SPATIAL))
def _deconvolution(back: Backward) -> list[relax.Expr]:
    """The convolution that it is the data gradient of, run forward, and its weight gradient."""
    _check_layouts(back, 2)
    src, weights = back.operands
    attrs, window = back.call.attrs, Window.of(back.call)
    weights_grad = _early(back, backward_weights(back.grad, src, window, back.shape(1)[2:]))
    forward = {3: op.nn.conv1d, 4: op.nn.conv2d, 5: op.nn.conv3d}[len(back.shape())]
    data_grad = forward(
        back.grad,
        weights,
        strides=list(window.strides),
        padding=list(window.padding),
        dilation=list(window.dilation),
        groups=window.groups,
        data_layout=str(attrs.data_layout),
        kernel_layout=_LAYOUTS[len(back.shape())][1],
    )
    # An output padding lets the convolution read rows that no row of the operand comes from.
    data_grad = back.builder.normalize(data_grad)
    extents = [int(extent) for extent in data_grad.ty.shape.values]
    if extents[2:] != list(back.shape(0)[2:]):
        rank = len(extents)
        shape = back.shape(0)
        data_grad = op.strided_slice(data_grad, range(2, rank), [0] * (rank - 2), shape[2:])
    return [data_grad, weights_grad]


def _check_pool(back: Backward) -> None:
    layout, out = str(back.call.attrs.layout), str(back.call.attrs.out_layout)
    expected = _LAYOUTS[len(back.shape())][0]
    if layout != expected or out not in ("", expected):
        raise UnsupportedError(f"{back.call.op.name}: layout {layout} cannot be trained; expected {expected}")


@gradient_of(*(f"nn.max_pool{n}" for n in _SPATIAL))
def _max_pool(back: Backward) -> list[relax.Expr]:
    _check_pool(back)
    return [max_pool_backward(back.operands[0], back.grad, Pool.of(back.call))]


@gradient_of(*(f"nn.avg_pool{n}" for n in _SPATIAL))
def _average_pool(back: Backward) -> list[relax.Expr]:
    _check_pool(back)
    counts = bool(back.call.attrs.count_include_pad)
    pool = Pool.of(back.call)
    return [average_pool_backward(back.operands[0], back.grad, pool, count_include_pad=counts)]


@gradient_of(*(f"nn.adaptive_avg_pool{n}" for n in _SPATIAL))
def _adaptive_pool(back: Backward) -> list[relax.Expr]:
    _check_pool(back)
    shape, rows = back.shape()[2:], [int(extent) for extent in back.call.ty.shape.values][2:]
    if all(extent % count == 0 for extent, count in zip(shape, rows, strict=True)):
        return [_averages(back, back.grad, [n // count for n, count in zip(shape, rows, strict=True)])]
    return [adaptive_average_pool_backward(back.operands[0], back.grad)]


def _averages(back: Backward, grad: relax.Expr, size: Sequence[int]) -> relax.Call:
    """The gradient of averages over windows that lie side by side."""
    axes = len(size)
    pool = Pool(tuple(size), tuple(size), (0,) * (2 * axes), (1,) * axes)
    return average_pool_backward(back.operands[0], back.emit(grad), pool, count_include_pad=False)


@gradient_of("mean")
def _mean(back: Backward) -> list[relax.Expr]:
    """Of whole images as of an average pool, which libraries take."""
    shape, axis = back.shape(), back.call.attrs.axis
    axes = list(range(len(shape))) if axis is None else sorted(int(at) % len(shape) for at in axis)
    kept = [1 if at in axes else extent for at, extent in enumerate(shape)]
    grad = back.reshaped(back.grad, kept)
    if axes == list(range(2, len(shape))) and 3 <= len(shape) <= 5 and min(shape) > 0:
        return [_averages(back, grad, shape[2:])]
    terms = math.prod(shape[at] for at in axes)
    return [op.multiply(op.broadcast_to(back.emit(grad), shape), back.number(1 / max(1, terms)))]
