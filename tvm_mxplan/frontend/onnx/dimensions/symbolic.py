"""Evaluates shape arithmetic: operators on integers of which some depend on named dimensions.

An operator that is not in the table, or whose result would depend on a comparison that is not known, runs
when the model does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import onnx
from tvm import relax, tirx

from ..node import Node, NotTaken
from ..values import Symbols, Value, array_of, as_symbols, is_float, value_of
from .dims import Dim, compared, expression, floor_divided, not_negative, simplified
from .ratios import Number, added, ceiling, floor, multiplied, of_float, quotient, subtracted, truncated

_MOST = 4096
"""Elements of a tensor that is still taken for shape arithmetic."""
_FLOATS = (np.dtype("float32"), np.dtype("float64"))


def evaluated(node: Node) -> list[Value] | None:
    """The results of a node on symbols; None where no operand is one, or it is no shape arithmetic."""
    if node.domain or (node.op_type not in _RULES and node.op_type not in _FLOAT_RULES):
        return None
    if not any(isinstance(value, Symbols) for value in node.inputs):
        return None
    if any(isinstance(value, relax.Expr | list) for value in node.inputs):
        return None
    if any(np.prod(value.shape) > _MOST for value in node.inputs if isinstance(value, np.ndarray | Symbols)):
        return None
    rules = _FLOAT_RULES if is_float(node.input(0)) else _RULES
    try:
        return [rules[node.op_type](node)] if node.op_type in rules else None
    except NotTaken:
        return None


def _operands(node: Node) -> list[Symbols]:
    """The operands that are not left out; their elements are dimensions, quotients for floats."""
    found = []
    for value in node.inputs:
        symbols = _quotients(value) if is_float(value) else as_symbols(value)
        if symbols is None and value is not None:
            raise NotTaken
        if symbols is not None:
            found.append(symbols)
    return found


def _quotients(value: Value) -> Symbols | None:
    """Floats as quotients."""
    if isinstance(value, np.ndarray):
        if value.dtype not in _FLOATS:
            raise NotTaken
        bits = np.finfo(value.dtype).nmant + 1
        elements = np.empty(value.size, dtype=object)
        elements[:] = [of_float(float(number), bits) for number in value.reshape(-1)]
        return Symbols(elements.reshape(value.shape), str(value.dtype))
    return value if isinstance(value, Symbols) else None


def _elementwise(function: Callable[[Dim, Dim], Dim]) -> Callable[[Node], Value]:
    """A rule for an operator of operands that broadcast, one by one; the result has the first one's type."""

    def rule(node: Node) -> Value:
        operands = _operands(node)
        arrays = np.broadcast_arrays(*[operand.elements for operand in operands])
        rows = zip(*(array.reshape(-1) for array in arrays), strict=True)
        result = [reduce(function, row) for row in rows]
        return value_of(result, arrays[0].shape, operands[0].dtype)

    return rule


def _comparison(operator: str) -> Callable[[Node], Value]:
    def rule(node: Node) -> Value:
        arrays = np.broadcast_arrays(*[operand.elements for operand in _operands(node)])
        found = [
            compared(operator, a, b) for a, b in zip(*(array.reshape(-1) for array in arrays), strict=True)
        ]
        if any(result is None for result in found):
            raise NotTaken
        return np.array(found, dtype=bool).reshape(arrays[0].shape)

    return rule


def _reduction(function: Callable[[Dim, Dim], Dim], start: Dim | None) -> Callable[[Node], Value]:
    """A rule for a reduction over all axes, of rank 1 or less."""

    def rule(node: Node) -> Value:
        data = _operands(node)[0]
        if len(data.shape) > 1 or (node.attribute("noop_with_empty_axes", 0) and not _axes(node)):
            raise NotTaken
        elements = data.list()
        if start is None and not elements:
            raise NotTaken
        result = elements[0] if start is None else start
        for element in elements[1:] if start is None else elements:
            result = function(result, element)
        keep = node.attribute("keepdims", 1) and len(data.shape) == 1
        return value_of([result], (1,) if keep else (), data.dtype)

    return rule


def _moved(function: Callable[[Node, np.ndarray], np.ndarray]) -> Callable[[Node], Value]:
    """A rule for an operator that only moves the elements of its first operand."""

    def rule(node: Node) -> Value:
        data = _quotients(node.input(0)) if is_float(node.input(0)) else as_symbols(node.input(0))
        if data is None:
            raise NotTaken
        result = function(node, data.elements)
        return value_of(list(result.reshape(-1)), result.shape, data.dtype)

    return rule


def _gather(node: Node, data: np.ndarray) -> np.ndarray:
    axis, indices = node.attribute("axis", 0), node.numbers(1)
    if indices.size and (indices.min() < -data.shape[axis] or indices.max() >= data.shape[axis]):
        raise NotTaken
    result = np.take(data, indices, axis=axis)
    return result if isinstance(result, np.ndarray) else array_of([result], ())


def _slice(node: Node, data: np.ndarray) -> np.ndarray:
    if node.opset < 10:
        starts, ends = node.attributes["starts"], node.attributes["ends"]
        axes, steps = node.attribute("axes"), None
    else:
        starts, ends, axes, steps = node.numbers(1), node.numbers(2), node.known(3), node.known(4)
    along = range(len(starts)) if axes is None else axes
    strides = [1] * len(starts) if steps is None else steps
    index = [slice(None)] * data.ndim
    for axis, start, end, step in zip(along, starts, ends, strides, strict=True):
        low = -(2**62)
        index[int(axis)] = slice(int(start), None if step < 0 and end < low else int(end), int(step))
    return data[tuple(index)]


