"""Translates products: constants for each channel behind them become part of filters and bias.

Filters are stored as engines read them (``layout_rules.filters_layout``).  A product with a constant matrix
is a convolution of images of one pixel: cuDNN has engines without code generation for those, and none for
products.  A product of two tensors is one as well in float32 without TF32 (``in_groups``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from tvm import relax

from tvm_mxplan.byoc.composite import Composite, ints
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.passes.relax_types import constant_of, is_constant, permutation_of


@dataclass(frozen=True)
class _Parts:
    """A composite taken apart: scale * product + bias, constants for each channel.

    ``bias`` is None where nothing is added.
    """

    product: relax.Call
    scale: np.ndarray
    bias: np.ndarray | None


def _parts(c: Composite, axis: int) -> _Parts:
    call = c.root
    channels = static_shape(c.shape)[axis]
    scale, bias, adds = np.ones(channels), np.zeros(channels), False
    while (operator := str(call.op.name).removeprefix("relax.")) in ("add", "subtract", "multiply"):
        left, right = (c.definition(arg) for arg in call.args)
        inner, other = (left, right) if is_constant(right) else (right, left)
        # An inner constant goes through all operators that stand around it.
        numbers = np.asarray(constant_of(other), "float64").reshape(-1)
        if operator == "multiply":
            scale = scale * numbers
        else:
            adds = True
            bias = bias + (scale if operator == "add" else -scale) * numbers
        call = inner
    return _Parts(call, scale, bias if adds else None)


def convolution(c: Composite) -> int:
    parts = _parts(c, 1)
    attrs = parts.product.attrs
    groups = int(attrs.groups)
    made = ir.Convolution(ints(attrs.strides), ints(attrs.padding), ints(attrs.dilation), groups)
    filters = _scaled(_filters(c, parts), parts.scale.reshape(-1, 1))
    src = c.value(parts.product.args[0])
    return _emit(c, made, src, _stored(c, filters, groups), parts, static_shape(c.shape))


def deconvolution(c: Composite) -> int:
    parts = _parts(c, 1)
    attrs = parts.product.attrs
    groups = int(attrs.groups)
    made = ir.Deconvolution(ints(attrs.strides), ints(attrs.padding), ints(attrs.dilation), groups)
    filters = _filters(c, parts)  # [I, O / groups, k...]
    scale = np.repeat(parts.scale.reshape(groups, -1), filters.shape[0] // groups, axis=0)
    stored = _stored(c, _scaled(filters, scale), groups, True)
    return _emit(c, made, c.value(parts.product.args[0]), stored, parts, static_shape(c.shape))


def dense(c: Composite) -> int:
    shape = static_shape(c.shape)
    parts = _parts(c, len(shape) - 1)
    factor = c.definition(parts.product.args[1])
    transposed = isinstance(factor, relax.Call)
    weights = constant_of(c.definition(factor.args[0]) if transposed else factor)
    assert weights is not None
    if transposed:
        weights = weights.transpose(permutation_of(factor))
    depth, columns = weights.shape
    rows = math.prod(shape[:-1])
    src = c.builder.reshape(c.value(parts.product.args[0]), (rows, depth, 1, 1))
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    filters = _stored(c, _scaled(weights.T[:, :, None, None], parts.scale.reshape(-1, 1)), 1)
    dst = _emit(c, attrs, src, filters, parts, (rows, columns, 1, 1))
    return c.builder.reshape(dst, shape)


def in_groups(c: Composite, src: int, weights: int) -> int:
    """src [M, ..., K] x weights [..., K, N] -> [M, ..., N], as a convolution with a group for each batch.

    Its images are rows of one pixel, [M, groups * K, 1, 1], its filters [groups, N, K, 1, 1].  A tensor for
    all batches of the other takes one group: more rows, wherever they stand, or more filters.
    """
    source, factor = (static_shape(c.builder.values[number].shape) for number in (src, weights))
    (rows, *batches, depth), (*others, _, columns) = source, factor
    count, wide = math.prod(batches), math.prod(others)
    groups = count if batches == others else 1
    if groups == 1 and min(count, wide) > 1:
        raise UnsupportedError(f"a product of batches {batches} and {others}: both are broadcast")
    images = count * rows // groups if wide == groups else rows
    last = len(factor) - 1
    turned = c.builder.permute(weights, (*range(last - 1), last, last - 1))
    filters = (wide // groups * columns, depth, 1, 1)
    operands = [
        ("src", c.builder.reshape(src, (images, groups * depth, 1, 1))),
        ("weights", c.builder.reshape(turned, (groups, *filters) if groups > 1 else filters)),
    ]
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), groups)
    dtype = c.builder.values[src].dtype
    dst = c.builder.step("convolution", attrs, (images, wide * columns, 1, 1), operands, dtype)
    return c.builder.reshape(dst, (rows, *(others if wide > 1 else batches), columns))


def _filters(c: Composite, parts: _Parts) -> np.ndarray:
    filters = constant_of(c.definition(parts.product.args[1]))
    assert filters is not None
    return filters


def _scaled(filters: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Filters [A, B, ...] times numbers [A, B], or [A, 1], rounded once."""
    if (scale == 1).all():
        return filters
    numbers = scale.reshape(*scale.shape, *(1,) * (filters.ndim - 2))
    with np.errstate(over="ignore"):
        scaled = (filters.astype("float64") * numbers).astype(filters.dtype)
    if np.isfinite(scaled).all() or not np.isfinite(filters).all():
        return scaled
    raise UnsupportedError(f"filters times their scale leave the range of {filters.dtype}")


def _stored(c: Composite, filters: np.ndarray, groups: int, transposed: bool = False) -> int:
    """Filters [A, B, k...] as a constant [G?, A, k..., B], seen as [G?, O, I, k...].

    A are output channels, or a transposed convolution's inputs.
    """
    axes = filters.ndim - 2
    last = np.ascontiguousarray(filters.transpose(0, *range(2, 2 + axes), 1))
    seen = (0, 1 + axes, *range(1, 1 + axes))
    if transposed:
        seen = (1 + axes, 0, *range(1, 1 + axes))
    if groups > 1:
        last = last.reshape(groups, last.shape[0] // groups, *last.shape[1:])
        seen = (0, *(1 + axis for axis in seen))
    return c.builder.permute(c.builder.constant(last), seen)


def _emit(
    c: Composite,
    attrs: ir.Convolution | ir.Deconvolution,
    src: int,
    filters: int,
    parts: _Parts,
    shape: tuple[int, ...],
) -> int:
    dtype = c.builder.values[src].dtype
    operands = [("src", src), ("weights", filters)]
    if parts.bias is not None:
        operands.append(("bias", c.builder.constant(parts.bias.astype(numpy_type(dtype)))))
    return c.builder.step("convolution", attrs, shape, operands, dtype)
