"""Translates each composite: a convolution with its bias and post-ops, filters stored channels last.

A product with a constant matrix is a convolution of images of one pixel: cuDNN has engines without code
generation for those, and none for products.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tvm import relax

from tvm_mxplan.byoc.composite import Composite, ints
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.passes.relax_types import constant_of, is_constant, permutation_of, shape_of

from .checks import per_channel
from .patterns import ACTIVATIONS


@dataclass(frozen=True)
class _Parts:
    """A composite taken apart: activation(scale * product + bias + residual), constants for each channel.

    ``bias`` is None where nothing is added.
    """

    product: relax.Call
    scale: np.ndarray
    bias: np.ndarray | None
    residual: relax.Expr | None
    activation: str


def _parts(c: Composite, axis: int) -> _Parts:
    call, activation, residual = c.root, "", None
    operator = _name(call)
    if operator in ACTIVATIONS:
        activation = ACTIVATIONS[operator]
        call = c.definition(call.args[0])
    shape = static_shape(c.shape)
    scale, bias, adds = np.ones(shape[axis]), np.zeros(shape[axis]), False
    while _name(call) in ("add", "subtract", "multiply"):
        inner, other = _split(c, call)
        found = c.definition(other)
        if not (is_constant(found) and per_channel(shape_of(found), shape, axis)):  # type: ignore[arg-type]
            residual = other
        else:
            # An inner constant goes through all operators that stand around it.
            numbers = np.asarray(constant_of(found), "float64").reshape(-1)
            if _name(call) == "multiply":
                scale = scale * numbers
            else:
                adds = True
                bias = bias + (scale if _name(call) == "add" else -scale) * numbers
        call = inner
    return _Parts(call, scale, bias if adds else None, residual, activation)


def _name(call: relax.Call) -> str:
    return str(call.op.name).removeprefix("relax.")


def _split(c: Composite, call: relax.Call) -> tuple[relax.Call, relax.Expr]:
    """The sum's operand that the composite computes, and the other one."""
    left, right = (c.definition(arg) for arg in call.args)
    if isinstance(left, relax.Call):
        return left, call.args[1]
    return right, call.args[0]


def _convolution(c: Composite) -> int:
    parts = _parts(c, 1)
    call = parts.product
    groups = int(call.attrs.groups)
    filters = constant_of(c.definition(call.args[1]))
    assert filters is not None
    attrs = ir.Convolution(
        ints(call.attrs.strides), ints(call.attrs.padding), ints(call.attrs.dilation), groups
    )
    residual = None if parts.residual is None else c.value(parts.residual)
    src = c.value(call.args[0])
    stored = _stored(c, _scaled(filters, parts.scale), groups)
    return _emit(c, attrs, src, stored, parts, residual, static_shape(c.shape))


def _matmul(c: Composite) -> int:
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
    filters = _stored(c, _scaled(weights.T[:, :, None, None], parts.scale), 1)
    dst = _emit(c, attrs, src, filters, parts, None, (rows, columns, 1, 1))
    return c.builder.reshape(dst, shape)


def _scaled(filters: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Filters [O, ...] times a number for each output channel, rounded once."""
    if (scale == 1).all():
        return filters
    with np.errstate(over="ignore"):
        scaled = (filters.astype("float64") * scale.reshape(-1, *(1,) * (filters.ndim - 1))).astype(
            filters.dtype
        )
    if np.isfinite(scaled).all() or not np.isfinite(filters).all():
        return scaled
    raise UnsupportedError(f"filters times their scale leave the range of {filters.dtype}")


def _stored(c: Composite, filters: np.ndarray, groups: int) -> int:
    """Filters [O, I, h, w] as a constant with input channels innermost, seen as [G?, O, I, h, w]."""
    last = np.ascontiguousarray(filters.transpose(0, 2, 3, 1))
    if groups == 1:
        return c.builder.permute(c.builder.constant(last), (0, 3, 1, 2))
    last = last.reshape(groups, last.shape[0] // groups, *last.shape[1:])
    return c.builder.permute(c.builder.constant(last), (0, 1, 4, 2, 3))


def _emit(
    c: Composite,
    attrs: ir.Convolution,
    src: int,
    filters: int,
    parts: _Parts,
    residual: int | None,
    shape: tuple[int, ...],
) -> int:
    dtype = c.builder.values[src].dtype
    operands = [("src", src), ("weights", filters)]
    post_ops: list[ir.PostOp] = []
    if residual is not None:
        post_ops.append(ir.BinaryPostOp("add", residual))
    if parts.activation:
        post_ops.append(ir.EltwisePostOp(parts.activation, 0.0, 0.0))
    bias = parts.bias
    if bias is None and post_ops:  # without one there is no engine for them
        bias = np.zeros(shape[1])
    if bias is not None:
        operands.append(("bias", c.builder.constant(bias.astype(dtype))))
    return c.builder.step("convolution", attrs, shape, operands, dtype, tuple(post_ops))


TRANSLATE: dict[str, Callable[[Composite], int]] = {"convolution": _convolution, "matmul": _matmul}
