"""Elements that only move, by sizes that may be named: TVM's converters ask for numbers.

Casts stand here too: what is cast to bfloat16 and back is rounded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from tvm import relax, te, tirx

from ...onnx.dimensions.dims import Dim, compared, expression, same, simplified
from ...rounding import round_to_bfloat16
from ..node import Emitter, Node, dims_of, dtype_of
from ..sizes import ENDLESS
from .table import converts


@converts("_to_copy.default")
def _copied(emitter: Emitter, node: Node) -> relax.Expr:
    source, dtype = node["self"], node.result.dtype
    if dtype == "bfloat16" and node.is_cast_back and dtype_of(source) != dtype:
        source = round_to_bfloat16(emitter.builder, emitter.cast(source, "float32"))
    return emitter.cast(source, dtype)


@converts("view.default", "_unsafe_view.default", "reshape.default")
def _viewed(emitter: Emitter, node: Node) -> relax.Expr:
    return emitter.reshaped(node["self"], node.result.shape)


@converts("expand.default")
def _expanded(emitter: Emitter, node: Node) -> relax.Expr:
    return emitter.broadcast(node["self"], node.result.shape)


@converts("repeat.default")
def _repeated(emitter: Emitter, node: Node) -> relax.Expr:
    """The tensor side by side with itself: an axis for the repetitions in front of each of its own."""
    source, times = node["self"], list(node["repeats"])
    dims: list[Dim] = [*[1] * (len(times) - len(dims_of(source))), *dims_of(source)]
    if all(isinstance(time, int) for time in times):
        return emitter.emit(relax.op.tile(source, times))
    apart = [dim for pair in zip([1] * len(dims), dims, strict=True) for dim in pair]
    wide = [dim for pair in zip(times, dims, strict=True) for dim in pair]
    found = emitter.broadcast(emitter.reshaped(source, apart), wide)
    return emitter.reshaped(found, node.result.shape)


@converts("select.int")
def _selected(emitter: Emitter, node: Node) -> relax.Expr:
    source, axis, index = node["self"], node["dim"], node["index"]
    if isinstance(index, int):
        return emitter.emit(relax.op.take(source, relax.const(index, "int64"), axis))
    place = from_the_front(index, dims_of(source)[axis])
    return emitter.emit(relax.op.take(source, emitter.scalar(place, "int64"), axis))


def from_the_front(index: Dim, extent: Dim) -> Dim:
    """An index that may count from the end as one that does not."""
    if compared(">=", index, 0) is True:
        return index
    behind = simplified(expression(index) + expression(extent))
    if compared("<", index, 0) is True:
        return behind
    return simplified(tirx.Select(expression(index) < 0, expression(behind), expression(index)))


def bound_within(bound: Any, extent: Dim, default: Dim) -> Dim:
    """A bound of a slice within its axis."""
    if bound is None or (isinstance(bound, int) and bound >= ENDLESS):
        return default if bound is None else extent
    place, whole = expression(from_the_front(bound, extent)), expression(extent)
    return simplified(tirx.max(tirx.min(place, whole), tirx.const(0, "int64")))


@converts("slice.Tensor")
def _sliced(emitter: Emitter, node: Node) -> relax.Expr:
    source, axis = node["self"], node["dim"] % len(dims_of(node["self"]))
    extent, step, stated = dims_of(source)[axis], node["step"], node.result.shape[axis]
    begin, end = _stated_bounds(node, extent, stated)
    if same(stated, extent) and isinstance(begin, int) and begin == 0 and step == 1:
        return source
    if isinstance(begin, int) and isinstance(end, int):
        return emitter.emit(relax.op.strided_slice(source, [axis], [begin], [end], [step]))
    bounds = [[expression(bound)] for bound in (begin, end, step)]
    return emitter.emit(relax.op.strided_slice(source, [axis], *bounds, assume_inbound=True))


@converts("split_with_sizes.default")
def _split(emitter: Emitter, node: Node) -> list[relax.Expr]:
    """Parts of an axis, one behind the other."""
    source, axis, parts = node["self"], node["dim"] % len(dims_of(node["self"])), node["split_sizes"]
    if len(parts) == 1:
        return [source]
    if all(isinstance(part, int) and part > 0 for part in (*parts, dims_of(source)[axis])):
        found = emitter.emit(relax.op.split(source, list(itertools.accumulate(parts))[:-1], axis))
        return [emitter.emit(relax.TupleGetItem(found, at)) for at in range(len(parts))]
    results, end = [], expression(0)
    for part in parts:
        begin, end = end, expression(simplified(end + expression(part)))
        results.append(
            emitter.emit(relax.op.strided_slice(source, [axis], [begin], [end], assume_inbound=True))
        )
    return results


def _stated_bounds(node: Node, extent: Dim, stated: Dim) -> tuple[Dim, Dim]:
    """The bounds of a slice; as they are where PyTorch has found that they lie within the axis."""
    first, last = (0 if node["start"] is None else node["start"]), node["end"]
    if last is None or (isinstance(last, int) and last >= ENDLESS):
        last = extent
    begin, end = (from_the_front(bound, extent) for bound in (first, last))
    reach = simplified(expression(end) - expression(begin) + node["step"] - 1)
    if not isinstance(extent, int) and same(
        simplified(tirx.floordiv(expression(reach), node["step"])), stated
    ):
        return begin, end
    return bound_within(node["start"], extent, 0), bound_within(node["end"], extent, extent)


@converts("constant_pad_nd.default")
def _padded(emitter: Emitter, node: Node) -> relax.Expr:
    """Numbers around a tensor; amounts below 0 cut elements off."""
    source, amounts = node["self"], list(node["pad"])
    rank, dtype = len(dims_of(source)), node.result.dtype
    value = node["value"] or 0
    pairs = [(amounts[at], amounts[at + 1]) for at in range(0, len(amounts), 2)]
    pairs = [*[(0, 0)] * (rank - len(pairs)), *reversed(pairs)]
    known = all(isinstance(amount, int) and amount >= 0 for pair in pairs for amount in pair)
    if known and "float" in dtype:
        widths = [amount for pair in pairs for amount in pair]
        return emitter.emit(relax.op.nn.pad(source, widths, "constant", value)) if any(widths) else source
    return _padded_by_kernel(emitter, source, [pair[0] for pair in pairs], node.result.shape, value)


def _padded_by_kernel(
    emitter: Emitter, source: relax.Expr, before: Sequence[Dim], result: Sequence[Dim], value: Any
) -> relax.Expr:
    rank, dtype = len(before), dtype_of(source)
    fill = emitter.scalar(value, dtype)

    def kernel(tensor: te.Tensor, fill: te.Tensor, *sizes: tirx.Expr) -> te.Tensor:
        offsets, dims = sizes[:rank], sizes[rank:]

        def element(*index: tirx.Var) -> tirx.Expr:
            places = [at - offset for at, offset in zip(index, offsets, strict=True)]
            inside = [
                bound
                for place, extent in zip(places, tensor.shape, strict=True)
                for bound in (place >= 0, place < extent)
            ]
            return tirx.if_then_else(tirx.all(*inside), tensor(*places), fill())

        return te.compute(dims, element, "padded")

    sizes = [expression(size) for size in (*before, *result)]
    return emitter.builder.emit_te(kernel, source, fill, *sizes, primfunc_name_hint="pad_constant")


@converts("empty.memory_format", "empty_strided.default", "new_empty.default", "empty_like.default")
def _empty(emitter: Emitter, node: Node) -> relax.Expr:
    """A tensor of which nothing is said: zeros."""
    shape = node.result.shape
    if math.prod(dim for dim in shape if isinstance(dim, int)) == 0:
        return emitter.broadcast(relax.const(0, node.result.dtype), shape)
    return emitter.emit(
        relax.op.zeros(relax.ShapeExpr([expression(dim) for dim in shape]), node.result.dtype)
    )
