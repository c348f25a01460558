"""Operators that move, select or make numbers and compute none."""

from __future__ import annotations

import math

import numpy as np
import tvm
from tvm import relax

from ...constants import constant
from ..node import Dim, Node, Value, dtype_of
from .layouts import reordered
from .table import converts


@converts("reshape", "contrib_reverse_reshape")
def _reshape(node: Node) -> Value:
    src = node.tensor(0)
    extents, wanted = node.shape(src), node.ints("newshape")
    backwards = node.operator != "reshape"
    if backwards:
        extents, wanted = extents[::-1], wanted[::-1]
    shape = _new_shape(node, extents, wanted)
    return relax.op.reshape(src, shape[::-1] if backwards else shape)


def _new_shape(node: Node, extents: list[Dim], wanted: list[int]) -> list[Dim]:
    """Extents by Relay's codes: 0 this one, -1 what is left, -2 all behind, -3 two as one, -4 one as two."""
    shape: list[Dim] = []
    at, rest, open_ = 0, iter(wanted), -1
    for number in rest:
        taken = {0: 0 if node.flag("allowzero") else 1, -3: 2, -4: 1}.get(number, 0)
        if taken and at + taken > len(extents):
            node.wrong(f"newshape = {wanted}; expected one that fits the shape {extents}")
        if number > 0 or (number == 0 and not taken):
            shape.append(number)
            at += 1
        elif number == 0:
            shape.append(extents[at])
            at += 1
        elif number == -1:
            if open_ >= 0:
                node.wrong(f"newshape = {wanted}; expected -1 once")
            open_ = len(shape)
            shape.append(1)
            at += 1
        elif number == -2:
            shape += extents[at:]
            at = len(extents)
        elif number == -3:
            shape.append(extents[at] * extents[at + 1])
            at += 2
        elif number == -4:
            first, second = next(rest, 0), next(rest, 0)
            shape += _parts(node, extents[at], first, second)
            at += 1
        else:
            node.wrong(f"newshape = {wanted}; expected numbers from -4 on")
    if open_ >= 0:
        shape[open_] = _left(node, extents, [dim for index, dim in enumerate(shape) if index != open_])
    return shape


def _parts(node: Node, extent: Dim, first: int, second: int) -> list[Dim]:
    known = second if first == -1 else first
    if known < 1 or first < -1 or second < -1:
        node.wrong(
            f"newshape splits {extent} into {first} and {second}; expected numbers above 0, one may be -1"
        )
    left = extent // known
    return [left, second] if first == -1 else [first, left if second == -1 else second]


def _left(node: Node, extents: list[Dim], others: list[Dim]) -> Dim:
    """Returns the number of elements that remain for one extent."""
    rest: list[Dim] = list(extents)
    for dim in others:
        same = next((at for at, one in enumerate(rest) if not isinstance(one, int) and one is dim), None)
        if same is not None:
            rest.pop(same)
    named = [dim for dim in others if not isinstance(dim, int) and not any(dim is one for one in extents)]
    count = math.prod(dim for dim in others if isinstance(dim, int))
    total: Dim = math.prod(dim for dim in rest if isinstance(dim, int))
    symbols = [dim for dim in rest if not isinstance(dim, int)]
    if isinstance(total, int) and not named and count and not total % count:
        left: Dim = total // count
        for symbol in symbols:
            left = left * symbol
        return left
    if symbols or named:
        for symbol in symbols:
            total = total * symbol
        divisor: Dim = count
        for symbol in named:
            divisor = divisor * symbol
        return tvm.tirx.floordiv(total, divisor)
    return node.wrong(f"{total} elements do not fill the shape {[*others, -1]}")


@converts("reshape_like")
def _reshape_like(node: Node) -> Value:
    src, like = node.tensor(0), node.tensor(1)
    extents, wanted = node.shape(src), node.shape(like)
    bounds = [
        _bound(node.attribute(name), length)
        for name, length in (
            ("lhs_begin", len(extents)),
            ("lhs_end", len(extents)),
            ("rhs_begin", len(wanted)),
            ("rhs_end", len(wanted)),
        )
    ]
    return relax.op.reshape(
        src, [*extents[: bounds[0]], *wanted[bounds[2] : bounds[3]], *extents[bounds[1] :]]
    )


def _bound(axis: int | None, rank: int) -> int:
    return rank if axis is None else axis + rank if axis < 0 else axis


