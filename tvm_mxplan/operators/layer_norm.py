"""Gradients of layer normalization as an operator of Relax.

    R.mxplan.layer_norm_backward(src, grad, scale, epsilon) -> gradients of src, scale, shift

    src, grad   (..., C)
    scale       (C)

Statistics are those of the last axis, and are worked out again.
"""

from __future__ import annotations

import tvm
from tvm import relax

from .registration import Operator, dtype_of, same_type, shape_of


def layer_norm_backward(src: relax.Expr, grad: relax.Expr, scale: relax.Expr, epsilon: float) -> relax.Call:
    """The call of the operator."""
    return BACKWARD.call(src, grad, scale, epsilon=float(epsilon))


def _type(call: relax.Call) -> tvm.ir.Type:
    src, _, scale = call.args
    return relax.TupleType([same_type(src), same_type(scale), same_type(scale)])


def _legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    src, grad, scale = call.args
    op, dtype, shape = relax.op, dtype_of(src), shape_of(src)
    share, rows = relax.const(1 / shape[-1], dtype), list(range(len(shape) - 1))

    def mean(value: relax.Expr) -> relax.Expr:
        total = builder.emit(op.sum(builder.emit(value), [-1], keepdims=True))
        return builder.emit(op.multiply(total, share))

    centred = builder.emit(op.subtract(src, mean(src)))
    variance = mean(op.multiply(centred, centred))
    inverse = builder.emit(op.rsqrt(op.add(variance, relax.const(float(call.attrs["epsilon"]), dtype))))
    normal = builder.emit(op.multiply(centred, inverse))
    inner = builder.emit(op.multiply(grad, scale))
    along = op.add(mean(inner), op.multiply(normal, mean(op.multiply(inner, normal))))
    data = builder.emit(op.multiply(op.subtract(inner, along), inverse))
    scale_grad = builder.emit(op.sum(builder.emit(op.multiply(grad, normal)), rows))
    return relax.Tuple([data, scale_grad, builder.emit(op.sum(grad, rows))])


BACKWARD = Operator("layer_norm_backward", "gradients of layer normalization", _type, _legalize)
