"""Batch normalization in training and its gradients, and gradients of layer normalization and of pools."""

from __future__ import annotations

from math import prod

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..estimate import UNIT_ROUNDOFF, Array, Estimate, gamma
from .operands import Operands
from .windows import pad_for, taps

_CHAIN = 32
"""Numbers that the statistics of a batch may be added up of one after another in float32.

What is normalised decides the gates of a network.  One running sum of n numbers around 1 errs by about
0.3 * sqrt(n) * u; sums of more than these are held to such as are made of parts, in pairs or in float64.
"""


def batch_normalization(attrs: ir.BatchNormalizationTraining, operands: Operands) -> dict[str, Estimate]:
    src, axes, terms = operands.src, _others(operands.src), _terms(operands.src)
    scale, shift = operands.channels("scale"), operands.channels("shift")
    mean = src.mean(axes, keepdims=True)
    summed = gamma(min(terms, _CHAIN))
    mean_error = (summed + UNIT_ROUNDOFF) * np.abs(src).mean(axes, keepdims=True)
    centred = src - mean
    centred_error = mean_error + UNIT_ROUNDOFF * np.abs(centred)
    variance = np.square(centred).mean(axes, keepdims=True)
    passed = (2 * np.abs(centred) * centred_error + centred_error**2).mean(axes, keepdims=True)
    variance_error = (summed + 2 * UNIT_ROUNDOFF) * variance + passed
    rest = variance + attrs.epsilon
    factor = 1 / np.sqrt(rest)
    factor_error = factor * (0.5 * variance_error / rest + 4 * UNIT_ROUNDOFF)
    error = centred_error * factor + np.abs(centred) * factor_error + centred_error * factor_error
    # However it is arranged: x * factor + (shift - mean * factor), say.
    size = (np.abs(src) + np.abs(mean)) * factor * np.abs(scale) + np.abs(shift)
    value = centred * factor * scale + shift
    if attrs.inverse:
        variance, variance_error = factor, factor_error
    return {
        "dst": Estimate(value, error * np.abs(scale) + 8 * UNIT_ROUNDOFF * size),
        "batch_mean": Estimate(mean.reshape(-1), mean_error.reshape(-1)),
        "batch_variance": Estimate(variance.reshape(-1), variance_error.reshape(-1)),
    }


def batch_normalization_backward(
    attrs: ir.BatchNormalizationBackward, operands: Operands
) -> dict[str, Estimate]:
    src, gradient = operands.src, operands["gradient"]
    axes, terms = _others(src), _terms(src)
    mean, variance, scale = (operands.channels(role) for role in ("mean", "variance", "scale"))
    inverse = variance if attrs.inverse else 1 / np.sqrt(variance + attrs.epsilon)
    # Differences from the mean come first, so that numbers far from 0 lose nothing.
    normal = (src - mean) * inverse
    along = (gradient * normal).sum(axes, keepdims=True)
    along_error = gamma(terms + 8) * np.abs(gradient * normal).sum(axes, keepdims=True)
    total = gradient.sum(axes, keepdims=True)
    total_error = gamma(terms) * np.abs(gradient).sum(axes, keepdims=True)
    value = (gradient - (total + normal * along) / terms) * inverse * scale
    size = np.abs(gradient) + (np.abs(total) + np.abs(normal * along)) / terms
    error = (total_error + np.abs(normal) * along_error) / terms + 12 * UNIT_ROUNDOFF * size
    return {
        "dst": Estimate(value, error * np.abs(inverse * scale)),
        "scale_gradient": Estimate(along.reshape(-1), along_error.reshape(-1)),
        "shift_gradient": Estimate(total.reshape(-1), total_error.reshape(-1)),
    }


