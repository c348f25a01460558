"""Quantised operators as real ones between conversions, the form in which libraries look for integers.

QLinearConv(x, w)      quantize(conv(dequantize(x), dequantize(w)))
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx
from tvm import relax

from .. import stock
from ..node import Emitter, Node
from ..values import Value, dtype_of, rank_of

_OPSET = 13


@dataclass(frozen=True)
class Integers:
    """Places among a node's operands: integers, their scale, their zero point, the axis of several."""

    data: int
    scale: int
    zero: int
    axis: int = 0


def real(emitter: Emitter, node: Node, place: Integers) -> relax.Expr:
    """An operand of integers as real numbers."""
    data = emitter.tensor(node.input(place.data))
    axis = place.axis % max(rank_of(data) or 1, 1)
    scale, zero = _numbers(emitter, node, place, dtype_of(data))
    return emitter.emit(relax.op.dequantize(data, scale, zero, axis=axis, out_dtype="float32"))


def whole(emitter: Emitter, node: Node, value: relax.Expr, place: Integers, otherwise: str) -> relax.Expr:
    """A result as integers: of the zero point's type, or of ``otherwise`` where there is none."""
    zero = node.input(place.zero)
    dtype = otherwise if zero is None else dtype_of(zero)
    scale, point = _numbers(emitter, node, place, dtype)
    return emitter.emit(relax.op.quantize(value, scale, point, axis=place.axis, out_dtype=dtype))


def operator(
    emitter: Emitter, node: Node, op_type: str, operands: list[relax.Expr | Value], **attributes: object
) -> relax.Expr:
    """The result of a standard operator on real numbers, with the node's attributes or those given."""
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    proto.op_type, proto.domain = op_type, ""
    found = replace(
        node,
        op_type=op_type,
        domain="",
        inputs=operands,
        attributes=attributes or node.attributes,
        opset=_OPSET,
        proto=proto,
    )
    (result,) = stock.converted(emitter, found)
    return emitter.tensor(result)


def are_known(node: Node, *places: Integers) -> bool:
    """Whether all scales and zero points are numbers of the model."""
    return all(
        value is None or isinstance(value, np.ndarray)
        for place in places
        for value in (node.input(place.scale), node.input(place.zero))
    )


def _numbers(emitter: Emitter, node: Node, place: Integers, dtype: str) -> tuple[relax.Expr, relax.Expr]:
    """A scale and zero points, as many of each: TVM takes a scalar or a row."""
    scale, zero = node.input(place.scale), node.input(place.zero)
    if not isinstance(scale, np.ndarray) or not (zero is None or isinstance(zero, np.ndarray)):
        return emitter.tensor(scale), relax.const(0, dtype) if zero is None else emitter.tensor(zero)
    row = scale.astype("float32").reshape(-1)
    points = np.zeros(1, dtype) if zero is None else zero.astype(dtype).reshape(-1)
    if row.size == points.size == 1:
        return relax.const(row[0], "float32"), relax.const(points[0], dtype)
    length = max(row.size, points.size)
    scales, zeros = (relax.const(np.broadcast_to(one, length).copy()) for one in (row, points))
    return scales, zeros
