"""Operators that pick parts or say where parts go: Split, TopK, OneHot, NonZero, Unique and others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
from tvm import relax, te, tirx

from .....errors import InvalidInputError
from ... import stock
from ...dimensions.dims import Dim, compared, divided, expression, product, same, simplified
from ...dimensions.restate import Demand, demanded, met_aside, multiple_of, text_of, within
from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of, rank_of
from ..numbers import constant
from ..table import converts
from .places import reduction_of


@converts("Split")
def _split(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    """Parts of stated sizes, or as many equal ones as there are results, the last one smaller."""
    data = emitter.tensor(node.input(0))
    dims = emitter.shape(data)
    axis = _axis(emitter, node, node.attribute("axis", 0), len(dims))
    extent, count = dims[axis], len(node.outputs)
    stated = node.attribute("split")
    given = np.asarray(stated, "int64") if stated is not None else node.input(1)
    if given is None:
        sizes = _equal_sizes(emitter, node, extent, count)
    else:
        sizes = emitter.dims(given)
        if len(sizes) != count:
            raise InvalidInputError(
                f"{emitter.importer.called(node)}: {len(sizes)} sizes for {count} results; "
                "expected one for each"
            )
    total: Dim = 0
    ends = [total := simplified(expression(total) + size) for size in sizes]
    agrees = True if given is None else compared("==", total, extent)
    if agrees is False:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: sizes of {total} in all for an axis of {extent} elements; "
            "expected as many"
        )
    if agrees is None:
        words = f"expected sizes of 0 or more, {text_of(extent)} in all, got others; mend the sizes"
        met = tirx.EQ(expression(total), expression(extent))
        for size in sizes:
            met = tirx.And(met, tirx.GE(expression(size), tirx.const(0, "int64")))
        data = demanded(emitter, data, Demand(met, f"{emitter.importer.called(node)}: {words}"))
    parts = []
    for size, end in zip(sizes, ends, strict=True):
        begin = simplified(expression(end) - size)
        bounds = ([axis], [expression(begin)], [expression(end)], [expression(1)])
        parts.append(emitter.emit(relax.op.strided_slice(data, *bounds, assume_inbound=True)))
    return tuple(parts)


def _equal_sizes(emitter: Emitter, node: Node, extent: Dim, count: int) -> list[Dim]:
    """As many equal parts; since opset 18 the last ones may be smaller."""
    if isinstance(extent, int):
        size = -(-extent // count)
        sizes = [max(0, min(size, extent - size * at)) for at in range(count)]
        if len({*sizes}) > 1 and node.opset < 18:
            raise InvalidInputError(
                f"{emitter.importer.called(node)}: {extent} elements in {count} equal parts; "
                "expected a multiple, or the sizes"
            )
        return list(sizes)
    words = f"{text_of(extent)} elements in {count} equal parts; expected a multiple, or the sizes"
    rest = multiple_of(extent, count, f"{emitter.importer.called(node)}: {words}")
    if not rest or node.opset < 18:
        met_aside(emitter, *rest)
        return [divided(extent, count)] * count
    size = simplified(tirx.floordiv(extent + count - 1, count))
    left = [simplified(extent - expression(size) * at) for at in range(count)]
    return [simplified(tirx.max(tirx.min(expression(size), expression(one)), 0)) for one in left]


def _axis(emitter: Emitter, node: Node, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: axis {axis} of a tensor of {rank} dimensions; "
            f"expected {-rank} to {rank - 1}"
        )
    return axis % rank


@converts("TopK")
def _top_k(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    """The largest or smallest elements in order; equal ones by their places."""
    data = emitter.tensor(node.input(0))
    dims = emitter.shape(data)
    axis = _axis(emitter, node, node.attribute("axis", -1), len(dims))
    stated = node.attribute("k")
    counts = [stated] if stated is not None else emitter.dims(node.input(1))
    if len(counts) != 1:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: k has {len(counts)} elements; expected a single one"
        )
    count = counts[0]
    fits = compared("<=", count, dims[axis])
    if fits is False or compared("<", count, 0) is True:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: the first {count} of an axis of {dims[axis]} elements; "
            "expected no more than there are"
        )
    if fits is None:
        words = f"expected k from 0 to {text_of(dims[axis])}, the axis's elements, got another; mend k"
        met = tirx.And(
            tirx.GE(expression(count), tirx.const(0, "int64")),
            tirx.LE(expression(count), expression(dims[axis])),
        )
        data = demanded(emitter, data, Demand(met, f"{emitter.importer.called(node)}: {words}"))
    if isinstance(count, int) and count == 0:
        shape = relax.ShapeExpr([expression(0 if at == axis else dim) for at, dim in enumerate(dims)])
        return tuple(emitter.emit(relax.op.zeros(shape, kind)) for kind in (dtype_of(data), "int64"))
    largest = bool(node.attribute("largest", 1))
    if isinstance(count, int) and isinstance(dims[axis], int) and dtype_of(data) in _SORTED:
        found = emitter.emit(relax.op.topk(data, count, axis, "both", largest, "int64"))
        return tuple(emitter.emit(relax.TupleGetItem(found, at)) for at in range(2))
    order = emitter.emit(relax.op.argsort(_sortable(emitter, data), axis, largest, "int64"))
    bounds = ([axis], [expression(0)], [expression(count)], [expression(1)])
    places = emitter.emit(relax.op.strided_slice(order, *bounds, assume_inbound=True))
    return emitter.emit(relax.op.gather_elements(data, places, axis)), places


_SORTED = ("float32", "float64", "int32", "int64")
"""Types that TVM's ``topk`` and libraries take."""


