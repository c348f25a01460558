"""Batch normalization in training as operators of Relax.

    R.mxplan.batch_norm(src, scale, shift, running_mean, running_variance, epsilon, momentum, unbiased)
        -> dst, mean, variance, running_mean, running_variance
    R.mxplan.batch_norm_backward(src, grad, mean, variance, scale, epsilon)
        -> gradients of src, scale, shift

    src, grad, dst   (N, C, ...)
    all others       (C)

``mean`` and ``variance`` are those of the batch, the variance divided by the number of elements.  The running
ones become ``(1 - momentum) * old + momentum * batch``; with ``unbiased`` the variance that goes in there is
divided by one element less, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import tvm
from tvm import relax

from .registration import Operator, dtype_of, same_type, shape_of


@dataclass(frozen=True)
class Normalization:
    """The numbers of a batch normalization."""

    epsilon: float
    momentum: float
    unbiased: bool


def batch_norm(operands: Sequence[relax.Expr], norm: Normalization) -> relax.Call:
    """The call of the operator on src, scale, shift and the running mean and variance."""
    return BATCH_NORM.call(*operands, epsilon=norm.epsilon, momentum=norm.momentum, unbiased=norm.unbiased)


def batch_norm_backward(operands: Sequence[relax.Expr], epsilon: float) -> relax.Call:
    """The call of the gradient on src, grad, the batch's mean and variance, and scale."""
    return BACKWARD.call(*operands, epsilon=epsilon)


def _type(call: relax.Call) -> tvm.ir.Type:
    src, scale = call.args[:2]
    return relax.TupleType([same_type(src), *[same_type(scale)] * 4])


def _backward_type(call: relax.Call) -> tvm.ir.Type:
    src, scale = call.args[0], call.args[4]
    return relax.TupleType([same_type(src), same_type(scale), same_type(scale)])


class _Channels:
    """Arithmetic on the channels of an image, emitted as operators of Relax."""

    def __init__(self, builder: relax.BlockBuilder, src: relax.Expr) -> None:
        self.shape = shape_of(src)
        self.dtype = dtype_of(src)
        self._emit = builder.emit

    @property
    def terms(self) -> int:
        """Elements of each channel."""
        return math.prod(self.shape) // self.shape[1]

    def number(self, value: float) -> relax.Expr:
        return relax.const(value, self.dtype)

    def emit(self, expr: relax.Expr) -> relax.Expr:
        return self._emit(expr)

    def sum(self, value: relax.Expr) -> relax.Expr:
        """The sum over all axes but the channels; axis by axis, which keeps the error of long sums small."""
        for axis in [*range(len(self.shape) - 1, 1, -1), 0]:
            value = self.emit(relax.op.sum(value, [axis], keepdims=False))
        return value

    def mean(self, value: relax.Expr) -> relax.Expr:
        return self.emit(relax.op.multiply(self.sum(value), self.number(1.0 / self.terms)))

    def row(self, value: relax.Expr) -> relax.Expr:
        """One number for each channel, in the place where an image has its channels."""
        return self.emit(relax.op.reshape(value, (1, self.shape[1], *[1] * (len(self.shape) - 2))))


def _legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    src, scale, shift, running_mean, running_variance = call.args
    c, op = _Channels(builder, src), relax.op
    mean = c.mean(src)
    centred = c.emit(op.subtract(src, c.row(mean)))
    variance = c.mean(c.emit(op.multiply(centred, centred)))
    factor = c.emit(op.multiply(op.rsqrt(op.add(variance, c.number(float(call.attrs["epsilon"])))), scale))
    dst = c.emit(op.add(op.multiply(centred, c.row(factor)), c.row(shift)))
    momentum = float(call.attrs["momentum"])
    correction = c.terms / max(1, c.terms - 1) if bool(call.attrs["unbiased"]) else 1.0

    def running(old: relax.Expr, new: relax.Expr, share: float) -> relax.Expr:
        kept = op.multiply(old, c.number(1 - momentum))
        return c.emit(op.add(kept, op.multiply(new, c.number(share))))

    running_mean = running(running_mean, mean, momentum)
    running_variance = running(running_variance, variance, momentum * correction)
    return relax.Tuple([dst, mean, variance, running_mean, running_variance])


def _legalize_backward(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    src, grad, mean, variance, scale = call.args
    c, op = _Channels(builder, src), relax.op
    inverse = c.emit(op.rsqrt(op.add(variance, c.number(float(call.attrs["epsilon"])))))
    normal = c.emit(op.multiply(op.subtract(src, c.row(mean)), c.row(inverse)))
    shift_grad = c.sum(grad)
    scale_grad = c.sum(c.emit(op.multiply(grad, normal)))
    share = c.number(1.0 / c.terms)
    common = op.add(
        c.row(c.emit(op.multiply(shift_grad, share))),
        op.multiply(normal, c.row(c.emit(op.multiply(scale_grad, share)))),
    )
    factor = c.row(c.emit(op.multiply(inverse, scale)))
    return relax.Tuple(
        [c.emit(op.multiply(op.subtract(grad, c.emit(common)), factor)), scale_grad, shift_grad]
    )


BATCH_NORM = Operator("batch_norm", "batch normalization in training", _type, _legalize)
BACKWARD = Operator(
    "batch_norm_backward", "gradients of batch normalization", _backward_type, _legalize_backward
)
