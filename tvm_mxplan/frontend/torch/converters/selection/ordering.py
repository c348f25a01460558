"""Orders along an axis: the k-th element, the middle one, running extremes, places among sorted numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from tvm import relax

from .....errors import UnsupportedError
from ....onnx.dimensions.dims import Dim, expression, product
from ...node import Emitter, Node, dims_of, dtype_of
from ..arithmetic import promoted
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


@converts("median.default", "nanmedian.default")
def _median(emitter: Emitter, node: Node) -> relax.Expr:
    flat = emitter.reshaped(node["self"], [math.prod(dims_of(node["self"]))])
    if dims_of(flat) == [0]:
        return relax.const(math.nan, node.result.dtype)
    if ".nanmedian." in node.operator:
        values, _ = _middle_of_numbers(emitter, flat, 0)
    else:
        values, _ = _smallest(emitter, flat, None, 0)
    return emitter.reshaped(values, [])


@converts("nanmedian.dim")
def _median_of_numbers(emitter: Emitter, node: Node) -> list[relax.Expr]:
    source, dims = node["self"], dims_of(node["self"])
    if not dims:
        return [source, relax.const(0, "int64")]
    axis = node["dim"] % len(dims)
    found = _middle_of_numbers(emitter, source, axis)
    return [one if node["keepdim"] else emitter.emit(relax.op.squeeze(one, [axis])) for one in found]


def _middle_of_numbers(emitter: Emitter, source: relax.Expr, axis: int) -> tuple[relax.Expr, relax.Expr]:
    """The lower middle of each row's numbers and its place, the axis kept; NaN where there is no number."""
    dtype, emit = dtype_of(source), emitter.emit
    if "float" not in dtype:
        return _smallest(emitter, source, None, axis)
    nan = emit(relax.op.isnan(source))
    keys = emit(relax.op.where(nan, relax.const(np.inf, dtype), source))
    marks = emitter.cast(emit(relax.op.logical_not(nan)), "int64")
    count = emit(relax.op.sum(marks, [axis], keepdims=True))
    extent, zero = emitter.scalar(dims_of(source)[axis], "int64"), relax.const(0, "int64")
    count = emit(relax.op.where(emit(relax.op.equal(count, zero)), extent, count))
    last = emit(relax.op.subtract(count, relax.const(1, "int64")))
    middle = emit(relax.op.floor_divide(last, relax.const(2, "int64")))
    order = emit(relax.op.argsort(keys, axis, dtype="int64"))
    places = emit(relax.op.gather_elements(order, middle, axis))
    return emit(relax.op.gather_elements(source, places, axis)), places


@converts("mode.default")
def _most_frequent(emitter: Emitter, node: Node) -> list[relax.Expr]:
    """The element of each row that stands there most often, the least of several, and its last place."""
    source, dims, emit = node["self"], dims_of(node["self"]), emitter.emit
    if not dims:
        return [source, relax.const(0, "int64")]
    axis, dtype = node["dim"] % len(dims), dtype_of(source)
    keys = emitter.cast(source, "int8") if dtype == "bool" else source
    rows, columns = (emit(relax.op.expand_dims(keys, axis + at)) for at in (1, 0))
    alike = emitter.cast(emit(relax.op.equal(rows, columns)), "int64")
    counts = emit(relax.op.sum(alike, [axis + 1]))
    most = emit(relax.op.equal(counts, emit(relax.op.max(counts, [axis], keepdims=True))))
    kind = dtype_of(keys)
    limit = math.inf if "float" in kind else int(np.iinfo(kind).max)
    least = emit(relax.op.where(most, keys, emitter.scalar(limit, kind)))
    value = emit(relax.op.min(least, [axis], keepdims=True))
    steps: list[Dim] = [1] * len(dims)
    steps[axis] = dims[axis]
    places = emitter.reshaped(emit(relax.op.arange(0, expression(dims[axis]), 1, "int64")), steps)
    here = emit(relax.op.where(emit(relax.op.equal(keys, value)), places, relax.const(-1, "int64")))
    found = [emitter.cast(value, dtype), emit(relax.op.max(here, [axis], keepdims=True))]
    return found if node["keepdim"] else [emit(relax.op.squeeze(one, [axis])) for one in found]


def _smallest(
    emitter: Emitter, source: relax.Expr, k: int | None, axis: int
) -> tuple[relax.Expr, relax.Expr]:
    """The k-th smallest of each row along an axis, counted from 1, and its place, the axis kept.

    Without ``k`` it is the middle one, and NaN in a row that has one; else NaN stands behind all numbers.
    """
    extent, dtype, emit = dims_of(source)[axis], dtype_of(source), emitter.emit
    at = (extent + 1) // 2 if k is None else k
    nan = emit(relax.op.not_equal(source, source)) if "float" in dtype else None
    if nan is not None:  # an order has no place for NaN
        source = emit(relax.op.where(nan, relax.const(np.inf, dtype), source))
    values, places = _at_rank(emitter, source, at, axis)
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


