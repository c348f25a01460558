"""Operators as an opset writes them: axes are attributes before 13 (of reductions 18), tensors after."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .graph import Graph, Shape, Tensor


def axis_of(g: Graph, x: Tensor, axis: int) -> int:
    """An axis as it is, or counted from the end, by chance."""
    return axis - x.rank if g.chance(0.4) else axis


def _with_numbers(
    g: Graph, operator: str, x: Tensor, name: str, numbers: Sequence[int], *shapes: Shape,
    since: int = 13, **attributes: object,
) -> list[Tensor]:  # fmt: skip
    """A node with a list of numbers that is an attribute before an opset, and an operand from it on."""
    if g.opset < since:
        return g.add(operator, [x], *shapes, dtype=x.dtype, **{name: list(numbers)}, **attributes)
    return g.add(operator, [x, g.integers(*numbers)], *shapes, dtype=x.dtype, **attributes)


def unsqueeze(g: Graph, x: Tensor, at: int) -> Tensor:
    written = at - x.rank - 1 if g.chance(0.3) else at
    return _with_numbers(g, "Unsqueeze", x, "axes", [written], (*x.shape[:at], 1, *x.shape[at:]))[0]


def squeeze(g: Graph, x: Tensor, at: int) -> Tensor:
    shape = (*x.shape[:at], *x.shape[at + 1 :])
    return _with_numbers(g, "Squeeze", x, "axes", [axis_of(g, x, at)], shape)[0]


def split(g: Graph, x: Tensor, axis: int, sizes: Sequence[int]) -> list[Tensor]:
    shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sizes]
    return _with_numbers(g, "Split", x, "split", sizes, *shapes, axis=axis_of(g, x, axis))


def reduce(
    g: Graph, operator: str, x: Tensor, axes: Sequence[int], *, keeps: bool, written: Sequence[int] = ()
) -> Tensor:
    """A reduction over axes, which may be ``written`` otherwise than they are counted."""
    shape = tuple(
        1 if axis in axes else size for axis, size in enumerate(x.shape) if keeps or axis not in axes
    )
    since = 13 if operator == "ReduceSum" else 18
    return _with_numbers(g, operator, x, "axes", written or axes, shape, since=since, keepdims=int(keeps))[0]


def slice_(g: Graph, x: Tensor, axis: int, begin: int, end: int, step: int = 1) -> Tensor:
    """Part of one axis, forwards; ``end`` is inside the axis."""
    shape = (*x.shape[:axis], max(0, -(-(end - begin) // step)), *x.shape[axis + 1 :])
    numbers = [g.integers(one) for one in (begin, end, axis_of(g, x, axis), step)]
    return g.node("Slice", [x, *numbers], shape, x.dtype)


def concat(g: Graph, pieces: Sequence[Tensor], axis: int) -> Tensor:
    x = pieces[0]
    extent = sum(piece.shape[axis] for piece in pieces)
    shape = (*x.shape[:axis], extent, *x.shape[axis + 1 :])
    return g.node("Concat", pieces, shape, x.dtype, axis=axis_of(g, x, axis))


def resize(g: Graph, x: Tensor, scales: Sequence[float], **attributes: object) -> Tensor:
    """By whole factors, or others that leave whole extents."""
    shape = tuple(round(size * scale) for size, scale in zip(x.shape, scales, strict=True))
    return g.node("Resize", [x, no_region(g), g.constant(np.array(scales, "float32"))], shape, **attributes)


def no_region(g: Graph) -> str:
    """The region operand of a Resize that has none, which opsets before 13 want as an empty tensor."""
    return "" if g.opset >= 13 else g.constant(np.zeros(0, "float32"))


def comparison(g: Graph) -> str:
    """An operator that compares numbers; those with "or equal" are there from opset 12 on."""
    operator = str(g.pick(["Greater", "Less"]))
    return operator + "OrEqual" if g.opset >= 12 and g.chance(0.5) else operator


def number(g: Graph, value: float, dtype: str = "float32") -> str:
    """A constant without axes."""
    return g.constant(np.array(value, dtype))
