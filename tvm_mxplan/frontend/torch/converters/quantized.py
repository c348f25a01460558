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


def _converts(*operators: str) -> Any:
    def enter(function: Converter) -> Converter:
        TABLE.update({f"{NAMESPACE}.{operator}": function for operator in operators})
        return function

    return enter


@_converts("quantize_per_tensor.default", "quantize_per_channel.default")
def _quantize(emitter: Emitter, node: Node) -> relax.Expr:
    data, (scale, zero, axis) = node["input"], _numbers(node)
    dtype = node.result.dtype
    if dtype not in _INTEGERS:
        raise UnsupportedError(f"integers of {dtype}; expected {' or '.join(_INTEGERS)}")
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
    data, (scale, zero, axis) = node["input"], _numbers(node)
    numbers = _constants(scale, zero, dtype_of(data))
    real = emitter.emit(relax.op.dequantize(data, *numbers, axis=axis, out_dtype="float32"))
    return emitter.cast(real, node.result.dtype)


@_converts("quantize_per_tensor.tensor", "quantize_per_tensor.tensor2")
def _quantize_by_tensors(emitter: Emitter, node: Node) -> relax.Expr:
    low, high = (emitter.operand(node[name], "float32") for name in ("quant_min", "quant_max"))
    scale, zero = (emitter.cast(emitter.reshaped(node[name], []), "float32") for name in _PAIR)
    steps = emitter.emit(relax.op.divide(emitter.cast(node["input"], "float32"), scale))
    moved = emitter.emit(relax.op.add(emitter.emit(relax.op.round(steps)), zero))
    clipped = emitter.emit(relax.op.minimum(emitter.emit(relax.op.maximum(moved, low)), high))
    return emitter.cast(clipped, node.result.dtype)


@_converts("dequantize_per_tensor.tensor", "dequantize_per_tensor.tensor2")
def _dequantize_by_tensors(emitter: Emitter, node: Node) -> relax.Expr:
    data = node["input"]
    if dtype_of(data) not in _INTEGERS:
        raise UnsupportedError(f"integers of {dtype_of(data)}; expected {' or '.join(_INTEGERS)}")
    scale, zero = (
        emitter.cast(emitter.reshaped(node[name], [1]), dtype)
        for name, dtype in zip(_PAIR, ("float32", "int32"), strict=True)
    )
    return emitter.cast(emitter.emit(dynamic_dequantize(data, scale, zero)), node.result.dtype)


_PAIR = ("scale", "zero_point")


def _numbers(node: Node) -> tuple[np.ndarray, np.ndarray, int]:
    """Scales, zero points, and the axis along which they stand.

    Raises
    ------
    UnsupportedError : those of channels that the model computes.
    InvalidInputError : scales that are not above 0 and finite, an axis that does not exist, another count.
    """
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
    wrong = scale[~(np.isfinite(scale) & (scale > 0))]
    if wrong.size:
        raise InvalidInputError(f"scale: expected finite numbers above 0, got {wrong[0]:.7g}")
    low, high = int(node["quant_min"]), int(node["quant_max"])
    if zero.min() < low or zero.max() > high:
        raise InvalidInputError(f"zero point: expected {low} to {high}, got {zero.min()} to {zero.max()}")
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
