"""Translates products: constants for each channel behind them become part of filters and bias.

Filters are stored as engines read them (``layout_rules.filters_layout``).  A product with a constant matrix
is a convolution of images of one pixel: cuDNN has engines without code generation for those, and none for
products.  A product of two tensors is one as well in float32 without TF32 (``in_groups``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
from tvm import relax

from tvm_mxplan.byoc.composite import Composite, ints
from tvm_mxplan.byoc.rewrites.quantized import composites as quantized
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.operators.convolution_gradients import Window
from tvm_mxplan.passes.relax_types import constant_of, is_constant, permutation_of

from .layout_rules import filters_layout

_ROUNDED = 0.501
"""Of the distance between two numbers of a type, as rounding to the nearest changes one at most."""


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
    src = c.value(parts.product.args[0])
    filters = _filters(c, parts)
    if filters is None:
        given = c.definition(parts.product.args[1])
        if isinstance(given, relax.Call):
            numbers = constant_of(given.args[0])
            assert numbers is not None
            read = _of_integers(c, given, numbers, int(given.attrs.axis), groups)
        else:
            read = _turned(c, c.value(given), groups)
        return _emit(c, made, src, read, parts, static_shape(c.shape))
    scaled = _scaled(filters, parts.scale.reshape(-1, 1), (filters.shape[0], 1, 1))
    return _emit(c, made, src, stored_filters(c, scaled, groups), parts, static_shape(c.shape))


def deconvolution(c: Composite) -> int:
    parts = _parts(c, 1)
    attrs = parts.product.attrs
    groups = int(attrs.groups)
    made = ir.Deconvolution(ints(attrs.strides), ints(attrs.padding), ints(attrs.dilation), groups)
    src = c.value(parts.product.args[0])
    filters = _filters(c, parts)  # [I, O / groups, k...]
    if filters is None:
        varying = _turned(c, c.value(parts.product.args[1]), groups, True)
        return _emit(c, made, src, varying, parts, static_shape(c.shape))
    inputs = filters.shape[0] // groups
    scale = np.repeat(parts.scale.reshape(groups, -1), inputs, axis=0)
    scaled = _scaled(filters, scale, (groups, inputs, filters.shape[1]))
    stored = stored_filters(c, scaled, groups, True)
    return _emit(c, made, src, stored, parts, static_shape(c.shape))


def backward_data(c: Composite) -> int:
    """A transposed convolution by the same filters."""
    window = Window.of(c.root)
    made = ir.Deconvolution(window.strides, window.padding, window.dilation, window.groups)
    gradient, filters = (c.value(arg) for arg in c.root.args)
    turned = _turned(c, filters, window.groups, True)
    return c.emit("backward_data", made, ("src", gradient), ("weights", turned))


def backward_weights(c: Composite) -> int:
    """Filters as engines write them, channels last, turned to where they are read."""
    window = Window.of(c.root)
    groups, shape = window.groups, static_shape(c.shape)
    src, gradient = (c.value(arg) for arg in c.root.args)
    made = ir.ConvolutionBackwardWeights(window.strides, window.padding, window.dilation, groups)
    apart = shape if groups == 1 else (groups, shape[0] // groups, *shape[1:])
    dtype = c.builder.values[src].dtype
    dst = c.builder.step("backward_weights", made, apart, [("src", src), ("gradient", gradient)], dtype)
    layout = filters_layout(len(apart), groups > 1)
    c.builder.values[dst] = replace(c.builder.values[dst], layout=layout)
    return c.builder.reshape(c.builder.plain_copy(dst), shape)


def dense(c: Composite) -> int:
    shape = static_shape(c.shape)
    parts = _parts(c, len(shape) - 1)
    factor = c.definition(parts.product.args[1])
    order: Sequence[int] = (0, 1)
    if isinstance(factor, relax.Call) and factor.op.name == "relax.permute_dims":
        order = permutation_of(factor)
        factor = c.definition(factor.args[0])
    whole = isinstance(factor, relax.Call)
    weights = constant_of(factor.args[0] if whole else factor)
    assert weights is not None
    turned = weights.transpose(order).T[:, :, None, None]
    columns, depth = turned.shape[:2]
    rows = math.prod(shape[:-1])
    src = c.builder.reshape(c.value(parts.product.args[0]), (rows, depth, 1, 1))
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    if whole:
        filters = _of_integers(c, factor, turned, 1 - order.index(int(factor.attrs.axis) % 2), 1)
    else:
        filters = stored_filters(c, _scaled(turned, parts.scale.reshape(-1, 1), (columns, 1, 1)), 1)
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
    filters: tuple[int, ...] = (wide // groups * columns, depth, 1, 1)
    if groups > 1:
        filters = (groups, *filters)
    seen = [("src", src, (images, groups * depth, 1, 1)), ("weights", turned, filters)]
    operands = [(role, c.builder.plain(c.builder.reshape(value, shape))) for role, value, shape in seen]
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), groups)
    dtype = c.builder.values[src].dtype
    dst = c.builder.step("convolution", attrs, (images, wide * columns, 1, 1), operands, dtype)
    return c.builder.reshape(dst, (rows, *(others if wide > 1 else batches), columns))


def _filters(c: Composite, parts: _Parts) -> np.ndarray | None:
    """The filters' numbers, None where they vary; then nothing scales them."""
    return constant_of(c.definition(parts.product.args[1]))


