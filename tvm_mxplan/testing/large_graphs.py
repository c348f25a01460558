"""ONNX graphs of any number of operators, small in all else: for compile time, not for answers.

    model = large_graphs.build("residual", 5000)

`FAMILIES` differ in what grows with them: one region or many, live ranges long or short, constants or none.
Extents are odd, weights random; each graph has about the number of operators asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

_CHANNELS, _SIZE, _OPSET, _IR_VERSION = 5, 7, 17, 8


class _Graph:
    """Nodes in order; every tensor but those of `concat` has the shape of the input."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(0)

    def add(self, operator: str, *srcs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(srcs), [name], name, **attributes))
        return name

    def weight(self, *shape: int) -> str:
        from onnx import numpy_helper

        name = f"weight_{len(self.weights)}"
        values = self._random.standard_normal(shape, np.float32) / np.float32(_CHANNELS)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def conv(self, src: str, channels: int = _CHANNELS, kernel: int = 3) -> str:
        weight = self.weight(_CHANNELS, channels, kernel, kernel)
        return self.add("Conv", src, weight, kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4)

    def model(self, result: str) -> onnx.ModelProto:
        from onnx import TensorProto, helper

        shape = (1, _CHANNELS, _SIZE, _SIZE)
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", result)]
        graph = helper.make_graph(self.nodes, "large", ends[:1], ends[1:], self.weights)
        opsets = [helper.make_opsetid("", _OPSET)]
        return helper.make_model(graph, ir_version=_IR_VERSION, opset_imports=opsets)


def _elementwise(graph: _Graph, src: str) -> str:
    return graph.add("Tanh", graph.add("Abs", src))


def _convolutions(graph: _Graph, src: str) -> str:
    return graph.add("Relu", graph.conv(src))


def _residual(graph: _Graph, src: str) -> str:
    inner = graph.add("Relu", graph.conv(src, kernel=1))
    return graph.add("Relu", graph.add("Add", graph.conv(inner), src))


def _wide(graph: _Graph, src: str) -> str:
    branches = [graph.add("Relu", graph.conv(src, kernel=kernel)) for kernel in (1, 3, 1, 3)]
    joined = graph.add("Concat", *branches, axis=1)
    return graph.conv(joined, len(branches) * _CHANNELS, kernel=1)


def _alternating(graph: _Graph, src: str) -> str:
    """Round is TVM's: each convolution is a region of its own."""
    return graph.add("Round", graph.conv(src, kernel=1))


def _constants(graph: _Graph, src: str) -> str:
    scaled = graph.add("Mul", src, graph.weight(_CHANNELS, 1, 1))
    return graph.add("Tanh", graph.add("Add", scaled, graph.weight(1, _CHANNELS, _SIZE, 1)))


FAMILIES: dict[str, Callable[[_Graph, str], str]] = {
    "elementwise": _elementwise,
    "convolutions": _convolutions,
    "residual": _residual,
    "wide": _wide,
    "alternating": _alternating,
    "constants": _constants,
}
"""Functions that each append a part to the graph, again and again."""


def names() -> Sequence[str]:
    """Every family."""
    return tuple(FAMILIES)


def build(family: str, operators: int) -> onnx.ModelProto:
    """The graph of ``family`` with the first number of operators that is not below ``operators``."""
    graph, result = _Graph(), "x"
    while len(graph.nodes) < operators:
        result = FAMILIES[family](graph, result)
    return graph.model(result)
