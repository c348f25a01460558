"""``RecoverScales``: scales of quantised products in the conversions in front of them.

    y = R.matmul(R.mxplan.dynamic_dequantize(q, 1, z), R.dequantize(w, 1, 0))
    r = R.multiply(y, R.multiply(s, t))

becomes

    r = R.matmul(R.mxplan.dynamic_dequantize(q, s, z), R.dequantize(w, t, 0))

where s is a number that the model computes, and t constant: a number above 0, or one for each output.  ONNX
has products of integers by themselves, and the scales behind a cast; libraries have both in one kernel, and
know the real result by it.  Also reads scales and zero points through the views and casts of one number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.operators.quantized import DEQUANTIZE, QUANTIZE, dynamic_dequantize

from ..relax_types import RESHAPES, constant_of, dtype_of, make_constant, shape_of
from .rewriter import Site, is_call_to, rewrite_bindings

_PRODUCTS = ("matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d")
_ZERO_POINT = 2
"""Its place among the results of a dynamic quantization."""


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    if DEQUANTIZE.is_called(value):
        return _direct(site, value)
    return _scaled(site, value) if is_call_to(value, "multiply") else None


def _direct(site: Site, call: relax.Call) -> relax.Expr | None:
    """The conversion by the numbers that a dynamic quantization gives, not by copies of them."""
    integers, *numbers = call.args
    found = [_source(site, number) for number in numbers]
    if all(one is number for one, number in zip(found, numbers, strict=True)):
        return None
    return dynamic_dequantize(integers, *found)


def _source(site: Site, number: relax.Expr) -> relax.Expr:
    """The tensor that a tensor (1) views, or zero points (0 to 255) that it casts, if that has its type."""
    source, found = number, number
    while True:
        call = site.definition(source)
        if not is_call_to(call, *RESHAPES, "astype") or dtype_of(call.args[0]) not in (
            "float32",
            "int32",
            "uint8",
        ):
            return found
        if is_call_to(call, "astype") and not _is_zero_point(site, call):
            return found
        source = call.args[0]
        if shape_of(source) == (1,) and dtype_of(source) == dtype_of(number):
            found = source


def _is_zero_point(site: Site, expr: relax.Expr) -> bool:
    """Whether views and casts end at the zero point of a dynamic quantization."""
    while is_call_to(expr, *RESHAPES, "astype"):
        expr = site.definition(expr.args[0])
    if not isinstance(expr, relax.TupleGetItem) or expr.index != _ZERO_POINT:
        return False
    return QUANTIZE.is_called(site.definition(expr.tuple_value))


@dataclass
class _Factors:
    """The factors of a product: constants, and at most one number that the model computes."""

    constant: np.ndarray
    computed: relax.Expr | None = None


def _scaled(site: Site, call: relax.Call) -> relax.Expr | None:
    for product, factor in (call.args, reversed(call.args)):
        found = site.definition(product)
        if not is_call_to(found, *_PRODUCTS) or site.reads(product) != 1:
            continue
        shape, spread = shape_of(product), shape_of(factor)
        if shape is None or spread is None or len(spread) > len(shape):
            continue
        operands = [site.definition(operand) for operand in found.args]
        if DEQUANTIZE.is_called(operands[0]) and is_call_to(operands[1], "dequantize"):
            return _with_factor(site, found, operands, factor)
    return None


def _with_factor(
    site: Site, product: relax.Call, operands: list[relax.Call], factor: relax.Expr
) -> relax.Expr | None:
    factors = _factors(site, factor)
    data, weights = operands
    if factors is None:
        return None
    scale = data.args[1]
    if factors.computed is not None:
        given = constant_of(site.definition(scale))
        if given is None or given.item() != 1.0:
            return None
        scale = factors.computed
    whole = _weights(product, weights, factors.constant)
    if whole is None:
        return None
    real = site.emit(dynamic_dequantize(data.args[0], scale, data.args[2]))
    return relax.Call(product.op, [real, site.emit(whole)], product.attrs)


def _factors(site: Site, factor: relax.Expr) -> _Factors | None:
    """A factor taken apart; None where it is more than one computed number and constants."""
    factor = factor if constant_of(factor) is not None else _viewed(site, factor)
    array = constant_of(factor)
    if array is not None:
        return _Factors(array) if array.dtype == np.float32 else None
    call = site.definition(factor)
    if not is_call_to(call, "multiply"):
        if dtype_of(factor) != "float32" or shape_of(factor) not in ((), (1,)):
            return None
        row = factor if shape_of(factor) == (1,) else site.emit(relax.op.reshape(factor, [1]))
        return _Factors(np.ones([], "float32"), _source(site, row))
    left, right = (_factors(site, one) for one in call.args)
    if left is None or right is None or (left.computed is not None and right.computed is not None):
        return None
    computed = right.computed if left.computed is None else left.computed
    return _Factors(np.asarray(left.constant * right.constant), computed)


def _viewed(site: Site, factor: relax.Expr) -> relax.Expr:
    """The number that a tensor of one element is a view of."""
    while shape_of(factor) in ((), (1,)):
        call = site.definition(factor)
        if not is_call_to(call, *RESHAPES) or shape_of(call.args[0]) not in ((), (1,)):
            break
        factor = call.args[0]
    return factor


def _weights(product: relax.Call, weights: relax.Call, factor: np.ndarray) -> relax.Expr | None:
    """The weights' conversion with its scale multiplied; None where the factor is no scale of outputs."""
    integers, scale, zero = weights.args
    shape, rank = shape_of(integers), len(shape_of(product) or ())
    scales, zeros = constant_of(scale), constant_of(zero)
    if shape is None or scales is None or zeros is None:
        return None
    matmul = is_call_to(product, "matmul")
    axis, outputs = (len(shape) - 1, rank - 1) if matmul else (0, 1)
    if factor.size == 1:
        row = scales * factor.reshape(())
        return _dequantized(weights, row, zeros, int(weights.attrs.axis))
    spread = (1,) * (rank - factor.ndim) + factor.shape
    along = int(weights.attrs.axis) % len(shape) == axis or scales.size == zeros.size == 1
    if not along or spread != tuple(shape[axis] if at == outputs else 1 for at in range(rank)):
        return None
    return _dequantized(weights, scales.reshape(-1) * factor.reshape(-1), zeros, axis)


def _dequantized(weights: relax.Call, scales: np.ndarray, zeros: np.ndarray, axis: int) -> relax.Expr | None:
    """The weights with other scales; None where libraries take these for none."""
    if not (np.isfinite(scales) & (scales > 0)).all():
        return None
    if scales.size > zeros.size:
        zeros = np.broadcast_to(zeros.reshape(-1), scales.shape).copy()
    numbers = (make_constant(np.asarray(one)) for one in (scales.astype("float32"), zeros))
    return relax.op.dequantize(weights.args[0], *numbers, axis=axis, out_dtype="float32")


@tvm.transform.module_pass(opt_level=0, name="RecoverScales")
class RecoverScales:
    """Puts scales of quantised products into the conversions in front of them."""

    def transform_module(self, mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)