def _at_rank(emitter: Emitter, source: relax.Expr, rank: Dim, axis: int) -> list[relax.Expr]:
    """The element of each row that so many stand before or at, in order, and its place."""
    emit = emitter.emit
    if isinstance(rank, int):
        found = emit(relax.op.topk(source, rank, axis, "both", largest=False, dtype="int64"))
        kept = [emit(relax.TupleGetItem(found, which)) for which in range(2)]
        return [emit(relax.op.strided_slice(one, [axis], [rank - 1], [rank])) for one in kept]
    order = emit(relax.op.argsort(source, axis, dtype="int64"))
    at = emitter.reshaped(emitter.scalar(rank - 1, "int64"), [1])
    places = emit(relax.op.take(order, at, axis))
    return [emit(relax.op.gather_elements(source, places, axis)), places]


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
    extent, dtype = _known(dims[axis], "a running extreme"), dtype_of(source)
    if dtype == "bool":
        source = emitter.cast(source, "int8")
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
    return [emitter.cast(values, dtype), places]


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
    right = node["right"] or node["side"] == "right"
    return _places(emitter, node, node["sorted_sequence"], node["self"], right=right)


@converts("bucketize.Tensor")
def _bucket(emitter: Emitter, node: Node) -> relax.Expr:
    return _places(emitter, node, node["boundaries"], node["self"], right=node["right"])


def _places(emitter: Emitter, node: Node, rows: relax.Expr, source: relax.Expr, *, right: bool) -> relax.Expr:
    """The number of sorted numbers before each element, equals too if ``right``; NaN is behind all."""
    dtype = promoted(dtype_of(rows), dtype_of(source))
    rows, source = emitter.cast(rows, dtype), emitter.cast(source, dtype)
    dims, width = dims_of(source), len(dims_of(rows))
    line = dims_of(rows)[-1]
    if width == 1:
        rows = emitter.reshaped(rows, [*[1] * len(dims), line])
    else:
        rows = emitter.reshaped(rows, [*dims_of(rows)[:-1], 1, line])
    values = emitter.reshaped(source, [*dims, 1])
    before: Callable[..., relax.Expr] = relax.op.less_equal if right else relax.op.less
    found = emitter.emit(before(rows, values))
    if "float" in dtype:
        found = emitter.emit(relax.op.logical_or(found, emitter.emit(relax.op.isnan(values))))
    counted = emitter.cast(found, node.result.dtype)
    return emitter.emit(relax.op.sum(counted, [-1]))


@converts("histc.default")
def _counted(emitter: Emitter, node: Node) -> relax.Expr:
    """The number of elements in each of some ranges of equal length; others are left out."""
    low, high, bins = node["min"], node["max"], node["bins"]
    if low == high:
        raise UnsupportedError(
            "ranges that follow from the least and the largest element; expected min and max"
        )
    flat = emitter.reshaped(node["self"], [product(dims_of(node["self"])), 1])
    if "int" in dtype_of(flat):
        flat = emitter.cast(flat, "float32")
    ends = relax.const(_range_ends(float(low), float(high), bins, dtype_of(flat))[None], dtype_of(flat))
    behind = emitter.cast(emitter.emit(relax.op.greater_equal(flat, ends)), "float32")
    found = emitter.cast(emitter.emit(relax.op.sum(behind, [0])), "int32")
    first, second = (
        emitter.emit(relax.op.strided_slice(found, [0], [at], [bins + at], [1])) for at in (0, 1)
    )
    return emitter.cast(emitter.emit(relax.op.subtract(first, second)), node.result.dtype)


def _range_ends(low: float, high: float, bins: int, dtype: str) -> np.ndarray:
    """The least number of each range, and that behind the last, as PyTorch's arithmetic divides them.

    It rounds a number's distance from the lower bound, times the number of ranges, by the length of all.
    """
    kind = np.dtype(dtype).type

    def is_behind(numbers: np.ndarray, ranges: np.ndarray) -> np.ndarray:
        places = np.floor((numbers - kind(low)) * kind(bins) / (kind(high) - kind(low)))
        return np.asarray(places >= ranges)

    ranges = np.arange(1, bins)
    ends = (low + ranges * (high - low) / bins).astype(dtype)
    while (early := is_behind(ends, ranges)).any():
        ends = np.where(early, np.nextafter(ends, kind(-np.inf)), ends)
    while not (there := is_behind(ends, ranges)).all():
        ends = np.where(there, ends, np.nextafter(ends, kind(np.inf)))
    return np.concatenate([[kind(low)], ends, [np.nextafter(kind(high), kind(np.inf))]]).astype(dtype)
