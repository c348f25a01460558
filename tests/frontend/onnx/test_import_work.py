"""The work of an import over the number of nodes, counted in calls of functions: no clock is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tvm_mxplan.frontend.onnx import import_model

FEW, MANY = 40, 160
SHAPE = [2, 5]
node = helper.make_node


class Graph:
    """Nodes one behind the other; ``tensors`` are known."""

    def __init__(self, dims: list[int | str] = SHAPE) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)]

    def add(self, operator: str, *srcs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(node(operator, list(srcs), [name], **attributes))
        return name

    def known(self, value: object, dtype: str = "float32") -> str:
        name = f"k{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def model(self, result: str) -> onnx.ModelProto:
        outputs = [helper.make_empty_tensor_value_info(result)]
        graph = helper.make_graph(self.nodes, "work", self.inputs, outputs, self.tensors)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def readers(count: int) -> onnx.ModelProto:
    """One value that all nodes read, and one node that reads all."""
    graph = Graph()
    return graph.model(graph.add("Concat", *(graph.add("Tanh", "x") for _ in range(count)), axis=0))


def known(count: int) -> onnx.ModelProto:
    graph, value = Graph(), ""
    value, one = graph.known([1.5]), graph.known([0.25])
    for _ in range(count):
        value = graph.add("Add", value, one)
    return graph.model(graph.add("Add", "x", value))


def shapes(count: int) -> onnx.ModelProto:
    """Shape arithmetic with a named dimension."""
    graph, value = Graph(["n", 5]), "x"
    first, rest = graph.known([0], "int64"), graph.known([-1], "int64")
    for _ in range(count // 4):
        extent = graph.add("Gather", graph.add("Shape", value), first)
        value = graph.add("Reshape", value, graph.add("Concat", extent, rest, axis=0))
    return graph.model(value)


def branches(count: int) -> onnx.ModelProto:
    graph, value = Graph(), "x"
    zero = graph.known(0.0)
    for number in range(count // 4):
        condition = graph.add("Greater", graph.add("ReduceMax", value, keepdims=0), zero)
        inner = {}
        for name, operator in (("then_branch", "Tanh"), ("else_branch", "Abs")):
            out = helper.make_tensor_value_info(f"{name}{number}", TensorProto.FLOAT, SHAPE)
            inner[name] = helper.make_graph([node(operator, [value], [out.name])], name, [], [out])
        value = graph.add("Neg", graph.add("If", condition, **inner))
    return graph.model(value)


def loops(count: int) -> onnx.ModelProto:
    graph, value = Graph(), "x"
    graph.inputs.append(helper.make_tensor_value_info("count", TensorProto.INT64, []))
    info = helper.make_tensor_value_info
    ends = [info("turn", TensorProto.INT64, []), info("go", TensorProto.BOOL, [])]
    ends.append(info("s", TensorProto.FLOAT, SHAPE))
    results = [info("goes", TensorProto.BOOL, []), info("t", TensorProto.FLOAT, SHAPE)]
    steps = [node("Tanh", ["s"], ["t"]), node("Identity", ["go"], ["goes"])]
    for _ in range(count // 4):
        body = helper.make_graph(steps, "body", ends, results)
        value = graph.add("Loop", "count", "", value, body=body)
    return graph.model(value)


def calls(model: onnx.ModelProto) -> int:
    """Calls of Python functions and of others while a model is imported."""
    number = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        import_model(model)
    finally:
        sys.setprofile(None)
    return number


@pytest.mark.parametrize("family", [readers, known, shapes, branches, loops])
def test_four_times_the_nodes_are_four_times_the_work(family: Callable[[int], onnx.ModelProto]) -> None:
    calls(family(8))  # what is read once is read now
    few, many = calls(family(FEW)), calls(family(MANY))
    assert few > 20 * FEW / 4, "the count sees the import"
    assert many < 4.4 * few
