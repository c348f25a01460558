"""A model that hands its input on, and arrays that begin where one likes."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper


def passing_on() -> onnx.ModelProto:
    """``y`` is ``x``, ``z`` its ReLU."""
    nodes = [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Relu", ["x"], ["z"])]
    x, y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 5]) for name in "xyz")
    graph = helper.make_graph(nodes, "passing_on", [x], [y, z])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def numbers(*shape: int, seed: int = 1, offset: int = 0) -> np.ndarray:
    """Random float32 numbers that begin ``offset`` bytes behind a multiple of 64."""
    count = int(np.prod(shape))
    raw = np.empty(4 * count + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    array = raw[start : start + 4 * count].view(np.float32).reshape(shape)
    array[...] = np.random.default_rng(seed).standard_normal(shape)
    return array
