"""Moves through truths and whole numbers, and by indices; what comes out is real again."""

from __future__ import annotations

from math import prod

import numpy as np

from . import forms
from .graph import MOST, Graph, Tensor


def truths(g: Graph, x: Tensor) -> Tensor:
    """Two comparisons joined; their truth chooses, or counts as a number."""
    first, second = _compared(g, x), _compared(g, x)
    truth = g.node(str(g.pick(["And", "Or", "Xor"])), [first, second], x.shape, "bool")
    if g.chance(0.3):
        truth = g.node("Not", [truth], x.shape, "bool")
    if g.chance(0.2):
        g.keep(truth)
    if g.chance(0.5):
        return g.node("Mul", [x, g.cast(truth, "float32")], x.shape)
    number = forms.number(g, float(g.random.uniform(-1, 1)))
    return g.node("Where", [truth, x, number] if g.chance(0.5) else [truth, number, x], x.shape)


def _compared(g: Graph, x: Tensor) -> Tensor:
    bound = g.constant(g.random.uniform(-1, 1, ()).astype("float32"))
    return g.node(forms.comparison(g), [x, bound] if g.chance(0.7) else [bound, x], x.shape, "bool")


def whole_numbers(g: Graph, x: Tensor) -> Tensor:
    """Arithmetic of integers: quotients, remainders, sums, comparisons; then real again."""
    dtype = str(g.pick(["int32", "int64", "int64"]))
    scaled = g.node("Mul", [x, forms.number(g, float(g.random.uniform(2, 9)))], x.shape)
    y = g.cast(g.unary("Floor", scaled), dtype)
    for _ in range(g.between(1, 3)):
        y = _one_of_integers(g, y)
    if g.chance(0.2):
        g.keep(y)
    return g.cast(y, "float32")


def _one_of_integers(g: Graph, y: Tensor) -> Tensor:
    operator = str(g.pick(["Add", "Mul", "Sub", "Max", "Min", "Div", "Mod", "Neg", "Abs", "Where", "CumSum"]))
    if operator in ("Max", "Min") and g.opset < 12:
        operator = "Add"
    if operator in ("Neg", "Abs"):
        return g.node(operator, [y], y.shape, y.dtype)
    if operator == "CumSum":
        axes = g.axes(y)
        if not axes:
            return g.node("Neg", [y], y.shape, y.dtype)
        axis = g.constant(np.array(g.pick(axes)))
        return g.node("CumSum", [y, axis], y.shape, y.dtype)
    other = g.constant(np.array(g.between(1, 5), y.dtype))
    if operator == "Where":
        test = g.node(str(g.pick(["Greater", "Equal"])), [y, other], y.shape, "bool")
        return g.node("Where", [test, y, other], y.shape, y.dtype)
    turned = operator in ("Add", "Mul", "Sub", "Max", "Min") and g.chance(0.3)
    return g.node(operator, [other, y] if turned else [y, other], y.shape, y.dtype)


def places(g: Graph, x: Tensor) -> Tensor | None:
    """The place of the largest number as something to count with: a row of a table, or one of many truths."""
    axes = [axis for axis in g.axes(x) if x.shape[axis] > 2]
    if not axes or x.rank < 2:
        return None
    axis = int(g.pick(axes))  # type: ignore[call-overload]
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    place = g.node("ArgMax", [x], shape, "int64", axis=forms.axis_of(g, x, axis), keepdims=0)
    if g.chance(0.5):
        width = g.between(2, 6)
        if prod(shape) * width > MOST:
            return None
        table = g.numbers((x.shape[axis], width))
        return g.node("Gather", [table, place], (*shape, width), axis=0)
    depth = forms.number(g, x.shape[axis], "int64")
    values = g.constant(np.array([0.0, 1.0], "float32"))
    return g.node("OneHot", [place, depth, values], (*shape, x.shape[axis]), axis=-1)


def elements(g: Graph, x: Tensor) -> Tensor | None:
    """Elements by constant indices: gathered, put over others, or those below a diagonal."""
    if g.named or x.size > 20_000 or x.rank < 1:
        return None
    how = str(g.pick(["GatherElements", "GatherND", "ScatterElements", "ScatterND", "Trilu"]))
    axis = g.between(0, x.rank - 1)
    if how == "Trilu":
        if x.rank < 2 or g.opset < 14:
            return None
        operands = [x, forms.number(g, g.between(-1, 1), "int64")] if g.chance(0.5) else [x]
        return g.node("Trilu", operands, x.shape, upper=int(g.chance(0.5)))
    if how in ("GatherElements", "ScatterElements"):
        shape = list(x.shape)
        shape[axis] = g.between(1, x.shape[axis])
        order = np.argsort(g.random.random((*x.shape,)), axis=axis)  # no index twice
        indices = g.constant(np.take(order, range(shape[axis]), axis=axis).astype("int64"))
        if how == "GatherElements":
            return g.node(how, [x, indices], tuple(shape), axis=forms.axis_of(g, x, axis))
        return g.node(how, [x, indices, g.numbers(tuple(shape))], x.shape, axis=axis)
    depth, count = g.between(1, x.rank), g.between(1, 5)
    flat = g.random.choice(prod(x.shape[:depth]), min(count, prod(x.shape[:depth])), replace=False)
    indices = g.constant(np.stack(np.unravel_index(flat, x.shape[:depth]), -1).astype("int64"))
    rest = (len(flat), *x.shape[depth:])
    if how == "GatherND":
        return g.node(how, [x, indices], rest)
    return g.node(how, [x, indices, g.numbers(rest)], x.shape)
