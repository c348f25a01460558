"""Dynamic quantization: integers whose scales the model computes, and products of such integers.

    q, s, z = DynamicQuantizeLinear(x)
    y = MatMulInteger(q, w, z)                    matmul(dynamic_dequantize(q, 1, z), dequantize(w, 1, 0))

A product becomes one of real numbers between conversions, which is where libraries look for integers, if its
sums are cast to float32 by all that reads them.  The scales that are multiplied behind the cast join the
conversions when the module is canonicalized.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tvm import relax

from ....operators.quantized import dynamic_dequantize, dynamic_quantize
from .. import stock
from ..node import Emitter, Node, NotTaken
from ..values import Value, dtype_of, rank_of, shape_of
from .table import converts

_INTEGERS = ("uint8", "int8")


@converts("DynamicQuantizeLinear")
def _dynamic_quantize(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    data = node.input(0)
    scalar = rank_of(data) == 0
    integers, scale, zero = quantized(emitter, emitter.reshaped(data, [1]) if scalar else data)
    integers = emitter.reshaped(integers, []) if scalar else integers
    point = emitter.emit(relax.op.astype(emitter.reshaped(zero, []), "uint8"))
    return integers, emitter.reshaped(scale, []), point


def quantized(emitter: Emitter, data: Value) -> tuple[relax.Var, relax.Var, relax.Var]:
    """Integers, scale and zero point of a tensor of float32, the two of shape (1)."""
    if dtype_of(data) != "float32":
        raise NotTaken
    every = emitter.emit(dynamic_quantize(emitter.tensor(data)))
    first, second, third = (emitter.emit(relax.TupleGetItem(every, at)) for at in range(3))
    return first, second, third


def product(emitter: Emitter, node: Node) -> Value:
    """The sums of MatMulInteger or ConvInteger in float32, as a product between conversions.

    Raises
    ------
    NotTaken : sums that are read as integers, weights that the model computes, a zero point for each row.
    """
    if not node.as_real:
        raise NotTaken
    data = real_data(emitter, node.input(0), None, node.input(2))
    axis = 0 if node.op_type == "ConvInteger" else -1
    weights = real_weights(emitter, node.input(1), None, node.input(3), axis)
    if node.op_type == "MatMulInteger":
        return emitter.emit(relax.op.matmul(data, weights))
    conv = replace(node, op_type="Conv", inputs=[data, weights], opset=11)
    (result,) = stock.converted(emitter, conv)
    return result if isinstance(result, relax.Var) else emitter.emit(result)


def real_data(emitter: Emitter, data: Value, scale: Value, zero: Value) -> relax.Expr:
    """Integers of the model as real numbers, by one scale and zero point that it may compute; None is 1 or 0.

    Raises
    ------
    NotTaken : other types, several scales or zero points.
    """
    if dtype_of(data) not in _INTEGERS or isinstance(data, np.ndarray):
        raise NotTaken
    dtype = dtype_of(data)
    scale = np.ones([], "float32") if scale is None else scale
    zero = np.zeros([], dtype) if zero is None else zero
    if dtype_of(scale) != "float32" or any(shape_of(one) not in ([], [1]) for one in (scale, zero)):
        raise NotTaken
    if isinstance(scale, np.ndarray) and isinstance(zero, np.ndarray):
        numbers = relax.const(scale.reshape(())), relax.const(zero.reshape(()).astype(dtype))
        return emitter.emit(relax.op.dequantize(emitter.tensor(data), *numbers, out_dtype="float32"))
    point = (
        zero.astype("int32")
        if isinstance(zero, np.ndarray)
        else emitter.emit(relax.op.astype(emitter.tensor(zero), "int32"))
    )
    rows = (emitter.tensor(emitter.reshaped(one, [1])) for one in (scale, point))
    return emitter.emit(dynamic_dequantize(emitter.tensor(data), *rows))


def real_weights(emitter: Emitter, weights: Value, scale: Value, zero: Value, axis: int) -> relax.Expr:
    """Constant integers as real numbers, by one scale and zero point or one for each index along ``axis``.

    Raises
    ------
    NotTaken : what the model computes, other types and shapes.
    """
    if not isinstance(weights, np.ndarray) or dtype_of(weights) not in _INTEGERS:
        raise NotTaken
    if not isinstance(scale, np.ndarray | None) or not isinstance(zero, np.ndarray | None):
        raise NotTaken
    axis %= weights.ndim
    extent = weights.shape[axis]
    scales = np.ones(1, "float32") if scale is None else scale.reshape(-1)
    zeros = np.zeros(1, weights.dtype) if zero is None else zero.reshape(-1).astype(weights.dtype)
    length = max(scales.size, zeros.size)
    if scales.dtype != np.float32 or any(one.size not in (1, extent) for one in (scales, zeros)):
        raise NotTaken
    if length == 1:
        numbers = [relax.const(scales[0]), relax.const(zeros[0])]
    else:
        numbers = [relax.const(np.broadcast_to(one, length).copy()) for one in (scales, zeros)]
    called = relax.op.dequantize(emitter.tensor(weights), *numbers, axis=axis, out_dtype="float32")
    return emitter.emit(called)
