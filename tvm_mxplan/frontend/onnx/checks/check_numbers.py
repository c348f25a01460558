"""Scales and zero points of quantised operators, where a model states them: said at once, by the node's name.

A scale is above 0 and finite; there is one of them, or one for each place along an axis that exists, or one
for each block of an axis; a zero point is of the integers' own type, and there are as many as scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ....errors import InvalidInputError
from ..dimensions.dims import Dim
from ..node import Node
from ..values import Value, dtype_of, shape_of


class Numbers(NamedTuple):
    """Places among a node's operands: integers (-1 for a result), their scale and their zero point.

    Attributes
    ----------
    scale : None where the operator has none.
    axis : along which there may be several; None for one only.
    """

    integers: int
    scale: int | None
    zero: int
    axis: int | None


_OF_ONE = (Numbers(0, 1, 2, None), Numbers(-1, 3, 4, None))
_OF_TWO = (Numbers(0, 1, 2, None), Numbers(3, 4, 5, None), Numbers(-1, 6, 7, None))
_ROWS: dict[str, tuple[Numbers, ...]] = {
    "ConvInteger": (Numbers(0, None, 2, None), Numbers(1, None, 3, 0)),
    "MatMulInteger": (Numbers(0, None, 2, -2), Numbers(1, None, 3, -1)),
    "QLinearConv": (Numbers(0, 1, 2, None), Numbers(3, 4, 5, 0), Numbers(-1, 6, 7, None)),
    "QLinearMatMul": (Numbers(0, 1, 2, -2), Numbers(3, 4, 5, -1), Numbers(-1, 6, 7, -2)),
    "QLinearAdd": _OF_TWO,
    "MatMulIntegerToFloat": (Numbers(0, 2, 4, -2), Numbers(1, 3, 5, -1)),
    "DynamicQuantizeMatMul": (Numbers(1, 2, 3, -1),),
    "QLinearMul": _OF_TWO,
    "QLinearSigmoid": _OF_ONE,
    "QLinearLeakyRelu": _OF_ONE,
    "QLinearSoftmax": _OF_ONE,
    "QLinearAveragePool": _OF_ONE,
    "QLinearGlobalAveragePool": _OF_ONE,
}
_BIAS = {"QLinearConv": 8, "QGemm": 6}
"""Places of operands that are whole sums."""

_WHOLE = ("uint8", "int8")
_REAL = ("float32", "float64", "float16", "bfloat16")
_QUANTIZED = (*_REAL, "int32")
"""Types that QuantizeLinear takes; DequantizeLinear takes all but ``_REAL``."""


def check_numbers(node: Node, called: Callable[[Node], str]) -> None:
    """Raise InvalidInputError for numbers of a quantised node that are none."""
    rows = [*_rows(node)]
    reasons = [_operand_reason(node), *(_reason(node, row) for row in rows)]
    for reason in reasons:
        if reason:
            raise InvalidInputError(f"{called(node)}: {reason}")


def _operand_reason(node: Node) -> str:
    """The fault of the type of an operand that is neither scale nor zero point."""
    expected: dict[int, tuple[str, ...]] = {}
    if node.op_type == "QuantizeLinear":
        expected[0] = _QUANTIZED
    elif node.op_type == "DynamicQuantizeLinear":
        expected[0] = _REAL[:1]
    elif node.op_type != "DequantizeLinear":
        expected |= {row.integers: _WHOLE for row in _rows(node) if row.integers >= 0}
    elif dtype_of(node.input(0)) in _REAL:
        return f"operand 0: expected integers, got {dtype_of(node.input(0))}"
    if node.op_type in _BIAS:
        expected[_BIAS[node.op_type]] = ("int32",)
    if _ROWS.get(node.op_type) is _OF_TWO and dtype_of(node.input(0)) in _WHOLE:
        expected[3] = (dtype_of(node.input(0)),)
    for at, types in expected.items():
        value = node.input(at)
        if value is not None and dtype_of(value) not in types:
            return f"operand {at}: expected {' or '.join(types)}, got {dtype_of(value)}"
    return ""


def _rows(node: Node) -> Iterator[Numbers]:
    if node.op_type == "DequantizeLinear":
        yield Numbers(0, 1, 2, int(node.attribute("axis", 1)))
    elif node.op_type == "QuantizeLinear":
        yield Numbers(-1, 1, 2, int(node.attribute("axis", 1)))
    elif node.op_type == "QGemm":
        columns = 0 if node.attribute("transB", 0) else -1
        yield from (Numbers(0, 1, 2, None), Numbers(3, 4, 5, columns), Numbers(-1, 7, 8, None))
    elif node.op_type == "QLinearConcat":
        yield Numbers(-1, 0, 1, None)
        yield from (Numbers(at, at + 1, at + 2, None) for at in range(2, len(node.inputs), 3))
    else:
        yield from _ROWS.get(node.op_type, ())


def _reason(node: Node, row: Numbers) -> str:
    scale, zero = None if row.scale is None else node.input(row.scale), node.input(row.zero)
    if scale is not None and dtype_of(scale) not in (_QUANTIZED if row.integers < 0 else _REAL):
        return f"scale: expected floating-point numbers, got {dtype_of(scale)}"
    if isinstance(scale, np.ndarray):
        wide = scale.astype("float64").reshape(-1)
        wrong = wide[~(np.isfinite(wide) & (wide > 0))]
        if wrong.size:
            return f"scale: expected finite numbers above 0, got {wrong[0]:.7g}"
    data = node.input(0 if row.integers < 0 else row.integers)
    if row.integers >= 0 and zero is not None and dtype_of(zero) != dtype_of(data):
        return f"zero point: expected {dtype_of(data)}, the type of the integers, got {dtype_of(zero)}"
    if row.integers < 0 and zero is not None and dtype_of(zero) in (*_QUANTIZED, "int64"):
        return f"zero point: expected integers of 16 bits at most, got {dtype_of(zero)}"
    shape = shape_of(data)
    if node.attributes.get("block_size", 0):
        return _block_reason(node, row, shape, scale)
    counts = [_count(value) for value in (scale, zero) if value is not None]
    if any(count is None or count == 1 for count in counts):
        counts = [count for count in counts if count not in (None, 1)]
    if not counts or shape is None:
        return ""
    named = "zero point" if row.scale is None else "scale and zero point"
    if row.axis is None:
        return f"{named}: expected one of each, got {counts[0]}"
    if not -len(shape) <= row.axis < len(shape):
        return f"axis: expected one of a tensor of rank {len(shape)}, got {row.axis}"
    extent = shape[row.axis]
    if isinstance(extent, int) and any(count != extent for count in counts):
        return f"{named}: expected {extent} along axis {row.axis}, got {counts[0]}"
    return ""


def _block_reason(node: Node, row: Numbers, shape: Sequence[Dim] | None, scale: Value) -> str:
    """The fault of an axis in blocks, each of which has a scale."""
    size, scales = int(node.attributes["block_size"]), shape_of(scale)
    if size < 0:
        return f"block_size: expected a number above 0, got {size}"
    if shape is None or row.axis is None or scales is None:
        return ""
    if not -len(shape) <= row.axis < len(shape):
        return f"axis: expected one of a tensor of rank {len(shape)}, got {row.axis}"
    if len(scales) != len(shape):
        return f"scale: expected rank {len(shape)}, one for each block, got rank {len(scales)}"
    return ""


def _count(value: Value) -> int | None:
    """Numbers in a row; None where that is open or no row."""
    shape = shape_of(value)
    if shape is None or len(shape) > 1 or not all(isinstance(dim, int) for dim in shape):
        return None
    return int(np.prod(shape))
