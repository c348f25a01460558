"""Orders along an axis: the k-th element, the middle one, running extremes, places among sorted numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tvm import relax

from .....errors import UnsupportedError
from ....onnx.dimensions.dims import Dim
from ...node import Emitter, Node, dims_of, dtype_of
from ..table import converts


@converts("kthvalue.default", "median.dim")
def _kth(emitter: Emitter, node: Node) -> list[relax.Expr]:
    """The k-th smallest element of each row and its place; of two in the middle, the median is the lower."""
    source, dims = node["self"], dims_of(node["self"])
    if not dims:
        return [source, relax.const(0, "int64")]
    axis = node["dim"] % len(dims)
    values, places = _smallest(emitter, source, node.operands.get("k"), axis)
    if not node["keepdim"]:
        values, places = (emitter.emit(relax.op.squeeze(one, [axis])) for one in (values, places))
    return [values, places]


@converts("median.default")
def _median(emitter: Emitter, node: Node) -> relax.Expr:
    flat = emitter.emit(relax.op.reshape(node["self"], [-1]))
    values, _ = _smallest(emitter, flat, None, 0)
    return emitter.reshaped(values, [])


def _middle(extent: Dim) -> int:
    if not isinstance(extent, int):
        raise UnsupportedError("the median of a row whose length varies; expected a length that is a number")
    return (extent + 1) // 2


def _smallest(
    emitter: Emitter, source: relax.Expr, k: int | None, axis: int
) -> tuple[relax.Expr, relax.Expr]:
    """The k-th smallest of each row along an axis, counted from 1, and its place, the axis kept.

    Without ``k`` it is the middle one, and NaN in a row that has one; else NaN stands behind all numbers.
    """
    extent, dtype, emit = dims_of(source)[axis], dtype_of(source), emitter.emit
    at = _middle(extent) if k is None else k
    nan = emit(relax.op.not_equal(source, source)) if "float" in dtype else None
    if nan is not None:  # an order has no place for NaN
        source = emit(relax.op.where(nan, relax.const(np.inf, dtype), source))
    found = emit(relax.op.topk(source, at, axis, "both", largest=False, dtype="int64"))
    kept = [emit(relax.TupleGetItem(found, which)) for which in range(2)]
    values, places = (emit(relax.op.strided_slice(one, [axis], [at - 1], [at])) for one in kept)
    if nan is None:
        return values, places
    marks = emitter.cast(nan, "int32")
    many = emit(relax.op.sum(marks, [axis], keepdims=True))
    numbers = emit(relax.op.subtract(emitter.scalar(extent, "int32"), many))
    last = emitter.scalar(extent if k is None else k, "int32")
    lacks = emit(relax.op.less(numbers, last))
    first = emitter.cast(emit(relax.op.argmax(marks, axis, keepdims=True)), "int64")
    return (
        emit(relax.op.where(lacks, relax.const(np.nan, dtype), values)),
        emit(relax.op.where(lacks, first, places)),
    )


@converts("topk.default")
def _largest(emitter: Emitter, node: Node) -> list[relax.Expr]:
    """The k largest or smallest, sorted whether that is asked for or not."""
    source = node["self"]
    if not dims_of(source) or node["k"] == 0:
        return _without_order(emitter, node)
    found = emitter.emit(
        relax.op.topk(source, node["k"], node["dim"], "both", largest=node["largest"], dtype="int64")
    )
    return [emitter.emit(relax.TupleGetItem(found, at)) for at in range(2)]


@converts("sort.default", "sort.stable")
def _sorted(emitter: Emitter, node: Node) -> list[relax.Expr]:
    """All elements in their order, equal ones as they stand."""
    source, axis = node["self"], node["dim"]
    if not dims_of(source) or 0 in dims_of(source):
        return _without_order(emitter, node)
    if dtype_of(source) == "bool":
        source = emitter.cast(source, "int8")
    places = emitter.emit(relax.op.argsort(source, axis, bool(node["descending"]), dtype="int64"))
    values = emitter.emit(relax.op.gather_elements(source, places, axis))
    return [emitter.cast(values, dtype_of(node["self"])), places]


def _without_order(emitter: Emitter, node: Node) -> list[relax.Expr]:
    """A tensor without axes in order, or no elements."""
    values, places = node.stated
    assert values is not None
    assert places is not None
    if 0 in values.shape:
        return [emitter.broadcast(relax.const(0, one.dtype), one.shape) for one in (values, places)]
    return [
        emitter.reshaped(node["self"], values.shape),
        emitter.reshaped(relax.const(0, "int64"), places.shape),
    ]


@converts("cummax.default", "cummin.default")
def _running_extreme(emitter: Emitter, node: Node) -> list[relax.Expr]:
    """The extreme so far and where it stands, the last one among equals."""
    source, dims = node["self"], dims_of(node["self"])
    if not dims:
        return [source, relax.const(0, "int64")]
    axis = node["dim"] % len(dims)
    extent = _known(dims[axis], "a running extreme")
    better = relax.op.greater if ".cummax." in node.operator else relax.op.less
    rows = [1] * len(dims)
    rows[axis] = extent
    places = emitter.broadcast(relax.const(np.arange(extent).reshape(rows), "int64"), dims)
    values = source
    for distance in _distances(extent):
        before = [_moved(emitter, tensor, axis, distance, extent) for tensor in (values, places)]
        takes = emitter.emit(better(before[0], values))
        if "float" in dtype_of(source):  # what follows NaN is NaN
            nan = emitter.emit(relax.op.isnan(before[0]))
            own = emitter.emit(relax.op.isnan(values))
            unless = emitter.emit(relax.op.logical_and(nan, emitter.emit(relax.op.logical_not(own))))
            takes = emitter.emit(relax.op.logical_or(takes, unless))
        values = emitter.emit(relax.op.where(takes, before[0], values))
        places = emitter.emit(relax.op.where(takes, before[1], places))
    return [values, places]


@converts("logcumsumexp.default")
def _running_logarithm(emitter: Emitter, node: Node) -> relax.Expr:
    """The logarithm of the sum of exponentials so far, added in pairs so that none overflows."""
    source, dims = node["self"], dims_of(node["self"])
    if not dims:
        return source
    axis = node["dim"] % len(dims)
    extent = _known(dims[axis], "a running sum of exponentials")
    least = relax.const(-np.inf, dtype_of(source))
    rows = [1] * len(dims)
    rows[axis] = extent
    for distance in _distances(extent):
        before = _moved(emitter, source, axis, distance, extent)
        inside = relax.const((np.arange(extent) >= distance).reshape(rows), "bool")
        before = emitter.emit(relax.op.where(inside, before, least))
        most = emitter.emit(relax.op.maximum(source, before))
        endless = emitter.emit(relax.op.isinf(most))
        shift = emitter.emit(relax.op.where(endless, relax.const(0.0, dtype_of(source)), most))
        parts = [
            emitter.emit(relax.op.exp(emitter.emit(relax.op.subtract(one, shift))))
            for one in (source, before)
        ]
        total = emitter.emit(relax.op.log(emitter.emit(relax.op.add(*parts))))
        source = emitter.emit(relax.op.add(total, shift))
    return source


def _distances(extent: int) -> list[int]:
    """1, 2, 4, ...: each doubles the elements that an element has seen."""
    found, distance = [], 1
    while distance < extent:
        found.append(distance)
        distance *= 2
    return found


def _moved(emitter: Emitter, tensor: relax.Expr, axis: int, distance: int, extent: int) -> relax.Expr:
    """The element a distance before each one; the first element for those in front."""
    places = np.maximum(np.arange(extent) - distance, 0)
    return emitter.emit(relax.op.take(tensor, relax.const(places, "int64"), axis))


def _known(extent: Dim, what: str) -> int:
    if not isinstance(extent, int):
        raise UnsupportedError(
            f"{what} along an axis whose length varies; expected a length that is a number"
        )
    return extent


@converts("searchsorted.Tensor")
def _searched(emitter: Emitter, node: Node) -> relax.Expr:
    """The number of sorted numbers before each one."""
    if node["sorter"] is not None:
        raise UnsupportedError("numbers that are sorted by a list of places; expected sorted numbers")
    rows, source = node["sorted_sequence"], node["self"]
    right = node["right"] or node["side"] == "right"
    dims, width = dims_of(source), len(dims_of(rows))
    line = dims_of(rows)[-1]
    if width == 1:
        rows = emitter.reshaped(rows, [*[1] * len(dims), line])
    else:
        rows = emitter.reshaped(rows, [*dims_of(rows)[:-1], 1, line])
    values = emitter.reshaped(source, [*dims, 1])
    before: Callable[..., relax.Expr] = relax.op.less_equal if right else relax.op.less
    counted = emitter.cast(emitter.emit(before(rows, values)), node.result.dtype)
    return emitter.emit(relax.op.sum(counted, [-1]))


@converts("histc.default")
def _counted(emitter: Emitter, node: Node) -> relax.Expr:
    """The number of elements in each of some ranges of equal length; others are left out."""
    low, high, bins = node["min"], node["max"], node["bins"]
    if low == high:
        raise UnsupportedError(
            "ranges that follow from the least and the largest element; expected min and max"
        )
    dtype = node.result.dtype
    flat = emitter.emit(relax.op.reshape(node["self"], [-1]))
    if "int" in dtype_of(flat):
        flat = emitter.cast(flat, "float32")
    inner = dtype_of(flat)
    scaled = emitter.emit(relax.op.subtract(flat, relax.const(float(low), inner)))
    scaled = emitter.emit(relax.op.divide(scaled, relax.const(float(high) - float(low), inner)))
    scaled = emitter.emit(relax.op.multiply(scaled, relax.const(float(bins), inner)))
    scaled = emitter.emit(relax.op.floor(scaled))
    last = emitter.emit(relax.op.equal(flat, relax.const(float(high), inner)))
    scaled = emitter.emit(relax.op.where(last, relax.const(float(bins - 1), inner), scaled))
    ranges = relax.const(np.arange(bins, dtype="float32").reshape(1, bins), inner)
    column = emitter.reshaped(scaled, [*dims_of(flat), 1])
    hits = emitter.cast(emitter.emit(relax.op.equal(column, ranges)), "float32")
    return emitter.cast(emitter.emit(relax.op.sum(hits, [0])), dtype)
