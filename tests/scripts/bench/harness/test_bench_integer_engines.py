"""Engines of integers in scripts/bench refuse a model without quantised operators: nothing is timed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))
from _bench.harness.engines import ENGINES

INPUTS = {"x": np.ones((2, 3), "float32")}


def saved(folder: Path, *nodes: onnx.NodeProto) -> str:
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    numbers = [("s", np.array(0.5, "float32")), ("z", np.array(3, "uint8"))]
    constants = [numpy_helper.from_array(array, name) for name, array in numbers]
    graph = helper.make_graph(nodes, "g", tensors[:1], tensors[1:], constants)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), folder / "m.onnx"
    )
    return str(folder / "m.onnx")


@pytest.mark.parametrize("name", [name for name in ENGINES if name.endswith("_int8")])
def test_a_model_of_floats_is_refused(name: str, tmp_path: Path) -> None:
    engine, path = ENGINES[name], saved(tmp_path, helper.make_node("Relu", ["x"], ["y"]))
    with pytest.raises(ValueError, match=r"m\.onnx has no quantised operators"):
        if engine.compile:
            engine.compile(path, str(tmp_path / "made.so"))
        else:
            engine.load(path, INPUTS, 1)


def test_a_quantised_model_runs(tmp_path: Path) -> None:
    path = saved(
        tmp_path,
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    )
    runner = ENGINES["onnxruntime_int8"].load(path, INPUTS, 1)
    np.testing.assert_array_equal(runner.fetch(runner.call())[0], INPUTS["x"])