def _axes(node: Node) -> list[int] | None:
    """Axes as an attribute, or as an operand from opset 13 on."""
    axes = node.attribute("axes")
    axes = node.known(1) if axes is None else axes
    return None if axes is None else [int(axis) for axis in np.reshape(axes, -1)]


def _squeeze(node: Node, data: np.ndarray) -> np.ndarray:
    axes = _axes(node)
    return np.squeeze(data, None if axes is None else tuple(axes))


def _unsqueeze(node: Node, data: np.ndarray) -> np.ndarray:
    return np.expand_dims(data, tuple(_axes(node) or ()))


def _reshape(node: Node, data: np.ndarray) -> np.ndarray:
    shape = [int(dim) for dim in node.numbers(1)]
    if not node.attribute("allowzero", 0):
        shape = [data.shape[axis] if dim == 0 else dim for axis, dim in enumerate(shape)]
    return data.reshape(shape)


def _expand(node: Node, data: np.ndarray) -> np.ndarray:
    shape = [int(dim) for dim in node.numbers(1)]
    if np.prod(shape) > _MOST:
        raise NotTaken
    return np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(shape)))


def _concat(node: Node) -> Value:
    operands = _operands(node)
    result = np.concatenate([operand.elements for operand in operands], axis=node.attributes["axis"])
    return value_of(list(result.reshape(-1)), result.shape, operands[0].dtype)


def _cast(node: Node) -> Value:
    data = _operands(node)[0]
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(node.attributes["to"]))
    if dtype in _FLOATS or (dtype.kind in "iu" and dtype.itemsize >= 4):  # of enough digits for a size
        if not is_float(data) or dtype.kind == "f":
            return Symbols(data.elements, str(dtype))
        return value_of([truncated(number) for number in data.list()], data.shape, str(dtype))
    raise NotTaken


def _rounded(function: Callable[[Number], Dim]) -> Callable[[Node], Value]:
    """A rule for an operator that makes whole numbers of floats."""

    def rule(node: Node) -> Value:
        data = _operands(node)[0]
        return value_of([function(number) for number in data.list()], data.shape, data.dtype)

    return rule


def _where(node: Node) -> Value:
    condition = node.numbers(0)
    x, y = as_symbols(node.input(1)), as_symbols(node.input(2))
    if x is None or y is None:
        raise NotTaken
    arrays = np.broadcast_arrays(condition, x.elements, y.elements)
    rows = zip(*(array.reshape(-1) for array in arrays), strict=True)
    return value_of([a if chosen else b for chosen, a, b in rows], arrays[0].shape, x.dtype)


def _negated(node: Node) -> Value:
    data = _operands(node)[0]
    return value_of([0 - dim for dim in data.list()], data.shape, data.dtype)


def _divide(left: Dim, right: Dim) -> Dim:
    """ONNX divides integers towards zero, which is down where they are no less than 0."""
    if (isinstance(right, int) and right == 0) or not not_negative(left) or not not_negative(right):
        raise NotTaken
    return floor_divided(left, right)


def _remainder(left: Dim, right: Dim) -> Dim:
    if not isinstance(right, int) or right <= 0 or not not_negative(left):
        raise NotTaken
    return simplified(tirx.floormod(expression(left), expression(right)))


def _larger(left: Dim, right: Dim) -> Dim:
    return simplified(tirx.max(expression(left), expression(right)))


def _smaller(left: Dim, right: Dim) -> Dim:
    return simplified(tirx.min(expression(left), expression(right)))


def _product(left: Dim, right: Dim) -> Dim:
    return left * right


_RULES: dict[str, Callable[[Node], Value]] = {
    "Add": _elementwise(lambda a, b: a + b),
    "Sub": _elementwise(lambda a, b: a - b),
    "Mul": _elementwise(_product),
    "Div": _elementwise(_divide),
    "Mod": _elementwise(_remainder),
    "Max": _elementwise(_larger),
    "Min": _elementwise(_smaller),
    "Neg": _negated,
    "Equal": _comparison("=="),
    "Less": _comparison("<"),
    "LessOrEqual": _comparison("<="),
    "Greater": _comparison(">"),
    "GreaterOrEqual": _comparison(">="),
    "ReduceProd": _reduction(_product, 1),
    "ReduceSum": _reduction(lambda a, b: a + b, 0),
    "ReduceMax": _reduction(_larger, None),
    "ReduceMin": _reduction(_smaller, None),
    "Gather": _moved(_gather),
    "Slice": _moved(_slice),
    "Squeeze": _moved(_squeeze),
    "Unsqueeze": _moved(_unsqueeze),
    "Reshape": _moved(_reshape),
    "Flatten": _moved(lambda node, data: data.reshape(1, -1) if data.ndim == 1 else _refuse()),
    "Transpose": _moved(lambda node, data: data.transpose(node.attribute("perm"))),
    "Expand": _moved(_expand),
    "Identity": _moved(lambda node, data: data),
    "Concat": _concat,
    "Cast": _cast,
    "Where": _where,
}


_MOVES = ("Gather", "Slice", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Transpose", "Expand", "Identity")
_FLOAT_RULES: dict[str, Callable[[Node], Value]] = {
    "Add": _elementwise(added),
    "Sub": _elementwise(subtracted),
    "Mul": _elementwise(multiplied),
    "Div": _elementwise(quotient),
    "Floor": _rounded(floor),
    "Ceil": _rounded(ceiling),
    "Cast": _cast,
    "Concat": _concat,
    **{name: _RULES[name] for name in _MOVES},
}


def _refuse() -> np.ndarray:
    raise NotTaken
