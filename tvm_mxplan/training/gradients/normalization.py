"""Gradients of norms and of dropout."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from tvm import relax
from tvm.relax import op

from ...operators.batch_norm import batch_norm_backward
from ...operators.dropout import dropout
from ...operators.layer_norm import layer_norm_backward
from .table import Backward, gradient_of


@gradient_of("mxplan.batch_norm")
def _batch_norm(back: Backward) -> list[relax.Expr]:
    """By the batch's statistics; the running ones have no gradients."""
    src, scale, *_ = back.operands
    mean, variance = (back.emit(relax.TupleGetItem(back.result, at)) for at in (1, 2))
    grad = back.emit(relax.TupleGetItem(back.grad, 0))
    epsilon = float(back.call.attrs["epsilon"])
    grads = back.emit(batch_norm_backward([src, grad, mean, variance, scale], epsilon))
    return [*(relax.TupleGetItem(grads, at) for at in range(3)), back.none(3), back.none(4)]


@gradient_of("nn.batch_norm")
def _frozen_batch_norm(back: Backward) -> list[relax.Expr]:
    """Of one that stays as in inference: a scale and a shift by statistics that do not change."""
    src, scale, _, mean, variance = back.operands
    attrs, shape = back.call.attrs, back.shape()
    axis = int(attrs.axis) % len(shape)
    channels = [-1 if at == axis else 1 for at in range(len(shape))]
    others = [at for at in range(len(shape)) if at != axis]
    grad = back.emit(relax.TupleGetItem(back.grad, 0))
    inverse = back.emit(op.rsqrt(op.add(variance, back.number(float(attrs.epsilon)))))
    normal = op.multiply(op.subtract(src, back.reshaped(mean, channels)), back.reshaped(inverse, channels))
    factor = op.multiply(inverse, scale) if bool(attrs.scale) else inverse
    return [
        op.multiply(grad, back.reshaped(factor, channels)),
        op.sum(op.multiply(grad, normal), others),
        op.sum(grad, others),
        back.none(3),
        back.none(4),
    ]


def _normalized(
    back: Backward, src: relax.Expr, grad: relax.Expr, axes: Sequence[int], epsilon: float
) -> tuple[relax.Expr, relax.Expr]:
    """The data with mean and deviation over ``axes`` removed, and the gradient of ``src``."""
    terms = math.prod(int(src.ty.shape.values[axis]) for axis in axes)
    share = back.number(1 / terms)

    def mean(value: relax.Expr) -> relax.Expr:
        return back.emit(op.multiply(op.sum(value, list(axes), keepdims=True), share))

    centred = back.emit(op.subtract(src, mean(src)))
    variance = mean(op.multiply(centred, centred))
    inverse = back.emit(op.rsqrt(op.add(variance, back.number(epsilon))))
    normal = back.emit(op.multiply(centred, inverse))
    grad = back.emit(grad)
    along = op.add(mean(grad), op.multiply(normal, mean(op.multiply(grad, normal))))
    return normal, op.multiply(op.subtract(grad, along), inverse)


def _affine(
    back: Backward, normal: relax.Expr, shape: Sequence[int], reduced: Sequence[int]
) -> list[relax.Expr]:
    """Gradients of a scale and a shift that apply to ``normal``."""
    grad = back.reshaped(back.grad, shape)
    found = [op.sum(op.multiply(grad, normal), list(reduced)), op.sum(grad, list(reduced))]
    return [back.reshaped(value, back.shape(1 + at)) for at, value in enumerate(found)]


@gradient_of("nn.layer_norm")
def _layer_norm(back: Backward) -> list[relax.Expr]:
    src, scale, _ = back.operands
    attrs, shape = back.call.attrs, back.shape()
    axes = sorted(int(axis) % len(shape) for axis in attrs.axes)
    if axes != list(range(axes[0], len(shape))):
        return _layer_norm_in_parts(back, axes)
    # The axes become one, and the others rows.
    last = math.prod(shape[axes[0] :])
    rows, grad_rows = (
        back.emit(back.reshaped(one, (math.prod(shape) // last, last))) for one in (src, back.grad)
    )
    if not bool(attrs.scale):
        scale = relax.const(np.ones(last), back.dtype)
    scales = back.emit(back.reshaped(scale, (last,)))
    grads = back.emit(layer_norm_backward(rows, grad_rows, scales, float(attrs.epsilon)))
    return [back.reshaped(relax.TupleGetItem(grads, at), back.shape(at)) for at in range(3)]


def _layer_norm_in_parts(back: Backward, axes: Sequence[int]) -> list[relax.Expr]:
    """Over axes that are not the last ones."""
    src, scale, _ = back.operands
    attrs, shape = back.call.attrs, back.shape()
    row = [extent if at in axes else 1 for at, extent in enumerate(shape)]
    grad = op.multiply(back.grad, back.reshaped(scale, row)) if bool(attrs.scale) else back.grad
    normal, data_grad = _normalized(back, src, grad, axes, float(attrs.epsilon))
    return [data_grad, *_affine(back, normal, shape, [at for at in range(len(shape)) if at not in axes])]


@gradient_of("nn.group_norm", "nn.instance_norm")
def _group_norm(back: Backward) -> list[relax.Expr]:
    src, scale, _ = back.operands
    attrs, shape = back.call.attrs, back.shape()
    axis = int(attrs.channel_axis) % len(shape)
    axes = sorted({int(at) % len(shape) for at in attrs.axes} - {axis})
    groups = int(attrs.num_groups) if "group" in back.call.op.name else shape[axis]
    # The channels become two axes, groups and what is inside of them.
    apart = (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])
    inner = [axis + 1, *(at + (at > axis) for at in axes)]
    row = [shape[axis] if at == axis else 1 for at in range(len(shape))]
    grad = op.multiply(back.grad, back.reshaped(scale, row)) if bool(attrs.scale) else back.grad
    parted = back.emit(back.reshaped(src, apart))
    normal, data_grad = _normalized(back, parted, back.reshaped(grad, apart), inner, float(attrs.epsilon))
    others = [at for at in range(len(shape)) if at != axis]
    return [back.reshaped(data_grad, shape), *_affine(back, back.reshaped(normal, shape), shape, others)]


@gradient_of("mxplan.dropout")
def _dropout(back: Backward) -> list[relax.Expr]:
    """The same elements of the gradient are dropped."""
    attrs = back.call.attrs
    return [
        dropout(back.grad, back.operands[1], float(attrs["rate"]), int(attrs["stream"])),
        back.none(1),
    ]