@converts("transpose")
def _transpose(node: Node) -> Value:
    return relax.op.permute_dims(node.tensor(0), node.maybe_ints("axes") or None)


@converts("layout_transform")
def _layout_transform(node: Node) -> Value:
    return reordered(node, node.tensor(0), node.text("src_layout"), node.text("dst_layout"))


@converts("squeeze")
def _squeeze(node: Node) -> Value:
    return relax.op.squeeze(node.tensor(0), node.maybe_ints("axis"))


@converts("expand_dims")
def _expand_dims(node: Node) -> Value:
    axis, count = node.integer("axis"), node.integer("num_newaxis")
    rank = node.rank(node.tensor(0))
    if not -rank - 1 <= axis <= rank or not 0 <= count <= _MOST_AXES:
        node.wrong(f"{count} axes at {axis}; expected up to {_MOST_AXES} from {-rank - 1} to {rank}")
    start = axis + rank + 1 if axis < 0 else axis
    if not count:
        return node.tensor(0)
    return relax.op.expand_dims(node.tensor(0), list(range(start, start + count)))


@converts("concatenate")
def _concatenate(node: Node) -> Value:
    return relax.op.concat(node.tensors(0), node.integer("axis"))


@converts("stack")
def _stack(node: Node) -> Value:
    return relax.op.stack(node.tensors(0), node.integer("axis"))


@converts("split")
def _split(node: Node) -> Value:
    src = node.tensor(0)
    axis = node.axis("axis", node.rank(src))
    extent = node.shape(src)[axis]
    parts: list[int] | int = node.ints("indices_or_sections")
    if not isinstance(node.attribute("indices_or_sections"), list):
        parts = node.integer("indices_or_sections")
        if parts < 1 or (isinstance(extent, int) and extent % parts) or parts > _MOST_PARTS:
            node.wrong(f"{parts} sections of {extent}; expected a number that divides the extent")
    result = node.emit(relax.op.split(src, parts, axis))
    if not isinstance(result.ty, relax.TupleType):
        return [result]
    return [node.emit(relax.TupleGetItem(result, index)) for index in range(len(result.ty.fields))]


_MOST_PARTS = 1 << 16
_MOST_AXES = 16


@converts("strided_slice")
def _strided_slice(node: Node) -> Value:
    src = node.tensor(0)
    extents = node.shape(src)
    begin, end = node.ints("begin"), node.ints("end")
    strides = node.maybe_ints("strides") or [1]
    axes = node.maybe_ints("axes")
    axes = list(range(len(begin))) if axes is None else [node.from_front(axis, len(extents)) for axis in axes]
    if node.text("slice_mode") == "size":
        strides = [1] * len(begin)
        end = [_LARGEST if size < 0 else start + size for start, size in zip(begin, end, strict=True)]
    strides = strides * len(begin) if len(strides) == 1 else strides
    end = end + [_LARGEST] * (len(begin) - len(end))
    if not len(begin) == len(end) == len(strides) == len(axes) <= len(extents):
        node.wrong(f"begin {begin}, end {end}, strides {strides} for axes {axes}; expected as many of each")
    return relax.op.strided_slice(src, axes, begin, end, strides)


_LARGEST = 2**31 - 1


@converts("slice_like")
def _slice_like(node: Node) -> Value:
    src, like = node.tensor(0), node.tensor(1)
    rank = node.rank(src)
    axes = [node.from_front(axis, rank) for axis in node.maybe_ints("axes") or range(rank)]
    ends = [node.shape(like)[axis] for axis in axes]
    return relax.op.strided_slice(src, axes, [0] * len(axes), ends)


@converts("take")
def _take(node: Node) -> Value:
    """Indices out of bounds are clipped, wrapped or, in the mode fast, forbidden; ours are always checked."""
    src, indices = node.tensor(0), node.tensor(1)
    if node.integer("batch_dims"):
        node.unsupported(f"batch_dims = {node.integer('batch_dims')}; expected 0")
    mode = node.text("mode")
    if mode not in ("clip", "wrap", "fast"):
        node.wrong(f"mode = {mode!r}; expected clip, wrap or fast")
    axis = node.attribute("axis")
    if axis is None:
        src, axis = node.emit(relax.op.reshape(src, [-1])), 0
    axis = node.from_front(axis, node.rank(src))
    return relax.op.take(src, indices, axis, mode=mode)


