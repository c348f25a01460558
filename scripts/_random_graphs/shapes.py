"""Moves that place numbers elsewhere, or sum over axes."""

from __future__ import annotations

from math import prod

import numpy as np

from . import forms
from .graph import MOST, Graph, Tensor


def transpose(g: Graph, x: Tensor) -> Tensor | None:
    axes = g.axes(x)
    if len(axes) < 2:
        return None
    order = list(range(x.rank))
    for axis, other in zip(axes, g.random.permutation(axes), strict=True):
        order[axis] = int(other)
    return g.transpose(x, order)


def reshape(g: Graph, x: Tensor) -> Tensor | None:
    """Two axes become one, or one becomes two, or all but the first one."""
    axes = g.axes(x)
    how = g.pick(["join", "cut", "flat", "one"])
    if how == "join" and len(axes) > 1 and x.rank > 2:
        at = int(g.pick(axes[:-1]))  # type: ignore[call-overload]
        return g.reshape(x, (*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :]))
    if how == "cut" and x.rank < 5:
        at = int(g.pick(axes)) if axes else 0  # type: ignore[call-overload]
        divisors = [n for n in range(2, x.shape[at]) if x.shape[at] % n == 0]
        if axes and divisors:
            part = int(g.pick(divisors))  # type: ignore[call-overload]
            return g.reshape(x, (*x.shape[:at], part, x.shape[at] // part, *x.shape[at + 1 :]))
    if how == "flat" and x.rank > 2:
        if g.chance(0.5):
            return g.node("Flatten", [x], (x.shape[0], prod(x.shape[1:])), axis=1)
        return g.reshape(x, (x.shape[0], prod(x.shape[1:])))
    if how == "one" and x.rank < 5:
        at = g.between(1, x.rank)
        return forms.unsqueeze(g, x, at)
    return None


def squeeze(g: Graph, x: Tensor) -> Tensor | None:
    ones = [axis for axis in g.axes(x) if x.shape[axis] == 1]
    if not ones or x.rank < 3:
        return None
    at = int(g.pick(ones))  # type: ignore[call-overload]
    return forms.squeeze(g, x, at)


def concat(g: Graph, x: Tensor) -> Tensor | None:
    """With values that differ along one axis only, or with itself."""
    axes = g.axes(x)
    if not axes:
        return None
    axis = int(g.pick([1, 1, 1, *axes] if 1 in axes else axes))  # type: ignore[call-overload]
    others = [y for y in g.values if y.rank == x.rank and _but(y, axis) == _but(x, axis)]
    pieces = [x, *(g.pick(others) for _ in range(g.between(1, 2)))]
    extent = sum(piece.shape[axis] for piece in pieces)  # type: ignore[attr-defined]
    if prod(_but(x, axis)) * extent > MOST:
        return None
    order = g.random.permutation(len(pieces))
    return forms.concat(g, [pieces[int(at)] for at in order], axis)  # type: ignore[misc]


def _but(x: Tensor, axis: int) -> tuple[int, ...]:
    return (*x.shape[:axis], *x.shape[axis + 1 :])


def split(g: Graph, x: Tensor) -> list[Tensor] | None:
    axes = [axis for axis in g.axes(x) if x.shape[axis] > 1]
    if not axes:
        return None
    axis = int(g.pick([1, 1, *axes] if 1 in axes else axes))  # type: ignore[call-overload]
    extent = x.shape[axis]
    count = g.between(2, min(3, extent))
    inner = sorted(1 + int(at) for at in g.random.permutation(extent - 1)[: count - 1])
    sizes = [end - begin for begin, end in zip([0, *inner], [*inner, extent], strict=True)]
    return forms.split(g, x, axis, sizes)


def slice_(g: Graph, x: Tensor) -> Tensor | None:
    axes = [axis for axis in g.axes(x) if x.shape[axis] > 1]
    if not axes:
        return None
    chosen = [axis for axis in axes if g.chance(0.5)] or axes[:1]
    starts, ends, steps, shape = [], [], [], list(x.shape)
    for axis in chosen:
        extent = shape[axis]
        step = int(g.pick([1, 1, 1, 2, 3, -1]))  # type: ignore[call-overload]
        begin = g.between(0, extent - 1)
        if step < 0:
            starts.append(begin)
            ends.append(-extent - 1)
            shape[axis] = begin + 1
        else:
            end = g.between(begin + 1, extent)
            starts.append(begin - extent if g.chance(0.3) else begin)
            ends.append(2**31 - 1 if end == extent and g.chance(0.5) else end)
            shape[axis] = -(-(end - begin) // step)
        steps.append(step)
    named = [forms.axis_of(g, x, axis) for axis in chosen]
    numbers = [g.integers(*one) for one in (starts, ends, named, steps)]
    return g.node("Slice", [x, *numbers], tuple(shape))


def pad(g: Graph, x: Tensor) -> Tensor | None:
    axes = g.axes(x)
    mode = str(g.pick(["constant", "constant", "reflect", "edge"]))
    begin, end = [0] * x.rank, [0] * x.rank
    for axis in axes:
        most = min(2, x.shape[axis] - 1) if mode == "reflect" else 2
        if g.chance(0.6) and (mode == "constant" or axis > 1):
            begin[axis], end[axis] = g.between(0, most), g.between(0, most)
    if mode == "constant" and g.chance(0.15):  # a crop
        axis = int(g.pick(axes)) if axes else 0  # type: ignore[call-overload]
        if x.shape[axis] > 2 and axes:
            begin[axis] = -1
    shape = tuple(b + n + e for b, n, e in zip(begin, x.shape, end, strict=True))
    if prod(shape) > MOST or not any([*begin, *end]):
        return None
    operands = [x, g.integers(*begin, *end)]
    if mode == "constant" and g.chance(0.5):
        operands.append(g.constant(np.float32(g.pick([0.0, 1.5, -2.0]))))
    return g.node("Pad", operands, shape, mode=mode)


def gather(g: Graph, x: Tensor) -> Tensor | None:
    axes = g.axes(x)
    if not axes:
        return None
    axis = int(g.pick(axes))  # type: ignore[call-overload]
    count = g.between(1, 5)
    indices = g.random.integers(-x.shape[axis], x.shape[axis], count)
    if g.chance(0.25) and x.rank > 2:
        number = g.constant(np.array(indices[0]))
        return g.node("Gather", [x, number], _but(x, axis), axis=forms.axis_of(g, x, axis))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return g.node("Gather", [x, g.constant(indices)], shape, axis=forms.axis_of(g, x, axis))


def repeat(g: Graph, x: Tensor) -> Tensor | None:
    """Expand where an axis is 1, Tile elsewhere."""
    axes = g.axes(x)
    if not axes or 3 * x.size > MOST:
        return None
    axis, times = int(g.pick(axes)), g.between(2, 3)  # type: ignore[call-overload]
    shape = (*x.shape[:axis], x.shape[axis] * times, *x.shape[axis + 1 :])
    counts = [times if at == axis else 1 for at in range(x.rank)]
    operator = "Expand" if x.shape[axis] == 1 and g.chance(0.7) else "Tile"
    return g.node(operator, [x, g.integers(*counts)], shape)


_MEANS = ("ReduceMean", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceL1", "ReduceL2")
_OTHERS = ("ReduceLogSumExp", "ReduceSumSquare", "ReduceProd")


def reduction(g: Graph, x: Tensor) -> Tensor | None:
    axes = g.axes(x)
    chosen = sorted({int(g.pick(axes)) for _ in range(g.between(1, 2))}) if axes else []  # type: ignore[call-overload]
    if not chosen:
        return None
    extent = prod(x.shape[axis] for axis in chosen)
    operator = str(g.pick(_MEANS if g.chance(0.8) else _OTHERS))
    if operator == "ReduceProd" and extent > 8:
        operator = "ReduceMax"
    keeps = g.chance(0.6) or x.rank - len(chosen) < 2
    written = [axis - x.rank if g.chance(0.3) else axis for axis in chosen]
    y = x
    if operator in ("ReduceSum", "ReduceL1", "ReduceSumSquare"):
        y = g.node("Mul", [x, g.constant(np.float32(extent**-0.5))], x.shape)
    return forms.reduce(g, operator, y, chosen, keeps=keeps, written=written)


def softmax(g: Graph, x: Tensor) -> Tensor | None:
    axes = g.axes(x)
    if not axes:
        return None
    axis = x.rank - 1 if g.chance(0.5) else int(g.pick(axes))  # type: ignore[call-overload]
    if g.opset < 13:  # there all axes from this one on are one
        axis = x.rank - 1
    operator = "LogSoftmax" if g.chance(0.2) else "Softmax"
    return g.unary(operator, x, axis=axis - x.rank if g.chance(0.5) else axis)


def indices(g: Graph, x: Tensor) -> Tensor | None:
    """The places of the largest numbers, a result of its own; the numbers themselves go on."""
    axes = [axis for axis in g.axes(x) if x.shape[axis] > 2]
    if not axes:
        return None
    axis = int(g.pick(axes))  # type: ignore[call-overload]
    if g.chance(0.5):
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        operator = str(g.pick(["ArgMax", "ArgMin"]))
        g.keep(g.node(operator, [x], shape, "int64", axis=forms.axis_of(g, x, axis), keepdims=1))
        return None
    count = g.between(1, x.shape[axis] - 1)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return g.add("TopK", [x, g.integers(count)], shape, shape, axis=forms.axis_of(g, x, axis))[0]


def running_sum(g: Graph, x: Tensor) -> Tensor | None:
    axes = g.axes(x)
    if not axes:
        return None
    axis = int(g.pick(axes))  # type: ignore[call-overload]
    scaled = g.node("Mul", [x, g.constant(np.float32(x.shape[axis] ** -0.5))], x.shape)
    flags = {"exclusive": int(g.chance(0.3)), "reverse": int(g.chance(0.3))}
    return g.node("CumSum", [scaled, g.constant(np.array(axis))], x.shape, **flags)
