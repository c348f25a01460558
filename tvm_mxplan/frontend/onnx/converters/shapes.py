"""Operators that read shapes or take them as operands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
from tvm import relax, tirx

from .. import stock
from ..dimensions.agree import common
from ..dimensions.dims import (
    Dim,
    compared,
    expression,
    not_negative,
    product,
    safely_divided,
    same,
    simplified,
)
from ..dimensions.ratios import Ratio
from ..dimensions.restate import Demand, met_aside, restated, text_of
from ..node import Emitter, Node, NotTaken
from ..values import Symbols, Value, dtype_of, is_float, shape_of, value_of
from .numbers import constant
from .table import converts


@converts("Shape")
def _shape(emitter: Emitter, node: Node) -> Value:
    dims = emitter.shape(node.input(0))[node.attribute("start", 0) : node.attribute("end")]
    return value_of(dims, (len(dims),))


@converts("Size")
def _size(emitter: Emitter, node: Node) -> Value:
    return value_of([product(emitter.shape(node.input(0)))], ())


@converts("Identity")
def _identity(emitter: Emitter, node: Node) -> Value:
    return node.input(0)


@converts("Reshape")
def _reshape(emitter: Emitter, node: Node) -> Value:
    data, shape = node.input(0), node.input(1)
    if node.opset < 5:
        shape = np.asarray(node.attribute("shape", []), "int64")
    if isinstance(shape, relax.Expr):
        return emitter.reshaped(data, emitter.dims(_resolved(emitter, node)))
    wanted = emitter.dims(shape)
    if not node.attribute("allowzero", 0) and any(isinstance(dim, int) and dim == 0 for dim in wanted):
        dims = emitter.shape(data)
        wanted = [dims[axis] if isinstance(dim, int) and dim == 0 else dim for axis, dim in enumerate(wanted)]
    free = [axis for axis, dim in enumerate(wanted) if isinstance(dim, int) and dim == -1]
    if free:
        rest = product([dim for axis, dim in enumerate(wanted) if axis != free[0]])
        empty = isinstance(rest, int) and rest == 0
        wanted[free[0]] = 0 if empty else safely_divided(product(emitter.shape(data)), rest)
    return emitter.reshaped(data, wanted)


def _resolved(emitter: Emitter, node: Node) -> relax.Expr:
    """A shape that is computed when the model runs, with 0 and -1 replaced there by what they stand for."""
    dims, shape = emitter.shape(node.input(0)), node.input(1)
    length = shape_of(shape)
    if length is None or not isinstance(length[0], int):
        raise NotTaken
    minus, zero, one = (relax.const(number, "int64") for number in (-1, 0, 1))
    shape = emitter.emit(relax.op.astype(shape, "int64"))
    if not node.attribute("allowzero", 0):
        copied = (dims + [0] * length[0])[: length[0]]
        old = emitter.tensor(value_of(copied, (length[0],)))
        shape = emitter.emit(relax.op.where(relax.op.equal(shape, zero), old, shape))
    rest = emitter.emit(relax.op.prod(relax.op.where(relax.op.equal(shape, minus), one, shape)))
    total = emitter.tensor(value_of([product(dims)], ()))
    free = emitter.emit(relax.op.floor_divide(total, relax.op.maximum(rest, one)))
    return emitter.emit(relax.op.where(relax.op.equal(shape, minus), free, shape))


@converts("Expand")
def _expand(emitter: Emitter, node: Node) -> Value:
    data, wanted = node.input(0), emitter.dims(node.input(1))
    return broadcast(emitter, data, wanted, emitter.importer.called(node))


def broadcast(emitter: Emitter, data: Value, wanted: list[Dim], called: str) -> Value:
    """The tensor broadcast together with a shape, as ONNX's Expand does; ``called`` is the node's name."""
    dims = emitter.shape(data)
    old_rank, rank = len(dims), max(len(dims), len(wanted))
    dims = [1] * (rank - old_rank) + dims
    wanted = [1] * (rank - len(wanted)) + wanted
    result = [_broadcast_dim(a, b) for a, b in zip(dims, wanted, strict=True)]
    stated = [old if isinstance(old, int) else new for old, new in zip(dims, result, strict=True)]
    if not all(same(old, new) for old, new in zip(dims, stated, strict=True)):
        data = restated(emitter, data, stated[rank - old_rank :], called)
    if rank == old_rank and all(same(a, b) for a, b in zip(stated, result, strict=True)):
        return data
    shape = relax.ShapeExpr([expression(dim) for dim in result])
    return emitter.emit(relax.op.broadcast_to(emitter.tensor(data), shape))


def _broadcast_dim(left: Dim, right: Dim) -> Dim:
    if isinstance(left, int) and left == 1:
        return right
    if isinstance(right, int) and right == 1:
        return left
    if same(left, right):
        return left
    chosen = common([left, right])
    if chosen is None:
        raise NotTaken
    return chosen


@converts("ConstantOfShape")
def _constant_of_shape(emitter: Emitter, node: Node) -> Value:
    stated = node.attribute("value")
    number = np.zeros((1,), "float32") if stated is None else onnx.numpy_helper.to_array(stated)
    shape = relax.ShapeExpr([expression(dim) for dim in emitter.dims(node.input(0))])
    return emitter.emit(relax.op.full(shape, relax.const(number.reshape(())[()], str(number.dtype))))


@converts("Range")
def _range(emitter: Emitter, node: Node) -> Value:
    dtype = dtype_of(node.input(0))
    if is_float(node.input(0)):
        return _whole_range(emitter, node, dtype)
    if not dtype.startswith("int"):
        raise NotTaken
    if any(isinstance(value, relax.Expr) for value in node.inputs):
        raise NotTaken
    start, stop, step = (emitter.dims(value)[0] for value in node.inputs)
    if not isinstance(step, int) or step == 0:
        raise NotTaken
    return _row(emitter, start, stop, step, dtype)


def _row(emitter: Emitter, start: Dim, stop: Dim, step: int, dtype: str) -> relax.Expr:
    """Whole numbers from ``start`` on, short of ``stop``.

    TVM counts those of a step below 0 wrongly, and those of a range that may be empty: the first are turned
    round, the second stop where they start.
    """
    size, span = abs(step), stop - start if step > 0 else start - stop
    count = simplified(tirx.floordiv(expression(span + size - 1), expression(size)))
    if not not_negative(count):
        count = simplified(tirx.max(expression(count), expression(0)))
    first = start if step > 0 else simplified(start - (count - 1) * size)
    end = simplified(first + count * size)
    row = emitter.emit(relax.op.arange(expression(first), expression(end), expression(size), dtype=dtype))
    return row if step > 0 else emitter.emit(relax.op.flip(row, 0))


def _whole_range(emitter: Emitter, node: Node, dtype: str) -> Value:
    """A range of floats whose start, stop and step are whole numbers."""
    whole: list[Dim] = []
    for value in node.inputs:
        if isinstance(value, np.ndarray) and float(value.reshape(())) == int(value.reshape(())):
            whole.append(int(value.reshape(())))
        elif isinstance(value, Symbols) and not isinstance(value.list()[0], Ratio):
            whole.append(value.list()[0])
        else:
            raise NotTaken
    start, stop, step = whole
    if not isinstance(step, int) or step == 0:
        raise NotTaken
    return emitter.emit(relax.op.astype(_row(emitter, start, stop, step, "int64"), dtype))


@converts("Flatten")
def _flatten(emitter: Emitter, node: Node) -> Value:
    dims = emitter.shape(node.input(0))
    axis = node.attribute("axis", 1)
    axis = axis + len(dims) if axis < 0 else axis
    return emitter.reshaped(node.input(0), [product(dims[:axis]), product(dims[axis:])])


@converts("Squeeze")
def _squeeze(emitter: Emitter, node: Node) -> Value:
    data = node.input(0)
    dims = emitter.shape(data)
    axes = node.attribute("axes")
    axes = node.known(1) if axes is None else axes
    if axes is None:
        if not all(isinstance(dim, int) for dim in dims):
            raise NotTaken
        axes = [axis for axis, dim in enumerate(dims) if dim == 1]
    left_out = {int(axis) % len(dims) for axis in axes}
    called = emitter.importer.called(node)
    demands = [
        Demand(
            tirx.EQ(expression(dims[axis]), expression(1)),
            f"{called}: axis {axis} has {text_of(dims[axis])} elements; expected 1; mend the inputs' shapes",
        )
        for axis in sorted(left_out)
        if compared("==", dims[axis], 1) is None
    ]
    met_aside(emitter, *demands)
    return emitter.viewed(data, [dim for axis, dim in enumerate(dims) if axis not in left_out])


@converts("Unsqueeze")
def _unsqueeze(emitter: Emitter, node: Node) -> Value:
    data = node.input(0)
    axes = node.attribute("axes")
    if axes is None:
        axes = np.atleast_1d(node.numbers(1))  # PyTorch's exporter writes one as a scalar
    dims = emitter.shape(data)
    rank = len(dims) + len(axes)
    new = {int(axis) % rank for axis in axes}
    old = iter(dims)
    return emitter.reshaped(data, [1 if axis in new else next(old) for axis in range(rank)])


@converts("Slice")
def _slice(emitter: Emitter, node: Node) -> Value:
    data = node.input(0)
    dims = emitter.shape(data)
    if node.opset < 10:
        starts, ends = node.attributes["starts"], node.attributes["ends"]
        axes = [axis % len(dims) for axis in node.attribute("axes", range(len(starts)))]
        if all(isinstance(dims[axis], int) for axis in axes):
            return _strided(emitter, data, axes, starts, ends, [1] * len(starts))
        return _between(emitter, data, axes, starts, ends, [1] * len(axes))
    if any(isinstance(value, relax.Expr) for value in node.inputs[1:]):
        return _computed(emitter, node, dims)
    starts, ends = emitter.dims(node.input(1)), emitter.dims(node.input(2))
    stated, strides = node.known(3), node.known(4)
    axes = list(range(len(starts))) if stated is None else [int(axis) % len(dims) for axis in stated]
    steps = [1] * len(starts) if strides is None else [_step(int(step)) for step in strides]
    if all(isinstance(dim, int) for dim in [*starts, *ends]) and all(
        isinstance(dims[axis], int) for axis in axes
    ):
        return _strided(emitter, data, axes, starts, ends, steps)
    return _between(emitter, data, axes, starts, ends, steps)


def _computed(emitter: Emitter, node: Node, dims: list[Dim]) -> Value:
    """Bounds and steps of the call: what they leave nothing of starts and ends at 0, and steps stay small.

    TVM counts the elements between bounds in the wrong order as less than none.
    """
    emit = emitter.emit

    def row(value: Value) -> relax.Expr:
        tensor = emitter.tensor(value)
        return tensor if dtype_of(tensor) == "int64" else emit(relax.op.astype(tensor, "int64"))

    starts, ends = (row(node.input(at)) for at in (1, 2))
    length = shape_of(starts)
    if length is None or len(length) != 1 or not isinstance(length[0], int):
        raise NotTaken
    axes = np.arange(length[0]) if node.input(3) is None else node.input(3)
    axes = emit(relax.op.mod(relax.op.add(row(axes), relax.const(len(dims), "int64")), _number(len(dims))))
    extents = emit(relax.op.take(emitter.tensor(value_of(dims, (len(dims),))), axes, 0))
    steps = row(np.ones(length[0], "int64") if node.input(4) is None else node.input(4))
    most = emit(relax.op.add(extents, _number(1)))
    steps = emit(relax.op.minimum(relax.op.maximum(steps, relax.op.negative(most)), most))
    zero = _number(0)
    forwards = emit(relax.op.greater(steps, zero))
    first = emit(relax.op.where(forwards, zero, _number(-1)))  # the bounds that ends are held in
    last = emit(relax.op.where(forwards, extents, relax.op.subtract(extents, _number(1))))

    def held(position: relax.Expr, least: relax.Expr) -> relax.Expr:
        at = relax.op.where(relax.op.less(position, zero), relax.op.add(position, extents), position)
        return emit(relax.op.minimum(relax.op.maximum(emit(at), least), last))

    begin, end = held(starts, zero), held(ends, first)
    some = emit(relax.op.where(forwards, relax.op.less(begin, end), relax.op.greater(begin, end)))
    before = relax.op.subtract(_number(-1), extents)  # a position before the first, counted from the end
    end = emit(relax.op.where(relax.op.less(end, zero), before, end))
    bounds = [emit(relax.op.where(some, value, zero)) for value in (begin, end)]
    (result,) = stock.converted(
        emitter, replace(node, inputs=[emitter.tensor(node.input(0)), *bounds, axes, steps])
    )
    return result


def _number(value: int) -> relax.Expr:
    return relax.const(value, "int64")


def _between(
    emitter: Emitter, data: Value, axes: list[int], starts: list, ends: list, steps: list[int]
) -> Value:
    """Slices of axes that may have names; backwards, they are turned round behind a slice forwards.

    TVM counts the elements of one backwards wrongly.
    """
    dims = emitter.shape(data)
    bounds = [
        _bounds(dims[axis], start, end) if step > 0 else _bounds_backwards(dims[axis], start, end, -step)
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
    ]
    begin, end = ([expression(pair[side]) for pair in bounds] for side in (0, 1))
    strides = [expression(abs(step)) for step in steps]
    result = emitter.emit(
        relax.op.strided_slice(emitter.tensor(data), axes, begin, end, strides, assume_inbound=True)
    )
    for axis, step in zip(axes, steps, strict=True):
        if step < 0:
            result = emitter.emit(relax.op.flip(result, axis))
    return result


def _strided(emitter: Emitter, data: Value, axes: list[int], starts: list, ends: list, steps: list) -> Value:
    """Slices whose bounds and extents are numbers: those bounds that numpy has, which are in the tensor."""
    dims, bounds = emitter.shape(data), []
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        start = max(int(start), -int(dims[axis])) if step < 0 else int(start)  # unlike numpy
        taken = range(*slice(start, int(end), int(step)).indices(int(dims[axis])))
        behind = taken[-1] + (1 if step > 0 else -1) if taken else 0
        # What is before the first element is counted from the end.
        bounds.append((taken[0], behind if behind >= 0 else -int(dims[axis]) - 1) if taken else (0, 0))
    begin, end = ([pair[side] for pair in bounds] for side in (0, 1))
    return emitter.emit(
        relax.op.strided_slice(emitter.tensor(data), axes, begin, end, steps, assume_inbound=False)
    )


def _step(step: int) -> int:
    """A step with which sums of positions stay within 64 bits."""
    return max(-_THE_END, min(step, _THE_END))


def _bounds(dim: Dim, start: Dim, end: Dim) -> tuple[Dim, Dim]:
    """The elements from ``start`` to ``end`` as numbers from 0 to the dimension."""
    low = _held(start, dim, 0, dim)
    return low, simplified(tirx.max(expression(low), expression(_held(end, dim, 0, dim))))


def _bounds_backwards(dim: Dim, start: Dim, end: Dim, step: int) -> tuple[Dim, Dim]:
    """The lowest of the elements from ``start`` down to ``end``, and the place behind the highest.

    ONNX holds a start in front of the first element at the first one, unlike numpy.
    """
    last = simplified(expression(dim) - 1)
    high, below = (expression(_held(at, dim, least, last)) for at, least in ((start, 0), (end, -1)))
    span = simplified(tirx.max(high - below, expression(0)))
    count = simplified(tirx.floordiv(expression(span) + (step - 1), expression(step)))
    return simplified(high - (expression(count) - 1) * step), simplified(high + 1)


def _held(position: Dim, dim: Dim, first: int, last: Dim) -> Dim:
    """A position from the first to the last; in front of the first where there is none."""
    if isinstance(position, int) and abs(position) >= _THE_END:
        at: Dim = last if position > 0 else first
    else:
        at = tirx.max(_from_the_front(position, dim), tirx.const(first, "int64"))
    return simplified(tirx.min(expression(at), expression(last)))


_THE_END = 2**31 - 1
"""ONNX's number for the end of a dimension whose size is not known; larger ones are used as well."""


