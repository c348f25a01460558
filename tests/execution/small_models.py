"""ONNX models small enough that what a call costs by itself shows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def mlp(widths: Sequence[int], batch: int | str = 1) -> onnx.ModelProto:
    """Dense layers with ReLU between them, from ``x`` to ``y``; the weights are the same for each batch."""
    random = np.random.default_rng(7)
    nodes, weights, value = [], [], "x"
    for n, (depth, width) in enumerate(itertools.pairwise(widths)):
        scaled = random.standard_normal((depth, width)) / np.sqrt(depth)
        weights.append(numpy_helper.from_array(scaled.astype("float32"), f"w{n}"))
        weights.append(numpy_helper.from_array(random.standard_normal(width).astype("float32"), f"b{n}"))
        last = n == len(widths) - 2
        nodes.append(helper.make_node("Gemm", [value, f"w{n}", f"b{n}"], ["y" if last else f"g{n}"]))
        if not last:
            nodes.append(helper.make_node("Relu", [f"g{n}"], [f"r{n}"]))
        value = f"r{n}"
    return _model(nodes, [batch, widths[0]], {"y": [batch, widths[-1]]}, weights)


def passing_on() -> onnx.ModelProto:
    """``y`` is ``x``, ``z`` its ReLU."""
    nodes = [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Relu", ["x"], ["z"])]
    return _model(nodes, [3, 5], {"y": [3, 5], "z": [3, 5]}, [])


def _model(nodes, shape, outputs, weights) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in outputs.items()],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def numbers(*shape: int, seed: int = 1, offset: int = 0) -> np.ndarray:
    """Random float32 numbers that begin ``offset`` bytes behind a multiple of 64."""
    count = int(np.prod(shape))
    raw = np.empty(4 * count + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    array = raw[start : start + 4 * count].view(np.float32).reshape(shape)
    array[...] = np.random.default_rng(seed).standard_normal(shape)
    return array
