"""Gradients of slices, pads, repetitions, selections and views."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm import relax, te, tirx
from tvm.relax import op

from ...errors import UnsupportedError
from ...passes.relax_types import slice_begin, slice_ranges
from .table import Backward, gradient_of


@gradient_of("squeeze", "flatten", "nn.batch_flatten", "expand_dims")
def _view(back: Backward) -> list[relax.Expr]:
    return [back.reshaped(back.grad, back.shape())]


@gradient_of("concat")
def _concat(back: Backward) -> list[relax.Expr]:
    """A slice for each piece, which libraries take as a view."""
    pieces = [tuple(int(n) for n in field.shape.values) for field in back.call.args[0].ty.fields]
    axis = int(back.call.attrs.axis) % len(pieces[0])
    found, begin = [], 0
    for piece in pieces:
        found.append(op.strided_slice(back.grad, [axis], [begin], [begin + piece[axis]]))
        begin += piece[axis]
    return [relax.Tuple([back.emit(one) for one in found])]


@gradient_of("stack")
def _stack(back: Backward) -> list[relax.Expr]:
    pieces = [tuple(int(n) for n in field.shape.values) for field in back.call.args[0].ty.fields]
    axis = int(back.call.attrs.axis or 0) % (len(pieces[0]) + 1)
    found = [
        back.reshaped(op.strided_slice(back.grad, [axis], [at], [at + 1]), piece)
        for at, piece in enumerate(pieces)
    ]
    return [relax.Tuple([back.emit(one) for one in found])]


@gradient_of("strided_slice")
def _strided_slice(back: Backward) -> list[relax.Expr]:
    shape, begin = back.shape(), slice_begin(back.call)
    none = [back.none(at) for at in range(1, len(back.call.args))]
    if begin is None:
        return [_spread(back), *none]
    sliced = [int(extent) for extent in back.call.ty.shape.values]
    widths: list[int] = []
    for extent, first, length in zip(shape, begin, sliced, strict=True):
        widths += [first, extent - first - length]
    return [op.nn.pad(back.grad, widths) if any(widths) else back.grad, *none]


def _spread(back: Backward) -> relax.Expr:
    """Of a slice with steps: elements go where they came from, 0 between them."""
    shape, ranges = back.shape(), slice_ranges(back.call)
    if ranges is None:
        raise UnsupportedError("a slice whose bounds are no constant numbers cannot be trained")

    def kernel(grad: te.Tensor) -> te.Tensor:
        def element(*index: tirx.Expr) -> tirx.Expr:
            places, tests = list(index), []
            for axis, taken in ranges.items():
                offset = (index[axis] - taken.start) * (1 if taken.step > 0 else -1)
                step = abs(taken.step)
                places[axis] = offset // step
                tests += [offset >= 0, offset % step == 0, offset // step < len(taken)]
            met = tests[0]
            for test in tests[1:]:
                met = tirx.And(met, test)
            return tirx.if_then_else(met, grad(*places), tirx.const(0, grad.dtype))

        return te.compute(shape, element, "strided_slice_backward")

    return back.builder.call_te(kernel, back.grad, primfunc_name_hint="strided_slice_backward")


@gradient_of("nn.pad")
def _pad(back: Backward) -> list[relax.Expr]:
    attrs, shape = back.call.attrs, back.shape()
    if str(attrs.pad_mode) != "constant":
        raise UnsupportedError(f"a pad of mode {attrs.pad_mode} cannot be trained yet; expected constant")
    widths = [int(width) for width in attrs.pad_width]
    begins = [max(0, width) for width in widths[::2]]
    ends = [
        first + extent + min(0, before) + min(0, after)
        for first, extent, before, after in zip(begins, shape, widths[::2], widths[1::2], strict=True)
    ]
    kept = op.strided_slice(back.grad, list(range(len(shape))), begins, ends)
    cut = [max(0, -width) for width in widths]
    return [op.nn.pad(back.emit(kept), cut) if any(cut) else kept]


@gradient_of("tile")
def _tile(back: Backward) -> list[relax.Expr]:
    shape, repeats = back.shape(), [int(count) for count in back.call.attrs.repeats]
    shape = (1,) * (len(repeats) - len(shape)) + shape
    repeats = [1] * (len(shape) - len(repeats)) + repeats
    apart = [extent for pair in zip(repeats, shape, strict=True) for extent in pair]
    summed = op.sum(back.reshaped(back.grad, apart), list(range(0, len(apart), 2)))
    return [back.reshaped(summed, back.shape())]


@gradient_of("flip")
def _flip(back: Backward) -> list[relax.Expr]:
    return [op.flip(back.grad, int(back.call.attrs.axis))]


@gradient_of("repeat")
def _repeat(back: Backward) -> list[relax.Expr]:
    shape, axis = back.shape(), back.call.attrs.axis
    repeats = int(back.call.attrs.repeats)
    if axis is None:
        return [back.reshaped(op.sum(back.reshaped(back.grad, [-1, repeats]), [1]), shape)]
    at = int(axis) % len(shape) + 1
    return [op.sum(back.reshaped(back.grad, (*shape[:at], repeats, *shape[at:])), [at])]


@gradient_of("where")
def _where(back: Backward) -> list[relax.Expr]:
    condition, zero = back.operands[0], relax.const(0, _element_type(back.operands[1]))
    left = back.collapsed(op.where(condition, back.grad, zero), 1)
    right = back.collapsed(op.where(condition, zero, back.grad), 2)
    return [back.none(0), left, right]


def _element_type(expr: relax.Expr) -> str:
    return str(getattr(expr.ty.dtype, "dtype", expr.ty.dtype))


@gradient_of("max", "min")
def _extreme(back: Backward) -> list[relax.Expr]:
    """Shared by all elements that are the extreme one."""
    shape, attrs = back.shape(), back.call.attrs
    axes = _axes(attrs.axis, len(shape))
    kept = [1 if at in axes else extent for at, extent in enumerate(shape)]
    result, grad = back.reshaped(back.result, kept), back.reshaped(back.grad, kept)
    met = back.emit(op.astype(op.equal(back.operands[0], result), back.dtype))
    count = op.sum(met, axes, keepdims=True)
    return [op.multiply(met, op.divide(grad, count))]


@gradient_of("prod")
def _prod(back: Backward) -> list[relax.Expr]:
    """The product of all other elements, of those in front and of those behind: a 0 is one like others."""
    shape = back.shape()
    axes = _axes(back.call.attrs.axis, len(shape))
    order = [at for at in range(len(shape)) if at not in axes] + axes
    count = math.prod(shape[at] for at in axes)
    rows = back.emit(back.reshaped(op.permute_dims(back.operands[0], order), (-1, count)))
    front = back.emit(op.cumprod(rows, 1, exclusive=True))
    behind = op.flip(back.emit(op.cumprod(back.emit(op.flip(rows, 1)), 1, exclusive=True)), 1)
    each = op.multiply(back.emit(op.multiply(front, behind)), back.reshaped(back.grad, (-1, 1)))
    moved = back.reshaped(each, [shape[at] for at in order])
    return [op.permute_dims(back.emit(moved), [order.index(at) for at in range(len(shape))])]


def _axes(axis: Sequence[int] | None, rank: int) -> list[int]:
    return list(range(rank)) if axis is None else [int(one) % rank for one in axis]
