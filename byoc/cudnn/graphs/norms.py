"""Layer normalization: rows of a matrix, seen as images of one pixel whose channels are normalized.

Batch normalization in training and its gradients: nodes with three results each.
"""

from __future__ import annotations

import math
from typing import Any

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError

from .tensors import GraphBuilder, Ints

_IMAGE = 4
"""The least axes of what a batch norm is of."""


def layer_norm(b: GraphBuilder, attrs: ir.LayerNormalization) -> dict[str, Any]:
    shape = b.shape(b.dst)
    rows, columns = math.prod(shape[:-1]), shape[-1]
    whole: Ints = (rows, columns, 1, 1)
    strides: Ints = (columns, 1, columns, columns)
    b.results(whole, strides)
    inputs = [b.stored(b.place("src"), whole, strides)]
    inputs += [b.vector(b.place(role), 1, 4) for role in ("scale", "shift")]
    b.node("layer_norm", [*inputs, b.number(attrs.epsilon)])
    return b.request(whole, strides)


def batch_norm(b: GraphBuilder, attrs: ir.BatchNormalizationTraining) -> dict[str, Any]:
    expect_inverse(attrs)
    src, *numbers = _images(b, "src"), *_channels(b, "scale", "shift")
    stored = [_images(b, "dst"), *_channels(b, "batch_mean", "batch_variance")]
    return b.results_of("batch_norm", [src, *numbers, b.number(attrs.epsilon)], stored)


def batch_norm_backward(b: GraphBuilder, attrs: ir.BatchNormalizationBackward) -> dict[str, Any]:
    expect_inverse(attrs)
    inputs = [_images(b, "gradient"), _images(b, "src"), *_channels(b, "scale", "mean", "variance")]
    stored = [_images(b, "dst"), *_channels(b, "scale_gradient", "shift_gradient")]
    return b.results_of("batch_norm_gradient", inputs, stored)


def expect_inverse(attrs: ir.BatchNormalizationTraining | ir.BatchNormalizationBackward) -> None:
    if not attrs.inverse:
        raise UnsupportedError("a variance, where cuDNN has 1 / deviation")


def _images(b: GraphBuilder, role: str) -> int:
    """A tensor of images, axes of extent 1 behind it as far as it has too few."""
    shape, strides = b.shape(b.place(role)), b.strides(b.place(role))
    missing = max(0, _IMAGE - len(shape))
    return b.stored(b.place(role), shape + (1,) * missing, strides + (shape[1] * strides[1],) * missing)


def _channels(b: GraphBuilder, *roles: str) -> list[int]:
    rank = max(_IMAGE, len(b.shape(b.place("src"))))
    return [b.vector(b.place(role), 1, rank) for role in roles]
