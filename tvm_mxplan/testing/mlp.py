"""Multi-layer perceptrons in ONNX, as small as one likes: what a call costs by itself shows on them.

model = mlp([8, 16, 4], batch=1)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx


def mlp(widths: Sequence[int], batch: int | str = 1) -> onnx.ModelProto:
    """Dense layers with ReLU between them, from ``x`` to ``y``; the weights are the same for each batch."""
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(7)
    nodes, weights, value = [], [], "x"
    last = len(widths) - 2
    for n, (depth, width) in enumerate(itertools.pairwise(widths)):
        scaled = random.standard_normal((depth, width)) / np.sqrt(depth)
        weights.append(numpy_helper.from_array(scaled.astype("float32"), f"w{n}"))
        weights.append(numpy_helper.from_array(random.standard_normal(width).astype("float32"), f"b{n}"))
        nodes.append(helper.make_node("Gemm", [value, f"w{n}", f"b{n}"], ["y" if n == last else f"g{n}"]))
        if n != last:
            nodes.append(helper.make_node("Relu", [f"g{n}"], [f"r{n}"]))
        value = f"r{n}"
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, widths[0]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, widths[-1]])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