@converts("gather")
def _gather(node: Node) -> Value:
    axis = node.axis("axis", node.rank(node.tensor(0)))
    return relax.op.gather_elements(node.tensor(0), node.tensor(1), axis)


@converts("gather_nd")
def _gather_nd(node: Node) -> Value:
    """Relay's indices have the coordinates along their first axis, Relax's along their last."""
    indices = node.tensor(1)
    order = [*range(1, node.rank(indices)), 0]
    turned = node.emit(relax.op.permute_dims(indices, order))
    batch = node.attribute("batch_dims")
    return relax.op.gather_nd(node.tensor(0), turned, int(batch or 0))


@converts("zeros", "ones")
def _filled(node: Node) -> Value:
    make = relax.op.zeros if node.operator == "zeros" else relax.op.ones
    return make(_stated(node), node.dtype("dtype", "float32"))


@converts("full")
def _full(node: Node) -> Value:
    value = node.tensor(0)
    dtype = node.dtype("dtype", dtype_of(value))
    return relax.op.full(_stated(node), node.emit(relax.op.astype(value, dtype)), dtype)


@converts("zeros_like", "ones_like")
def _filled_like(node: Node) -> Value:
    return getattr(relax.op, node.operator)(node.tensor(0))


@converts("full_like")
def _full_like(node: Node) -> Value:
    src = node.tensor(0)
    return relax.op.full_like(src, node.emit(relax.op.astype(node.tensor(1), dtype_of(src))))


@converts("broadcast_to")
def _broadcast_to(node: Node) -> Value:
    return relax.op.broadcast_to(node.tensor(0), _stated(node))


@converts("broadcast_to_like")
def _broadcast_to_like(node: Node) -> Value:
    return relax.op.broadcast_to(node.tensor(0), node.shape(node.tensor(1)))


@converts("collapse_sum_like")
def _collapse_sum_like(node: Node) -> Value:
    return relax.op.collapse_sum_to(node.tensor(0), node.shape(node.tensor(1)))


def _stated(node: Node) -> list[int]:
    shape = node.maybe_ints("shape")
    if shape is None:
        node.unsupported("a shape that is computed; expected numbers as shape")
    if any(extent < 0 for extent in shape):
        node.wrong(f"shape = {shape}; expected extents of 0 or more")
    if math.prod(shape) > _MOST:
        node.wrong(f"shape = {shape}; expected at most {_MOST:,} elements")
    return shape


_MOST = 2**31


@converts("arange")
def _arange(node: Node) -> Value:
    known = [node.known(value) for value in node.args]
    numbers = [number for number in known if number is not None and number.size == 1]
    if not len(numbers) == len(known) == 3:
        node.unsupported("bounds that are computed; expected three constants")
    start, stop, step = (number.reshape(-1)[0] for number in numbers)
    if step == 0 or not np.isfinite([float(start), float(stop), float(step)]).all():
        node.wrong(f"from {start} to {stop} by {step}; expected numbers, and a step that is not 0")
    if abs((float(stop) - float(start)) / float(step)) > _MOST:
        node.wrong(f"from {start} to {stop} by {step}; expected at most {_MOST:,} elements")
    return constant(np.arange(start, stop, step).astype(node.text("dtype")))


@converts("shape_of")
def _shape_of(node: Node) -> Value:
    return constant(np.asarray(node.fixed(node.tensor(0)), node.dtype("dtype", "int32")))


@converts("repeat")
def _repeat(node: Node) -> Value:
    repeats, axis = node.integer("repeats"), node.attribute("axis")
    if repeats < 0:
        node.wrong(f"repeats = {repeats}; expected a number of 0 or more")
    if axis is not None:
        axis = node.from_front(axis, node.rank(node.tensor(0)))
    return relax.op.repeat(node.tensor(0), repeats, axis)


@converts("tile")
def _tile(node: Node) -> Value:
    reps = node.ints("reps")
    if any(count < 0 for count in reps) or len(reps) > _MOST_AXES:
        node.wrong(f"reps = {reps}; expected up to {_MOST_AXES} numbers of 0 or more")
    return relax.op.tile(node.tensor(0), reps)


@converts("reverse")
def _reverse(node: Node) -> Value:
    axis = node.attribute("axis")
    return relax.op.flip(
        node.tensor(0), node.from_front(0 if axis is None else axis, node.rank(node.tensor(0)))
    )
