"""Scales and zero points of quantised operators, where a model states them: said at once, by the node's name.

A scale is above 0 and finite; there is one of them, or one for each place along an axis that exists; a zero
point is of the integers' own type, and there are as many as scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ....errors import InvalidInputError
from ..node import Node
from ..values import Value, dtype_of, shape_of


class Numbers(NamedTuple):
    """Places among a node's operands: integers (-1 for a result), their scale and their zero point.

    ``axis`` is along which there may be several; None for one only.
    """

    integers: int
    scale: int
    zero: int
    axis: int | None


_ROWS: dict[str, tuple[Numbers, ...]] = {
    "QLinearConv": (Numbers(0, 1, 2, None), Numbers(3, 4, 5, 0), Numbers(-1, 6, 7, None)),
    "QLinearMatMul": (Numbers(0, 1, 2, -2), Numbers(3, 4, 5, -1), Numbers(-1, 6, 7, -2)),
    "QLinearAdd": (Numbers(0, 1, 2, None), Numbers(3, 4, 5, None), Numbers(-1, 6, 7, None)),
    "MatMulIntegerToFloat": (Numbers(0, 2, 4, -2), Numbers(1, 3, 5, -1)),
    "DynamicQuantizeMatMul": (Numbers(1, 2, 3, -1),),
    "QLinearMul": (Numbers(0, 1, 2, None), Numbers(3, 4, 5, None), Numbers(-1, 6, 7, None)),
}


def check_numbers(node: Node, called: Callable[[Node], str]) -> None:
    """Raise InvalidInputError for numbers of a quantised node that are none."""
    if node.attributes.get("block_size", 0):
        return
    for row in _rows(node):
        reason = _reason(node, row)
        if reason:
            raise InvalidInputError(f"{called(node)}: {reason}")


def _rows(node: Node) -> Iterator[Numbers]:
    if node.op_type == "DequantizeLinear":
        yield Numbers(0, 1, 2, int(node.attribute("axis", 1)))
    elif node.op_type == "QuantizeLinear":
        yield Numbers(-1, 1, 2, int(node.attribute("axis", 1)))
    else:
        yield from _ROWS.get(node.op_type, ())


def _reason(node: Node, row: Numbers) -> str:
    scale, zero = node.input(row.scale), node.input(row.zero)
    if isinstance(scale, np.ndarray):
        wide = scale.astype("float64").reshape(-1)
        wrong = wide[~(np.isfinite(wide) & (wide > 0))]
        if wrong.size:
            return f"scale: expected finite numbers above 0, got {wrong[0]:.7g}"
    data = node.input(0 if row.integers < 0 else row.integers)
    if row.integers >= 0 and zero is not None and dtype_of(zero) != dtype_of(data):
        return f"zero point: expected {dtype_of(data)}, the type of the integers, got {dtype_of(zero)}"
    counts = [_count(value) for value in (scale, zero) if value is not None]
    if any(count is None or count == 1 for count in counts):
        counts = [count for count in counts if count not in (None, 1)]
    shape = shape_of(data)
    if not counts or shape is None:
        return ""
    if row.axis is None:
        return f"scale and zero point: expected one of each, got {counts[0]}"
    if not -len(shape) <= row.axis < len(shape):
        return f"axis: expected one of a tensor of rank {len(shape)}, got {row.axis}"
    extent = shape[row.axis]
    if isinstance(extent, int) and any(count != extent for count in counts):
        return f"scale and zero point: expected {extent} along axis {row.axis}, got {counts[0]}"
    return ""


def _count(value: Value) -> int | None:
    """Numbers in a row; None where that is open or no row."""
    shape = shape_of(value)
    if shape is None or len(shape) > 1 or not all(isinstance(dim, int) for dim in shape):
        return None
    return int(np.prod(shape))  # type: ignore[arg-type]