def _sortable(emitter: Emitter, data: relax.Expr) -> relax.Expr:
    """The tensor in a type that TVM sorts, in the same order."""
    dtype = dtype_of(data)
    if dtype == "uint64":  # as int64 with the upper half below zero
        flipped = relax.op.bitwise_xor(data, constant(2**63, "uint64"))
        return emitter.emit(relax.op.astype(flipped, "int64"))
    wide = {
        "float16": "float32",
        "bfloat16": "float32",
        "uint8": "int32",
        "uint16": "int32",
        "uint32": "int64",
    }
    wide |= {"int8": "int32", "int16": "int32"}
    return emitter.emit(relax.op.astype(data, wide[dtype])) if dtype in wide else data


@converts("Scatter", "ScatterElements")
def _scattered(emitter: Emitter, node: Node) -> Value:
    """Through places in the flattened data, where indices are fewer along axes that TVM takes for equal."""
    data, indices, updates = (emitter.tensor(node.input(at)) for at in range(3))
    extents, reached = emitter.shape(data), emitter.shape(indices)
    axis = _axis(emitter, node, node.attribute("axis", 0), len(extents))
    reduction = reduction_of(node)
    # TVM counts the elements in front of the axis, and those behind it, by the extents of the indices alone.
    inner = [at for at in range(len(extents)) if at not in (0, axis, axis + 1)]
    if all(same(extents[at], reached[at]) for at in inner):
        raise NotTaken

    def kernel(tensor: te.Tensor, *extents: tirx.Expr) -> te.Tensor:
        def place(*index: tirx.Var) -> tirx.Expr:
            stated = tensor(*index).astype("int64")
            at = list(index)
            at[axis] = tirx.Select(stated < 0, stated + extents[axis], stated)
            flat = tirx.const(0, "int64")
            for one, extent in zip(at, extents, strict=True):
                flat = flat * extent + one
            return flat

        return te.compute(tensor.shape, place, "places")

    places = emitter.builder.emit_te(kernel, indices, *map(expression, extents), primfunc_name_hint="places")
    count = [product(reached)]
    flat = emitter.emit(
        relax.op.scatter_elements(
            emitter.tensor(emitter.reshaped(data, [product(extents)])),
            emitter.tensor(emitter.reshaped(places, count)),
            emitter.tensor(emitter.reshaped(updates, count)),
            axis=0,
            reduction=reduction,
        )
    )
    return emitter.reshaped(flat, extents)


