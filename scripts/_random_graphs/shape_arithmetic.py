"""Moves whose shapes the model computes itself, and tensors without axes, or without elements."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import numpy_helper

from . import forms
from .graph import Graph, Tensor


def _extent(g: Graph, x: Tensor, axis: int) -> Tensor:
    """One extent of a tensor, as exporters ask for it."""
    shape = g.node("Shape", [x], (x.rank,), "int64")
    return g.node("Gather", [shape, forms.number(g, axis, "int64")], (), "int64", axis=0)


def computed_reshape(g: Graph, x: Tensor) -> Tensor | None:
    """Rows of all numbers of a sample, by extents of the tensor itself."""
    if x.rank < 3:
        return None
    first = forms.unsqueeze(g, _extent(g, x, 0), 0)
    if g.chance(0.5):
        shape = forms.concat(g, [first, _listed(g, -1)], 0)
        return g.node("Reshape", [x, shape], (x.shape[0], prod(x.shape[1:])))
    second = forms.unsqueeze(g, _extent(g, x, 1), 0)
    if g.chance(0.4):
        rest = prod(x.shape[2:])
        shape = forms.concat(g, [first, second, _listed(g, -1)], 0)
        return g.node("Reshape", [x, shape], (*x.shape[:2], rest))
    extents = [_extent(g, x, axis) for axis in range(1, x.rank)]
    product = extents[0]
    for one in extents[1:]:
        product = g.node("Mul", [product, one], (), "int64")
    shape = forms.concat(g, [first, forms.unsqueeze(g, product, 0)], 0)
    return g.node("Reshape", [x, shape], (x.shape[0], prod(x.shape[1:])))


def _listed(g: Graph, *numbers: int) -> Tensor:
    """Numbers as a node of the graph."""
    if g.opset >= 12:
        return g.node("Constant", [], (len(numbers),), "int64", value_ints=list(numbers))
    return g.node("Identity", [g.integers(*numbers)], (len(numbers),), "int64")


def spread(g: Graph, x: Tensor) -> Tensor | None:
    """Something made for the shape of another: its extents, a constant expanded, a row of places."""
    if x.rank < 2:
        return None
    how = g.pick(["ones", "expand", "range"])
    if how == "ones":
        shape = g.node("Shape", [x], (x.rank,), "int64")
        value = np.array([g.random.uniform(-1, 1)], "float32")
        y = g.node("ConstantOfShape", [shape], x.shape, value=numpy_helper.from_array(value))
        return g.node("Add", [x, y], x.shape)
    if how == "expand":
        shape = g.node("Shape", [x], (x.rank,), "int64")
        y = g.node("Expand", [g.numbers(x.shape[-1:]), shape], x.shape)
        return g.node("Mul", [x, y], x.shape)
    extent = _extent(g, x, x.rank - 1)
    step = forms.number(g, 1, "int64")
    row = g.node("Range", [forms.number(g, 0, "int64"), extent, step], x.shape[-1:], "int64")
    scaled = g.node("Mul", [g.cast(row, "float32"), forms.number(g, 0.1)], x.shape[-1:])
    return g.node("Add", [x, scaled], x.shape)


def scalar(g: Graph, x: Tensor) -> Tensor | None:
    """A tensor scaled by a number that all of it makes: one of rank 0, which may be a result."""
    if not x.rank:
        return None
    mean = forms.reduce(g, str(g.pick(["ReduceMean", "ReduceMax"])), x, list(range(x.rank)), keeps=False)
    gate = g.unary(str(g.pick(["Sigmoid", "Tanh", "Abs"])), mean)
    if g.chance(0.3):
        gate = g.node("Max", [gate, forms.number(g, 0.1)], ())
    if g.chance(0.3):
        g.keep(gate)
    return g.node(str(g.pick(["Mul", "Add", "Sub"])), [x, gate] if g.chance(0.6) else [gate, x], x.shape)


def empty(g: Graph, x: Tensor) -> Tensor | None:
    """A part without elements, with operators on it, beside the whole."""
    axes = g.axes(x)
    if not axes:
        return None
    axis = int(g.pick(axes))  # type: ignore[call-overload]
    if g.chance(0.5) and x.shape[axis] > 1:
        none, whole = forms.split(g, x, axis, [0, x.shape[axis]])
    else:
        at = g.between(0, x.shape[axis])
        none, whole = forms.slice_(g, x, axis, at, at), x
    for _ in range(g.between(0, 2)):
        none = g.unary(str(g.pick(["Relu", "Neg", "Sigmoid", "Tanh"])), none)
    if g.chance(0.4):
        g.keep(none)
        return g.unary("Relu", whole)
    return forms.concat(g, [none, whole] if g.chance(0.5) else [whole, none], axis)


def constant_branch(g: Graph, x: Tensor) -> Tensor:
    """An operand that nodes compute of constants alone, as exporters leave it."""
    extent = x.shape[-1] if x.rank else 1
    y = g.node("Sqrt", [g.constant(g.random.uniform(0.5, 2, (extent,)).astype("float32"))], (extent,))
    how = g.pick(["where", "stack", "cast", "standard"])
    if how == "where":
        test = g.node("Greater", [y, forms.number(g, 1.0)], (extent,), "bool")
        y = g.node("Where", [test, y, g.numbers((extent,))], (extent,))
    elif how == "stack":
        y = forms.concat(g, [forms.unsqueeze(g, one, 0) for one in (y, y)], 0)
        y = forms.reduce(g, "ReduceSum", y, [0], keeps=False)
    elif how == "cast":
        whole = g.constant(g.random.integers(-3, 4, (extent,)).astype("int64"))
        y = g.node("Mul", [y, g.cast(Tensor(whole, (extent,), "int64"), "float32")], (extent,))
    elif extent > 1:
        mean = forms.reduce(g, "ReduceMean", y, [0], keeps=True)
        y = g.node("Div", [g.node("Sub", [y, mean], (extent,)), g.positive((1,))], (extent,))
    if x.rank == 0:
        y = forms.squeeze(g, y, 0)
    return g.node(str(g.pick(["Add", "Mul"])), [x, y], x.shape)
