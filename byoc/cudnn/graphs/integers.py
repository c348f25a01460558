"""Integers that stand for real numbers, scale * (integer - zero point), on either side of a step.

Whether an engine that writes integers rounds, and to where it saturates, cuDNN says nowhere.  So graphs round
and cut off themselves: what is converted at the end are whole numbers of the type.  A number half way between
two integers becomes the larger one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError

from .tensors import GraphBuilder


def rounded(b: GraphBuilder, x: int) -> int:
    """The whole number next to ``x``."""
    return b.pointwise("FLOOR", b.pointwise("ADD", x, b.number(0.5)))


def integers(b: GraphBuilder, x: int, rank: int) -> int:
    """The integers of the step's result that stand for ``x``."""
    x = b.pointwise("DIV", x, b.single(b.place("dst_scale"), rank))
    if b.has("dst_zero_point"):
        x = b.pointwise("ADD", x, b.single(b.place("dst_zero_point"), rank))
    limits = np.iinfo(b.value(b.dst).dtype)
    x = b.pointwise("MAX", rounded(b, x), b.number(float(limits.min)))
    return b.pointwise("MIN", x, b.number(float(limits.max)))


def quantization(b: GraphBuilder, _attrs: ir.Quantization) -> dict[str, Any]:
    """A conversion of real numbers into integers, back, or of integers into others, of one scale each."""
    if any(b.has(role) and b.shape(b.place(role)) != (1,) for role in ir.SCALE_ROLES):
        raise UnsupportedError("a scale for each of several channels, expected one for all")
    if b.value(b.place("src")).layout != b.value(b.dst).layout:
        raise UnsupportedError("integers in another layout than their real numbers")
    elements = math.prod(b.shape(b.dst))
    shape, strides = (1, elements, 1, 1), (elements, 1, elements, elements)
    b.results(shape, strides)
    x = b.stored(b.place("src"), shape, strides)
    if b.has("src_zero_point"):
        x = b.pointwise("SUB", x, b.single(b.place("src_zero_point"), len(shape)))
    if b.has("src_scale"):
        x = b.pointwise("MUL", x, b.single(b.place("src_scale"), len(shape)))
    if b.has("dst_scale"):
        integers(b, x, len(shape))
    return b.request(shape, strides)