@converts("OneHot")
def _one_hot(emitter: Emitter, node: Node) -> Value:
    """Rows with one value at the index and another elsewhere; everywhere for an index outside."""
    indices, values = emitter.tensor(node.input(0)), emitter.tensor(node.input(2))
    depth = node.input(1)
    if isinstance(depth, np.ndarray):
        depth = depth.astype("int64")
    elif isinstance(depth, relax.Expr):
        depth = emitter.emit(relax.op.astype(depth, "int64"))
    (size,) = emitter.dims(depth)
    rank = len(emitter.shape(indices))
    axis = _axis(emitter, node, node.attribute("axis", -1), rank + 1)

    def kernel(indices: te.Tensor, values: te.Tensor, size: tirx.Expr) -> te.Tensor:
        shape = [*indices.shape[:axis], size, *indices.shape[axis:]]

        def element(*index: tirx.Var) -> tirx.Expr:
            stated = indices(*index[:axis], *index[axis + 1 :]).astype("int64")
            place = tirx.Select(stated < 0, stated + size, stated)
            return tirx.if_then_else(place.equal(index[axis]), values[1], values[0])

        return te.compute(shape, element, "one_hot")

    return emitter.builder.emit_te(kernel, indices, values, expression(size), primfunc_name_hint="one_hot")


@converts("EyeLike")
def _eye_like(emitter: Emitter, node: Node) -> Value:
    data = node.input(0)
    kind = node.attribute("dtype")
    dtype = dtype_of(data) if kind is None else str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind)))
    shape = emitter.shape(data)
    if len(shape) != 2:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: a tensor of {len(shape)} dimensions; expected 2"
        )
    rows, columns = (expression(dim) for dim in shape)
    return emitter.emit(relax.op.eye(rows, columns, expression(node.attribute("k", 0)), dtype))


@converts("ReverseSequence")
def _reverse_sequence(emitter: Emitter, node: Node) -> Value:
    data, lengths = emitter.tensor(node.input(0)), emitter.tensor(node.input(1))
    batch, time = node.attribute("batch_axis", 1), node.attribute("time_axis", 0)
    rank = rank_of(data)
    if rank is None:
        raise NotTaken
    if {batch, time} != {0, 1} or rank < 2:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: batch_axis {batch} and time_axis {time} of a tensor of {rank} "
            "dimensions; expected 0 and 1, or 1 and 0"
        )
    most = emitter.shape(data)[time]
    words = f"a length is out of bounds for axis {time}, expected one from 0 to {text_of(most)}"
    words = f"{emitter.importer.called(node)}: {words}"
    stated = node.input(1)
    if not isinstance(stated, np.ndarray) or not isinstance(most, int):
        lengths = within(emitter, lengths, 0, most, words)
    elif np.any((stated < 0) | (stated > most)):
        raise InvalidInputError(words)

    def kernel(tensor: te.Tensor, lengths: te.Tensor) -> te.Tensor:
        def element(*index: tirx.Var) -> tirx.Expr:
            length = lengths[index[batch]].astype("int64")
            place = list(index)
            place[time] = tirx.Select(index[time] < length, length - 1 - index[time], index[time])
            return tensor(*place)

        return te.compute(tensor.shape, element, "reversed")

    return emitter.builder.emit_te(kernel, data, lengths, primfunc_name_hint="reverse_sequence")


@converts("NonZero")
def _places(emitter: Emitter, node: Node) -> Value:
    """A scalar has no coordinates: as many columns of none as it has elements that are not 0."""
    data = node.input(0)
    if rank_of(data) != 0:
        raise NotTaken
    (found,) = stock.converted(emitter, replace(node, inputs=[emitter.tensor(emitter.reshaped(data, [1]))]))
    bounds = ([0], [expression(0)], [expression(0)], [expression(1)])
    return emitter.emit(relax.op.strided_slice(found, *bounds, assume_inbound=True))


@converts("Unique")
def _unique(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    """Of all elements as one row where no axis is stated: TVM's places have the operand's shape."""
    data = node.input(0)
    if node.attribute("axis") is not None or rank_of(data) == 1:
        raise NotTaken
    row = emitter.tensor(emitter.reshaped(data, [product(emitter.shape(data))]))
    return tuple(stock.converted(emitter, replace(node, inputs=[row])))


@converts("ScatterND")
def _scatter(emitter: Emitter, node: Node) -> Value:
    """Nothing to put anywhere."""
    if not any(isinstance(dim, int) and dim == 0 for dim in emitter.shape(node.input(1))[:-1]):
        raise NotTaken
    return node.input(0)