def layer_normalization_backward(
    attrs: ir.LayerNormalizationBackward, operands: Operands
) -> dict[str, Estimate]:
    """By statistics of the rows, which are worked out with the errors of their sums."""
    src, gradient, scale = operands.src, operands["gradient"], operands["scale"]
    last, rows = src.shape[-1], tuple(range(src.ndim - 1))
    mean = src.mean(-1, keepdims=True)
    mean_error = (gamma(last) + UNIT_ROUNDOFF) * np.abs(src).mean(-1, keepdims=True)
    centred = src - mean
    centred_error = mean_error + UNIT_ROUNDOFF * np.abs(centred)
    variance = np.square(centred).mean(-1, keepdims=True)
    passed = (2 * np.abs(centred) * centred_error + centred_error**2).mean(-1, keepdims=True)
    rest = variance + attrs.epsilon
    inverse = 1 / np.sqrt(rest)
    off = 0.5 * ((gamma(last) + 2 * UNIT_ROUNDOFF) * variance + passed) / rest + 4 * UNIT_ROUNDOFF
    normal = centred * inverse
    normal_error = centred_error * inverse + np.abs(normal) * off

    def mean_of(value: Array, error: Array) -> tuple[Array, Array]:
        return value.mean(-1, keepdims=True), (
            error.mean(-1, keepdims=True) + gamma(last + 4) * np.abs(value).mean(-1, keepdims=True)
        )

    inner = gradient * scale
    total, total_error = mean_of(inner, UNIT_ROUNDOFF * np.abs(inner))
    along, along_error = mean_of(inner * normal, np.abs(inner) * normal_error)
    value = (inner - total - normal * along) * inverse
    size = np.abs(inner) + np.abs(total) + np.abs(normal * along)
    error = total_error + np.abs(normal) * along_error + normal_error * np.abs(along)
    error = (error + 8 * UNIT_ROUNDOFF * size) * inverse + np.abs(value) * off
    count = src.size // last
    product = gradient * normal
    of_scale = gamma(count + 4) * np.abs(product).sum(rows) + (np.abs(gradient) * normal_error).sum(rows)
    return {
        "dst": Estimate(value, error),
        "scale_gradient": Estimate(product.sum(rows), of_scale),
        "shift_gradient": Estimate(gradient.sum(rows), gamma(count) * np.abs(gradient).sum(rows)),
    }


def pooling_backward(attrs: ir.PoolingBackward, operands: Operands) -> Estimate:
    src, gradient = operands.src, operands["gradient"]
    out, window = gradient.shape[2:], (attrs.kernel, attrs.strides, attrs.dilation)
    if attrs.algorithm == "max":
        return Estimate(*_of_largest(attrs, src, gradient))
    count: Array | int = prod(attrs.kernel)
    if attrs.algorithm == "avg_exclude_padding":
        ones = pad_for(np.ones_like(src), out, *window, attrs.padding, 0.0)
        count = sum(seen for _, seen in taps(ones, out, *window))
    share = gradient / count
    spread, size = (_spread(attrs, src, array) for array in (share, np.abs(share)))
    return Estimate(spread, gamma(prod(attrs.kernel) + 2) * size)


def _of_largest(attrs: ir.PoolingBackward, src: Array, gradient: Array) -> tuple[Array, Array]:
    """Gradients go to the first of the largest elements of each window."""
    out, window = gradient.shape[2:], (attrs.kernel, attrs.strides, attrs.dilation)
    padded = pad_for(src, out, *window, attrs.padding, -np.inf)
    largest = np.full(gradient.shape, -np.inf)
    where = np.zeros(gradient.shape, np.int64)
    for number, (_, seen) in enumerate(taps(padded, out, *window)):
        more = seen > largest
        largest, where = np.where(more, seen, largest), np.where(more, number, where)
    chosen = [gradient * (where == number) for number in range(prod(attrs.kernel))]
    spread = _spread(attrs, src, chosen)
    size = _spread(attrs, src, [np.abs(part) for part in chosen])
    return spread, gamma(prod(attrs.kernel)) * size


def _spread(attrs: ir.PoolingBackward, src: Array, parts: Array | list[Array]) -> Array:
    """Adds up what each tap of the windows hands back; ``parts`` has one array for each tap, or for all."""
    out, window = _result(parts), (attrs.kernel, attrs.strides, attrs.dilation)
    full = pad_for(np.zeros_like(src), out, *window, attrs.padding, 0.0)
    for number, (_, place) in enumerate(taps(full, out, *window)):
        place += parts[number] if isinstance(parts, list) else parts
    inner = tuple(
        slice(front, front + count) for front, count in zip(attrs.padding, src.shape[2:], strict=True)
    )
    return full[(slice(None), slice(None), *inner)]


def _result(parts: Array | list[Array]) -> tuple[int, ...]:
    return (parts[0] if isinstance(parts, list) else parts).shape[2:]


def _others(src: Array) -> tuple[int, ...]:
    return tuple(axis for axis in range(src.ndim) if axis != 1)


def _terms(src: Array) -> int:
    return src.size // src.shape[1]
