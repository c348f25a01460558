"""Convolution, deconvolution and the depthwise post-op: a matrix product for each tap of the window."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tvm_mxplan.core.policies import ConvolutionAlgorithm
from tvm_mxplan.core.program import program as ir

from ...estimate import Array, Estimate, gamma
from ..operands import Operands, absolute
from . import pad_for, reach, taps, winograd


def convolution(attrs: ir.Convolution, operands: Operands) -> Estimate:
    def linear(src: Array, weights: Array) -> Array:
        return _correlate(attrs, src, weights, operands.shape)

    terms = prod(_grouped(operands["weights"], attrs.groups).shape[2:])
    return _with_bias(linear, operands, terms, attrs.algorithm)


def before_depthwise(attrs: ir.Convolution, operands: Operands) -> tuple[int, ...]:
    """Shape of what a depthwise post-op reads: the convolution's own result."""
    src, axes = operands.src.shape, len(attrs.strides)
    spans = reach(_grouped(operands["weights"], attrs.groups).shape[3:], attrs.dilation)
    sizes = [
        (src[2 + i] + attrs.padding[i] + attrs.padding[i + axes] - spans[i]) // attrs.strides[i] + 1
        for i in range(axes)
    ]
    return (*operands.shape[:2], *sizes)


def depthwise(post_op: ir.DepthwisePostOp, estimate: Estimate, operands: Operands) -> Estimate:
    """A depthwise convolution of an estimate, whose error passes through by the weights' absolute values."""
    axes, channels = len(operands.shape) - 2, operands.shape[1]
    padding = (post_op.padding,) * (2 * axes)
    attrs = ir.Convolution((post_op.stride,) * axes, padding, (1,) * axes, channels)

    def linear(src: Array, weights: Array) -> Array:
        return _correlate(attrs, src, weights, operands.shape)

    weights = operands["depthwise_weights"]
    value, size = linear(estimate.value, weights), linear(np.abs(estimate.value), np.abs(weights))
    if operands.get("depthwise_bias") is not None:
        bias = operands.channels("depthwise_bias")
        value, size = value + bias, size + np.abs(bias)
    passed = linear(np.broadcast_to(estimate.error, estimate.value.shape), np.abs(weights))
    terms = prod(weights.shape[2:])
    return Estimate(value, gamma(terms + 1) * (size + passed) + passed)


def _correlate(attrs: ir.Convolution, src: Array, weights: Array, shape: tuple[int, ...]) -> Array:
    weights = _grouped(weights, attrs.groups)
    kernel, out = weights.shape[3:], shape[2:]
    begin = attrs.padding[: len(kernel)]
    padded = pad_for(src, out, kernel, attrs.strides, attrs.dilation, begin, 0.0)
    total: Array | None = None
    for tap, seen in taps(padded, out, kernel, attrs.strides, attrs.dilation):
        part = _product(weights[(slice(None),) * 3 + tap], seen, attrs.groups)
        total = part if total is None else np.add(total, part, out=total)
    assert total is not None
    return total.reshape(shape)


def deconvolution(attrs: ir.Deconvolution, operands: Operands) -> Estimate:
    def scatter(src: Array, weights: Array) -> Array:
        weights = _grouped(weights, attrs.groups)
        kernel, out = weights.shape[3:], operands.shape[2:]
        begin = attrs.padding[: len(kernel)]
        spans = reach(kernel, attrs.dilation)
        sizes = [
            max((size - 1) * stride + span, front + count)
            for size, stride, span, front, count in zip(
                src.shape[2:], attrs.strides, spans, begin, out, strict=True
            )
        ]
        full = np.zeros((*operands.shape[:2], *sizes), src.dtype)
        for tap, place in taps(full, src.shape[2:], kernel, attrs.strides, attrs.dilation):
            place += _product(weights[(slice(None),) * 3 + tap], src, attrs.groups).reshape(place.shape)
        inner = tuple(slice(front, front + count) for front, count in zip(begin, out, strict=True))
        return full[(slice(None), slice(None), *inner)]

    terms = prod(_grouped(operands["weights"], attrs.groups).shape[2:])
    return _with_bias(scatter, operands, terms, attrs.algorithm)


def backward_weights(attrs: ir.ConvolutionBackwardWeights, operands: Operands) -> Estimate:
    """Of each tap, the products of what its windows see with the gradients of what they gave."""
    groups, gradient = attrs.groups, operands["gradient"]
    shape = operands.shape if groups > 1 else (1, *operands.shape)
    kernel, out = shape[3:], gradient.shape[2:]

    def products(src: Array, gradient: Array) -> Array:
        begin = attrs.padding[: len(kernel)]
        padded = pad_for(src, out, kernel, attrs.strides, attrs.dilation, begin, 0.0)
        rows = gradient.reshape(len(gradient), groups, shape[1], -1)
        total = np.empty(shape, src.dtype)
        for tap, seen in taps(padded, out, kernel, attrs.strides, attrs.dilation):
            columns = seen.reshape(len(src), groups, shape[2], -1)
            total[(slice(None),) * 3 + tap] = np.matmul(rows, columns.swapaxes(2, 3)).sum(0)
        return total.reshape(operands.shape)

    size = products(absolute(operands.src), absolute(gradient)).astype(np.float64)
    terms = len(gradient) * prod(out)
    return Estimate(products(operands.src, gradient), gamma(terms + 1) * size)


def _grouped(weights: Array, groups: int) -> Array:
    """Weights as [G, O, I, k...]."""
    return weights if groups > 1 else weights[None]


def _product(weights: Array, src: Array, groups: int) -> Array:
    """[N, G * O, P] of weights [G, O, I] and src [N, G * I, ...]."""
    count, outputs, inputs = weights.shape
    columns = src.reshape(src.shape[0], count, inputs, -1)
    result = weights * columns if inputs == 1 else np.matmul(weights, columns)
    return result.reshape(src.shape[0], count * outputs, -1)


def _with_bias(
    linear: Callable[[Array, Array], Array],
    operands: Operands,
    terms: int,
    algorithm: ConvolutionAlgorithm,
) -> Estimate:
    """``linear`` of src and weights plus the bias; its error from the same sum of absolute values.

    In an algorithm that is not a direct sum those reach further.
    """
    value = linear(operands.src, operands["weights"])
    size = linear(absolute(operands.src), absolute(operands["weights"])).astype(np.float64)
    flushed = 0.0
    if algorithm != "direct":
        flushed = winograd.flushed(algorithm, operands["weights"])
        size = winograd.reach(algorithm, operands["weights"].shape[-1], size)
    if operands.get("bias") is not None:
        bias = operands.channels("bias")
        value, size = value + bias, size + np.abs(bias)
    return Estimate(value, gamma(terms + 1) * size + flushed)