def _scaled(filters: np.ndarray, scale: np.ndarray, parts: tuple[int, int, int]) -> np.ndarray:
    """Filters [A, B, ...] times numbers [A, B], or [A, 1], rounded once.

    ``parts`` are extents of [groups or channels, ..., channels of a group]: those of a channel of the result
    are rounded by as much as numbers of the type are, or stay as they are, and so does what scales them.
    """
    if (scale == 1).all():
        return filters
    numbers = scale.reshape(*scale.shape, *(1,) * (filters.ndim - 2))
    with np.errstate(over="ignore"):
        exact = filters.astype("float64") * numbers
        scaled = exact.astype(filters.dtype)
    if not np.isfinite(filters).all():
        return scaled
    if not np.isfinite(scaled).all():
        raise UnsupportedError(f"filters times their scale leave the range of {filters.dtype}")
    lost, whole = (
        np.linalg.norm(one.reshape(*parts, -1).swapaxes(1, 2).reshape(parts[0], parts[2], -1), axis=-1)
        for one in (scaled - exact, exact)
    )
    if (lost > _ROUNDED * float(ml_dtypes.finfo(filters.dtype).eps) * whole).any():
        raise UnsupportedError(f"filters times their scale are too small for the digits of {filters.dtype}")
    return scaled


def stored_filters(c: Composite, filters: np.ndarray, groups: int, transposed: bool = False) -> int:
    """Filters [A, B, k...] as a constant [A, k..., B], as a step reads them."""
    last = np.ascontiguousarray(filters.transpose(0, *range(2, filters.ndim), 1))
    return _read(c, c.builder.constant(last), groups, transposed)


def _of_integers(c: Composite, call: relax.Call, integers: np.ndarray, axis: int, groups: int) -> int:
    """Filters [A, B, k...] of integers as a constant [A, k..., B], converted, as a step reads them."""
    order = (0, *range(2, integers.ndim), 1)
    last = np.ascontiguousarray(integers.transpose(order))
    found = quantized.stored_weights(c, call, last, order.index(axis % integers.ndim))
    return _read(c, found, groups, False)


def _turned(c: Composite, filters: int, groups: int, transposed: bool = False) -> int:
    """Filters [A, B, k...] that vary, as a step reads them: turned in every call."""
    rank = len(c.builder.values[filters].shape)
    last = c.builder.plain_copy(c.builder.permute(filters, (0, *range(2, rank), 1)))
    return _read(c, last, groups, transposed)


def _read(c: Composite, last: int, groups: int, transposed: bool) -> int:
    """Filters [A, k..., B] seen as [G?, O, I, k...].

    A are output channels, or a transposed convolution's inputs.
    """
    shape = static_shape(c.builder.values[last].shape)
    axes = len(shape) - 2
    seen = (0, 1 + axes, *range(1, 1 + axes))
    if transposed:
        seen = (1 + axes, 0, *range(1, 1 + axes))
    if groups > 1:
        last = c.builder.reshape(last, (groups, shape[0] // groups, *shape[1:]))
        seen = (0, *(1 + axis for axis in seen))
    return c.builder.permute(last, seen)


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
