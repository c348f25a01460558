"""Arrays, and what operators of Relay make of them, by onnx's reference and numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

RANDOM = np.random.default_rng(23)


X = RANDOM.standard_normal((2, 6, 7, 5), np.float32)


Y = RANDOM.standard_normal((2, 6, 7, 5), np.float32)


M = RANDOM.standard_normal((3, 5), np.float32)


V = RANDOM.standard_normal((6,), np.float32)


I = RANDOM.integers(-4, 4, (3, 5)).astype(np.int32)  # noqa: E741


K = RANDOM.integers(0, 3, (2, 3)).astype(np.int64)


W = RANDOM.standard_normal((4, 3, 3, 3), np.float32)


D = RANDOM.standard_normal((6, 4, 3, 3), np.float32)


QUICK = "llvm -opt-level=0"


VALUES = {"x": X, "y": Y, "m": M, "v": V, "i": I, "k": K, "w": W, "d": D}


@dataclass(frozen=True)
class Case:
    """An expression over the values above, and what it is."""

    text: str
    expected: Callable[[], np.ndarray]


def reference(operator: str, *arrays: np.ndarray, opset: int = 18, **attributes: Any) -> np.ndarray:
    """The results of ONNX's reference for one operator."""
    names = [f"x{index}" for index in range(len(arrays))]
    infos = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in zip(names, arrays, strict=True)
    ]
    node = onnx.helper.make_node(operator, names, ["out"], **attributes)
    out = onnx.helper.make_empty_tensor_value_info("out")
    graph = onnx.helper.make_graph([node], "one", infos, [out])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))[0]


def nhwc(array: np.ndarray) -> np.ndarray:
    return array.transpose(0, 2, 3, 1)


def softmax(array: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(array - array.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def norm(array: np.ndarray, axes: tuple[int, ...], epsilon: float = 1e-5) -> np.ndarray:
    centred = array - array.mean(axes, keepdims=True)
    return centred / np.sqrt(array.var(axes, keepdims=True) + epsilon)


def along(vector: np.ndarray, axis: int = 1, rank: int = 4) -> np.ndarray:
    return vector.reshape([-1 if at == axis else 1 for at in range(rank)])


def lrn(array: np.ndarray, size: int, axis: int, bias: float, alpha: float, beta: float) -> np.ndarray:
    squares = np.moveaxis(array**2, axis, 0)
    count = len(squares)
    totals = [squares[max(0, at - size // 2) : at + size // 2 + 1].sum(0) for at in range(count)]
    return array / (bias + alpha * np.moveaxis(np.stack(totals), 0, axis) / size) ** beta
