"""Sums of products at chosen positions: convolution, deconvolution, inner and matrix products.

All become one product of matrices in float32 by numpy's BLAS, of rows that are gathered from the source:

    rows [positions, taps x channels]  x  weights [taps x channels, outputs]  ->  [positions, outputs]

A tap that falls outside of the source reads a row of zeros.  On the operands of ``data`` the sums are exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tvm_mxplan.core.program import program as ir

from .drawing import Array

Operands = Mapping[str, Array]


def convolution(
    attrs: ir.Convolution | ir.Deconvolution, operands: Operands, out: Sequence[int], at: Array
) -> Array:
    """[positions, outputs] of a convolution without its bias.

    Parameters
    ----------
    out : spatial extents of the result.
    at : flat indices into [batch, *out].
    """
    src, weights = operands["src"], operands["weights"]
    groups = attrs.groups
    weights = weights if groups > 1 else weights[None]
    kernel = weights.shape[3:]
    channels, taps = src.shape[1], math.prod(kernel)
    rows = np.moveaxis(src, 1, -1).reshape(-1, channels)
    rows = np.concatenate([rows, np.zeros((1, channels), np.float32)])
    gathered = rows[_read_rows(attrs, src.shape, kernel, out, at).reshape(-1)]
    filters = weights.reshape(*weights.shape[:3], taps)
    if groups == 1:
        matrix = np.ascontiguousarray(filters[0].swapaxes(1, 2)).reshape(filters.shape[1], -1)
        return np.asarray(gathered.reshape(len(at), -1) @ matrix.T)
    _, outputs, inputs, _ = filters.shape
    if inputs == outputs == 1:
        each = gathered.reshape(len(at), taps, groups)
        return np.asarray(np.einsum("ptg,gt->pg", each, filters[:, 0, 0]))
    grouped = gathered.reshape(len(at), taps, groups, inputs).transpose(2, 0, 1, 3)
    matrices = filters.transpose(0, 3, 2, 1).reshape(groups, -1, outputs)
    result = np.matmul(grouped.reshape(groups, len(at), -1), matrices)
    return np.asarray(result.transpose(1, 0, 2).reshape(len(at), -1))


def backward_weights(
    attrs: ir.ConvolutionBackwardWeights, operands: Operands, kernel: Sequence[int], at: Sequence[Array]
) -> Array:
    """[groups, outputs, inputs, *kernel] of a gradient of weights.

    Parameters
    ----------
    at : groups, and outputs and inputs of each, that are worked out.
    """
    src, gradient = operands["src"], operands["gradient"]
    groups, outputs, inputs = at
    axes, out = len(kernel), gradient.shape[2:]
    reads = zip(src.shape[2:], out, kernel, attrs.strides, attrs.dilation, attrs.padding, strict=False)
    behind = [
        max(0, (rows - 1) * stride + (taps - 1) * step + 1 - extent - begin)
        for extent, rows, taps, stride, step, begin in reads
    ]
    before = attrs.padding[:axes]
    result = np.empty((*map(len, at), *kernel), np.float32)
    for number, group in enumerate(groups):
        rows = gradient[:, group * (gradient.shape[1] // attrs.groups) + outputs]
        rows = np.moveaxis(rows, 1, 0).reshape(len(outputs), -1)
        read = src[:, group * (src.shape[1] // attrs.groups) + inputs]
        read = np.pad(read, [(0, 0), (0, 0), *zip(before, behind, strict=True)])
        for tap in np.ndindex(*kernel):
            place = tuple(
                slice(t * step, t * step + (count - 1) * stride + 1, stride)
                for t, step, count, stride in zip(tap, attrs.dilation, out, attrs.strides, strict=True)
            )
            seen = np.moveaxis(read[(slice(None), slice(None), *place)], 1, -1).reshape(-1, len(inputs))
            result[(number, slice(None), slice(None), *tap)] = rows @ seen
    return result


def inner_product(operands: Operands, at: Array) -> Array:
    """[positions, outputs]; ``at`` are samples."""
    src, weights = operands["src"], operands["weights"]
    return src.reshape(src.shape[0], -1)[at] @ weights.reshape(weights.shape[0], -1).T


def matmul(operands: Operands, at: Array) -> Array:
    """[*batch, positions, columns]; ``at`` are rows, the same in every batch."""
    return np.asarray(np.matmul(operands["src"][..., at, :], operands["weights"]))


def _read_rows(
    attrs: ir.Convolution | ir.Deconvolution,
    src: Sequence[int],
    kernel: Sequence[int],
    out: Sequence[int],
    at: Array,
) -> Array:
    """[positions, taps]: which row of the source each tap reads, the last row where it reads padding."""
    extents = src[2:]
    batch, *places = np.unravel_index(at, (src[0], *out))
    row: Array = batch.reshape(-1, *[1] * len(kernel))
    inside = np.ones_like(row, bool)
    for axis, (size, taps, place) in enumerate(zip(extents, kernel, places, strict=True)):
        begin, stride, step = attrs.padding[axis], attrs.strides[axis], attrs.dilation[axis]
        if isinstance(attrs, ir.Convolution):
            read = place[:, None] * stride - begin + np.arange(taps) * step
            valid = (read >= 0) & (read < size)
        else:
            wide = place[:, None] + begin - np.arange(taps) * step
            read = wide // stride
            valid = (wide % stride == 0) & (read >= 0) & (read < size)
        shape = [len(at), *(taps if other == axis else 1 for other in range(len(kernel)))]
        row = row * size + read.reshape(shape)
        inside = inside & valid.reshape(shape)
    zeros = math.prod((src[0], *extents))
    return np.where(inside, row, zeros).reshape(len(at), -1)