def _from_the_front(position: Dim, dim: Dim) -> tirx.Expr:
    """A position that may count from the end."""
    at = expression(position)
    if not isinstance(position, int):
        return tirx.Select(at < 0, at + dim, at)
    return at + dim if position < 0 else at


_LARGEST_MASK = 1 << 20


@converts("Trilu")
def _trilu(emitter: Emitter, node: Node) -> Value:
    data = node.input(0)
    if any(isinstance(dim, int) and dim == 0 for dim in emitter.shape(data)):
        return data
    k, upper = node.known(1), bool(node.attribute("upper", 1))
    if dtype_of(data) == "bool":
        raise NotTaken
    operator = relax.op.triu if upper else relax.op.tril
    diagonal = 0 if k is None else int(k.reshape(-1)[0])
    sizes = [int(dim) for dim in emitter.shape(data)[-2:] if isinstance(dim, int)]
    if len(sizes) == 2 and sizes[0] * sizes[1] <= _LARGEST_MASK:  # libraries choose by a constant
        ones = np.ones(sizes, "bool")
        kept = relax.const(np.triu(ones, diagonal) if upper else np.tril(ones, diagonal))
        return emitter.emit(relax.op.where(kept, emitter.tensor(data), constant(0, dtype_of(data))))
    # TVM takes 32 bits: no tensor has a diagonal farther out.
    return emitter.emit(operator(emitter.tensor(data), max(-_THE_END, min(diagonal, _THE_END))))
