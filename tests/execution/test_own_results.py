"""Results are the caller's alone: constants, tensors that are given back twice, tensors without elements."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_mxplan


def anchored() -> onnx.ModelProto:
    """ReLU, a constant, the ReLU again, and a view of it."""
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Identity", ["k"], ["anchors"]),
        helper.make_node("Identity", ["y"], ["again"]),
        helper.make_node("Reshape", ["y", "shape"], ["row"]),
    ]
    shapes = {"y": [2, 3], "anchors": [3], "again": [2, 3], "row": [6]}
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    constants = [
        numpy_helper.from_array(np.arange(3, dtype="float32"), "k"),
        numpy_helper.from_array(np.array([6]), "shape"),
    ]
    graph = helper.make_graph(nodes, "anchored", [x], outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("way", ["run", "bind", "loaded", "without a library"])
def test_what_a_caller_writes_into_a_result_is_in_no_other(way, tmp_path):
    ex = tvm_mxplan.compile(anchored(), "llvm" if way == "without a library" else "dnnl, llvm")
    assert bool(ex.report.regions) == (way != "without a library")
    if way == "loaded":
        ex.export(tmp_path / "anchored.so")
        ex = tvm_mxplan.load(tmp_path / "anchored.so")
    x = np.array([[1, -2, 3], [-4, 5, -6]], "float32")
    bound = ex.bind(x) if way == "bind" else None
    wanted = [np.maximum(x, 0), np.arange(3), np.maximum(x, 0), np.maximum(x, 0).reshape(6)]
    for _ in range(3):
        results = ex.run(x) if bound is None else bound()
        for result, expected in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(result, expected)
            result[...] = np.nan


@pytest.mark.parametrize("operator", ["Cos", "Relu"])
def test_tensors_without_elements_may_begin_anywhere(operator):
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 4]) for n in "xy")
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "empty", [x], [y])
    opsets = [helper.make_opsetid("", 17)]
    ex = tvm_mxplan.compile(helper.make_model(graph, opset_imports=opsets, ir_version=8), "dnnl, llvm")
    assert bool(ex.report.regions) == (operator == "Relu")
    raw = np.zeros(256, "float32")
    for start in range(64):  # every place between two multiples of 64 bytes
        empty = raw[start : start + 0].reshape(0, 4)
        assert ex.run(empty)[0].shape == (0, 4)
        assert ex.run(np.lib.stride_tricks.as_strided(empty, strides=(0, 0)))[0].shape == (0, 4)
