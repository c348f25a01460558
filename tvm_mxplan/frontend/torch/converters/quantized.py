"""Conversions of PyTorch's exported quantised graphs (``quantized_decomposed``), as libraries look for them.

    quantize_per_tensor(x, s, z)      R.quantize(x, s, z)
    dequantize_per_channel(w, s, z)   R.dequantize(w, s, z)

Integers that stop short of their type's ends are clipped as the real numbers that they stand for.  Scales
that the model computes are taken where there is one of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from ....errors import InvalidInputError, UnsupportedError
from ....operators.quantized import dynamic_dequantize
from ....passes.relax_types import constant_of
from ..node import Emitter, Node, dims_of, dtype_of
from .table import TABLE, Converter

NAMESPACE = "quantized_decomposed"
_INTEGERS = ("uint8", "int8")
_REAL = ("float", "bfloat")


def _converts(*operators: str) -> Any:
    def enter(function: Converter) -> Converter:
        TABLE.update({f"{NAMESPACE}.{operator}": function for operator in operators})
        return function

    return enter


@_converts("quantize_per_tensor.default", "quantize_per_channel.default")
def _quantize(emitter: Emitter, node: Node) -> relax.Expr:
    data, dtype = node["input"], node.result.dtype
    if not dtype_of(data).startswith(_REAL):
        raise InvalidInputError(f"input: expected floating-point numbers, got {dtype_of(data)}")
    scale, zero, axis = _numbers(node, dtype)
    ends, low, high = np.iinfo(dtype), int(node["quant_min"]), int(node["quant_max"])
    if (low, high) != (ends.min, ends.max):
        if scale.size > 1:
            raise UnsupportedError(
                f"integers from {low} to {high} by several scales; expected all of {dtype}"
            )
        least, most = (float((end - int(zero[0])) * scale[0]) for end in (low, high))
        data = emitter.emit(relax.op.clip(emitter.cast(data, "float32"), least, most))
    numbers = _constants(scale, zero, dtype)
    return emitter.emit(
        relax.op.quantize(emitter.cast(data, "float32"), *numbers, axis=axis, out_dtype=dtype)
    )


@_converts("dequantize_per_tensor.default", "dequantize_per_channel.default")
def _dequantize(emitter: Emitter, node: Node) -> relax.Expr:
    data = node["input"]
    scale, zero, axis = _numbers(node, dtype_of(data))
    numbers = _constants(scale, zero, dtype_of(data))
    real = emitter.emit(relax.op.dequantize(data, *numbers, axis=axis, out_dtype="float32"))
    return emitter.cast(real, node.result.dtype)


@_converts("quantize_per_tensor.tensor", "quantize_per_tensor.tensor2")
def _quantize_by_tensors(emitter: Emitter, node: Node) -> relax.Expr:
    _check_pair(node, node.result.dtype)
    low, high = (emitter.operand(node[name], "float32") for name in _ENDS)
    scale, zero = (emitter.cast(emitter.reshaped(node[name], []), "float32") for name in _PAIR)
    steps = emitter.emit(relax.op.divide(emitter.cast(node["input"], "float32"), scale))
    moved = emitter.emit(relax.op.add(emitter.emit(relax.op.round(steps)), zero))
    clipped = emitter.emit(relax.op.minimum(emitter.emit(relax.op.maximum(moved, low)), high))
    return emitter.cast(clipped, node.result.dtype)


@_converts("dequantize_per_tensor.tensor", "dequantize_per_tensor.tensor2")
def _dequantize_by_tensors(emitter: Emitter, node: Node) -> relax.Expr:
    data = node["input"]
    _check_pair(node, dtype_of(data))
    scale, zero = (
        emitter.cast(emitter.reshaped(node[name], [1]), dtype)
        for name, dtype in zip(_PAIR, ("float32", "int32"), strict=True)
    )
    return emitter.cast(emitter.emit(dynamic_dequantize(data, scale, zero)), node.result.dtype)


_PAIR, _ENDS = ("scale", "zero_point"), ("quant_min", "quant_max")


def _check_pair(node: Node, dtype: str) -> None:
    """InvalidInputError for a scale and a zero point that are constants, and none."""
    _check_integers(dtype)
    scale, zero = (constant_of(node[name]) for name in _PAIR)
    for name, array in (("scale", scale), ("zero point", zero)):
        if array is not None and array.size != 1:
            raise InvalidInputError(f"{name}: expected one, got {array.size}")
    if scale is not None:
        _check_scales(scale.reshape(-1))
    low, high = (node[name] for name in _ENDS)
    if zero is not None and isinstance(low, int) and isinstance(high, int):
        _check_zero_points(zero.reshape(-1), low, high, dtype)


def _check_integers(dtype: str) -> None:
    if dtype.startswith((*_REAL, "bool")):
        raise InvalidInputError(f"input: expected integers, got {dtype}")
    if dtype not in _INTEGERS:
        raise UnsupportedError(f"integers of {dtype}; expected {' or '.join(_INTEGERS)}")


def _check_scales(scale: np.ndarray) -> None:
    scale = scale.astype("float32")  # as they are computed with: what is smaller becomes 0
    wrong = scale[~(np.isfinite(scale) & (scale > 0))]
    if wrong.size:
        raise InvalidInputError(f"scale: expected finite numbers above 0, got {wrong[0]:.7g}")


def _check_zero_points(zero: np.ndarray, low: int, high: int, dtype: str) -> None:
    ends = np.iinfo(dtype)
    if not ends.min <= low < high <= ends.max:
        raise InvalidInputError(
            f"quant_min and quant_max: expected numbers of {dtype} that rise, got {low} and {high}"
        )
    if zero.min() < low or zero.max() > high:
        raise InvalidInputError(f"zero point: expected {low} to {high}, got {zero.min()} to {zero.max()}")


def _numbers(node: Node, dtype: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Scales, zero points of integers of ``dtype``, and the axis along which they stand.

    Raises
    ------
    UnsupportedError : those of channels that the model computes, integers of other types.
    InvalidInputError : scales that are not above 0 and finite, zero points beyond the integers, an axis that
        does not exist, another count, real numbers in place of integers.
    """
    _check_integers(dtype)
    if "scales" not in node.operands:
        scale, zero = np.array([node["scale"]], "float32"), np.array([int(node["zero_point"])])
        axis = 0
    else:
        scale = _array(node["scales"])
        points = node["zero_points"]
        zero = np.zeros(scale.size, "int64") if points is None else _array(points)
        axis = int(node["axis"])
        dims = dims_of(node["input"])
        if not -len(dims) <= axis < len(dims):
            raise InvalidInputError(f"axis: expected one of a tensor of rank {len(dims)}, got {axis}")
        if scale.size != zero.size or dims[axis] != scale.size:
            counts = f"{scale.size} scales and {zero.size} zero points"
            raise InvalidInputError(f"expected {dims[axis]} along axis {axis}, got {counts}")
    _check_scales(scale.reshape(-1))
    _check_zero_points(zero, int(node["quant_min"]), int(node["quant_max"]), dtype)
    return scale.reshape(-1).astype("float32"), zero.reshape(-1), axis


def _array(tensor: Any) -> np.ndarray:
    array = constant_of(tensor)
    if array is None:
        raise UnsupportedError("scales of channels that the model computes; expected constants")
    return array


def _constants(scale: np.ndarray, zero: np.ndarray, dtype: str) -> tuple[relax.Expr, relax.Expr]:
    """Scales and zero points as Relax takes them: scalars, or rows."""
    points = zero.astype(dtype)
    if scale.size == 1:
        return relax.const(scale[0], "float32"), relax.const(points[0], dtype)
    return relax.const(scale), relax.const(points)
