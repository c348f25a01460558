"""Quantization by numbers that follow from the data, as operators of Relax.

    R.mxplan.dynamic_quantize(data)                    -> integers, scale, zero_point
    R.mxplan.dynamic_dequantize(integers, scale, zero_point)  -> scale * (integers - zero_point)

    data         float32, any shape
    integers     uint8, of the same shape; also int8 for the second
    scale        float32 (1); a 255th of the way from the least to the largest number, 0 among them
    zero_point   int32 (1)

Relax's own operators take one scale as a scalar alone; these take vectors of one, as libraries have them.
"""

from __future__ import annotations

import tvm
from tvm import relax

from .registration import Operator

_STEPS = 255.0


def dynamic_quantize(data: relax.Expr) -> relax.Call:
    """The call on float32; its result is a tuple."""
    return QUANTIZE.call(data)


def dynamic_dequantize(integers: relax.Expr, scale: relax.Expr, zero_point: relax.Expr) -> relax.Call:
    """The call on integers of 8 bits with a scale and a zero point of shape (1)."""
    return DEQUANTIZE.call(integers, scale, zero_point)


def register() -> None:
    """Make the operators known to TVM."""
    QUANTIZE.register()
    DEQUANTIZE.register()


def _alike(data: relax.Expr, dtype: str) -> relax.TensorType:
    shape = data.ty.shape
    if shape is None:
        return relax.TensorType(dtype=dtype, ndim=data.ty.ndim)
    return relax.TensorType(shape, dtype)


def _quantize_type(call: relax.Call) -> tvm.ir.Type:
    one = [relax.TensorType([1], dtype) for dtype in ("float32", "int32")]
    return relax.TupleType([_alike(call.args[0], "uint8"), *one])


def _dequantize_type(call: relax.Call) -> tvm.ir.Type:
    return _alike(call.args[0], "float32")


def _number(value: float) -> relax.Expr:
    return relax.const(value, "float32")


def _quantize_parts(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    op, (data,) = relax.op, call.args

    def emit(expr: relax.Expr) -> relax.Expr:
        return builder.emit(builder.normalize(expr))

    least = emit(op.minimum(emit(op.reshape(emit(op.min(data)), [1])), _number(0.0)))
    largest = emit(op.maximum(emit(op.reshape(emit(op.max(data)), [1])), _number(0.0)))
    way = emit(op.subtract(largest, least))
    steps = emit(op.divide(way, _number(_STEPS)))
    scale = emit(op.where(emit(op.greater(way, _number(0.0))), steps, _number(1.0)))
    below = emit(op.divide(emit(op.negative(least)), scale))
    zero = emit(op.round(emit(op.clip(below, 0.0, _STEPS))))
    moved = emit(op.add(emit(op.round(emit(op.divide(data, scale)))), zero))
    integers = emit(op.astype(emit(op.clip(moved, 0.0, _STEPS)), "uint8"))
    return relax.Tuple([integers, scale, emit(op.astype(zero, "int32"))])


def _dequantize_parts(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    op, (integers, scale, zero_point) = relax.op, call.args

    def emit(expr: relax.Expr) -> relax.Expr:
        return builder.emit(builder.normalize(expr))

    zero = emit(op.astype(zero_point, "float32"))
    return emit(op.multiply(emit(op.subtract(emit(op.astype(integers, "float32")), zero)), scale))


QUANTIZE = Operator(
    "dynamic_quantize", "integers by a scale that follows from the data", _quantize_type, _quantize_parts
)
DEQUANTIZE = Operator(
    "dynamic_dequantize",
    "real numbers from integers by a scale of the call",
    _dequantize_type,
    _dequantize_parts,
)
