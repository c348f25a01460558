"""Gradients of activations and of functions of one number."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import op

from ...operators.gate import gate
from .table import Backward, gradient_of


@gradient_of("nn.relu")
def _relu(back: Backward) -> list[relax.Expr]:
    """By the result, which is kept anyway; nothing passes at 0, as in PyTorch and in oneDNN."""
    return [gate(back.result, back.emit(back.grad), "gt", 0)]


@gradient_of("nn.leakyrelu")
def _leaky_relu(back: Backward) -> list[relax.Expr]:
    slope = op.multiply(back.grad, back.number(float(back.call.attrs.alpha)))
    return [op.where(op.greater(back.operands[0], back.number(0)), back.grad, slope)]


@gradient_of("nn.prelu")
def _prelu(back: Backward) -> list[relax.Expr]:
    data, slopes = back.operands
    shape, axis = back.shape(), int(back.call.attrs.axis) % len(back.shape())
    row = back.reshaped(slopes, [-1 if at == axis else 1 for at in range(len(shape))])
    positive = back.emit(op.greater(data, back.number(0)))
    data_grad = op.where(positive, back.grad, op.multiply(back.grad, row))
    each = back.emit(op.where(positive, back.number(0), op.multiply(back.grad, data)))
    others = [at for at in range(len(shape)) if at != axis]
    slopes_grad = op.sum(each, others if back.shape(1) != (1,) else list(range(len(shape))))
    return [data_grad, back.reshaped(slopes_grad, back.shape(1))]


@gradient_of("clip")
def _clip(back: Backward) -> list[relax.Expr]:
    """Passes where the operand lies between the bounds and on none, as in PyTorch; bounds have no gradients.

    An operand is below the upper bound where it is at most the number before it.
    """
    data, grad = back.operands[0], back.emit(back.grad)
    low, high = (float(bound.value) for bound in back.operands[1:])
    below = float(np.nextafter(np.array(high, back.dtype), np.array(-np.inf, back.dtype)))
    for algorithm, bound, number in (("gt", low, low), ("le", high, below)):
        if math.isfinite(bound):
            grad = back.emit(gate(data, grad, algorithm, number))
    return [grad, back.none(1), back.none(2)]


@gradient_of("abs")
def _abs(back: Backward) -> list[relax.Expr]:
    """Nothing passes at 0."""
    return [op.multiply(back.grad, op.sign(back.operands[0]))]


@gradient_of("maximum", "minimum")
def _extremum(back: Backward) -> list[relax.Expr]:
    """Goes to the operand that is the result; equal ones share it."""
    left, right = back.operands
    grad = back.emit(back.grad)
    half = back.emit(op.multiply(grad, back.number(0.5)))
    shared = back.emit(op.where(op.equal(left, right), half, back.number(0)))
    larger = op.greater if back.call.op.name == "relax.maximum" else op.less
    return [
        back.collapsed(op.where(larger(one, other), grad, shared), at)
        for at, (one, other) in enumerate(((left, right), (right, left)))
    ]


@gradient_of("astype")
def _astype(back: Backward) -> list[relax.Expr]:
    """Of real numbers; whole numbers and conditions have no gradients."""
    return [op.astype(back.grad, back.dtype) if "float" in back.dtype else back.none(0)]


@gradient_of("grad.no_grad")
def _stopped(back: Backward) -> list[relax.Expr]:
    return [back.none(0)]


@gradient_of("nn.gelu")
def _gelu(back: Backward) -> list[relax.Expr]:
    data = back.operands[0]
    inner = op.multiply(data, back.number(1 / math.sqrt(2)))
    share = op.multiply(op.add(op.erf(inner), back.number(1)), back.number(0.5))
    bell = op.exp(op.multiply(op.multiply(data, data), back.number(-0.5)))
    slope = op.multiply(op.multiply(data, bell), back.number(1 / math.sqrt(2 * math.pi)))
    return [op.multiply(back.grad, op.add(share, slope))]


@gradient_of("nn.gelu_tanh")
def _gelu_tanh(back: Backward) -> list[relax.Expr]:
    data, factor, cubic = back.operands[0], math.sqrt(2 / math.pi), 0.044715
    square = back.emit(op.multiply(data, data))
    inner = op.multiply(data, op.add(op.multiply(square, back.number(cubic * factor)), back.number(factor)))
    tanh = back.emit(op.tanh(inner))
    share = op.multiply(op.add(tanh, back.number(1)), back.number(0.5))
    steep = op.subtract(back.number(1), op.multiply(tanh, tanh))
    slope = op.add(op.multiply(square, back.number(3 * cubic * factor)), back.number(factor))
    rest = op.multiply(op.multiply(data, op.multiply(steep, slope)), back.number(0.5))
    return [op.multiply(back.grad, op.add(share, rest))]


@gradient_of("nn.softplus")
def _softplus(back: Backward) -> list[relax.Expr]:
    scaled = op.multiply(back.operands[0], back.number(float(back.call.attrs.beta)))
    return [op.multiply(back.grad, op.sigmoid(scaled))]


@gradient_of("nn.selu")
def _selu(back: Backward) -> list[relax.Expr]:
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    below = op.multiply(back.grad, op.add(back.result, back.number(alpha * scale)))
    above = op.multiply(back.grad, back.number(scale))
    return [op.where(op.greater(back.operands[0], back.number(0)), above, below)]


@gradient_of("erf")
def _erf(back: Backward) -> list[relax.Expr]:
    data = back.operands[0]
    bell = op.exp(op.negative(op.multiply(data, data)))
    return [op.multiply(back.grad, op.multiply(bell, back.number(2 / math.sqrt(math.pi))))]


@gradient_of("square")
def _square(back: Backward) -> list[relax.Expr]:
    return [op.multiply(back.grad, op.multiply(back.operands[0], back.number(2)))]


@gradient_of("rsqrt")
def _rsqrt(back: Backward) -> list[relax.Expr]:
    cube = op.multiply(back.result, op.multiply(back.result, back.result))
    return [op.multiply(back.grad, op.multiply(cube, back.number(-0.5)))]


@gradient_of("tan")
def _tan(back: Backward) -> list[relax.Expr]:
    return [op.multiply(back.grad, op.add(back.number(1), op.multiply(back.result, back.result)))]


@gradient_of("sinh")
def _sinh(back: Backward) -> list[relax.Expr]:
    return [op.multiply(back.grad, op.cosh(back.operands[0]))]


@gradient_of("cosh")
def _cosh(back: Backward) -> list[relax.Expr]:
    return [op.multiply(back.grad, op.sinh(back.operands[0]))]


@gradient_of("atan")
def _atan(back: Backward) -> list[relax.Expr]:
    data = back.operands[0]
    return [op.divide(back.grad, op.add(back.number(1), op.multiply(data, data)))]


@gradient_of("floor", "ceil", "round", "sign", "trunc")
def _flat(back: Backward) -> list[relax.Expr]:
    """Steps, which are flat wherever they have a slope."""
    return [op.zeros_like(back.operands[0])]
