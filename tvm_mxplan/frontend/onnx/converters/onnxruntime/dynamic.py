"""Products of integers by scales that the model computes, as onnxruntime fuses them.

MatMulIntegerToFloat(a, b, s, t, y, z)     dequantize(a, s, y) x dequantize(b, t, z)
DynamicQuantizeMatMul(x, b, t, z)          the same of x as integers
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import relax

from ...node import Emitter, Node, NotTaken
from ...values import Value, rank_of
from ..dynamic import quantized, real_data, real_weights
from ..table import converts

_DOMAIN = "com.microsoft"


@converts("MatMulIntegerToFloat", domain=_DOMAIN)
def _to_float(emitter: Emitter, node: Node) -> Value:
    left, right, left_scale, right_scale, left_zero, right_zero, bias = (node.input(at) for at in range(7))
    try:
        data = real_data(emitter, left, left_scale, left_zero)
        weights = real_weights(emitter, right, right_scale, right_zero, -1)
    except NotTaken:
        data = _spread_out(emitter, left, (left_scale, left_zero), -2)
        weights = _spread_out(emitter, right, (right_scale, right_zero), -1)
    return _biased(emitter, relax.op.matmul(data, weights), bias)


@converts("DynamicQuantizeMatMul", domain=_DOMAIN)
def _quantizing(emitter: Emitter, node: Node) -> Value:
    data, right, scale, zero, bias = (node.input(at) for at in range(5))
    left = real_data(emitter, *quantized(emitter, data))
    try:
        weights = real_weights(emitter, right, scale, zero, -1)
    except NotTaken:
        weights = _spread_out(emitter, right, (scale, zero), -1)
    return _biased(emitter, relax.op.matmul(left, weights), bias)


def _biased(emitter: Emitter, result: relax.Expr, bias: Value) -> Value:
    made = emitter.emit(result)
    return made if bias is None else emitter.emit(relax.op.add(made, emitter.tensor(bias)))


def _spread_out(emitter: Emitter, data: Value, numbers: Sequence[Value], axis: int) -> relax.Expr:
    """Integers as real numbers by arithmetic, whatever their scales and zero points are."""
    emit, (scale, zero) = emitter.emit, numbers
    wide = emit(relax.op.astype(emitter.tensor(data), "float32"))
    if zero is not None:
        point = emit(relax.op.astype(_along(emitter, zero, data, axis), "float32"))
        wide = emit(relax.op.subtract(wide, point))
    return emit(relax.op.multiply(wide, _along(emitter, scale, data, axis)))


def _along(emitter: Emitter, row: Value, data: Value, axis: int) -> relax.Expr:
    """A row so that it broadcasts along one axis of ``data``; what is no row as it is."""
    if rank_of(row) != 1:
        return emitter.tensor(row)
    shape = [1] * emitter.rank(data)
    shape[axis] = np.size(row) if isinstance(row, np.ndarray) else emitter.shape(row)[0]
    return emitter.tensor(emitter.reshaped(row, [1] if shape[axis] == 1 else shape))
