"""scripts/bench onnx: models that a user has, with inputs that are given or made up."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

SCRIPTS = Path(__file__).resolve().parents[4] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench.whole import onnx_files  # noqa: E402

from tvm_mxplan.errors import InvalidInputError  # noqa: E402
from tvm_mxplan.execution.runner import save_outputs  # noqa: E402

needs_onnxruntime = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None, reason="needs onnxruntime"
)
QUICK = ["--engines", "onnxruntime", "--threads", "1", "--starts", "1", "--rounds", "2", "--iterations", "3"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Two inputs that share an open dimension, and weights in a file beside the model."""
    nodes = [
        helper.make_node("Gather", ["table", "file"], ["rows"]),
        helper.make_node("Add", ["rows", "shift"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "rows",
        [
            helper.make_tensor_value_info("file", TensorProto.INT64, ["batch size"]),  # a name that savez has
            helper.make_tensor_value_info("shift", TensorProto.FLOAT, ["batch size", 64]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch size", 64])],
        [numpy_helper.from_array(np.arange(128 * 64, dtype="float32").reshape(128, 64), "table")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(proto, tmp_path / "rows.onnx", save_as_external_data=True, location="weights")
    assert (tmp_path / "weights").stat().st_size >= 128 * 64 * 4
    return tmp_path / "rows.onnx"


def test_inputs_are_made_up_by_the_types_of_the_model(model: Path) -> None:
    inputs = onnx_files.inputs_of(model, {}, {"file": (5,)})
    assert {name: (array.dtype.name, array.shape) for name, array in inputs.items()} == {
        "file": ("int64", (5,)),
        "shift": ("float32", (5, 64)),
    }
    assert onnx_files.inputs_of(model, {})["shift"].shape == (1, 64)


def test_inputs_that_are_given_are_taken(model: Path) -> None:
    rows = np.array([3, 1, 2])
    inputs = onnx_files.inputs_of(model, {"file": rows})
    assert inputs["file"] is rows and inputs["shift"].shape == (3, 64)


def test_inputs_that_the_model_does_not_have_are_named(model: Path) -> None:
    with pytest.raises(InvalidInputError, match="no input 'ids'; the inputs are file, shift"):
        onnx_files.inputs_of(model, {"ids": np.array([1])})


@needs_onnxruntime
def test_a_model_is_timed_where_it_stands(model: Path, tmp_path: Path) -> None:
    out, markdown = tmp_path / "out.json", tmp_path / "out.md"
    save_outputs(tmp_path / "rows.npz", {"file": np.array([0, 127, 5])})
    written = ["--json", str(out), "--markdown", str(markdown)]
    assert onnx_files.main([str(model), *QUICK, *written]) == 0
    (record,) = json.loads(out.read_text())["results"]
    engine = record["engines"]["onnxruntime"]
    assert (record["model"], record["batch"], record["threads"]) == ("rows", None, 1)
    assert engine["status"] == "ok", engine["detail"]
    assert len(engine["round_medians_ms"]) == 2
    assert "## 1 thread\n" in markdown.read_text() and "| rows | " in markdown.read_text()


@needs_onnxruntime
def test_inputs_that_onnxruntime_refuses_are_one_line(model: Path, tmp_path: Path, capsys) -> None:
    inputs = tmp_path / "in.npz"
    save_outputs(inputs, {"file": np.array([128])})
    assert onnx_files.main([str(model), "--inputs", str(inputs), *QUICK]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("bench onnx: rows: no reference answer from onnxruntime, failed: InvalidArgument")
    assert last.endswith("; give inputs that it takes with --inputs")


def test_what_is_no_model_is_one_line(tmp_path: Path, capsys) -> None:
    file = tmp_path / "none.onnx"
    assert onnx_files.main([str(file)]) == 1
    assert capsys.readouterr().err == f"bench onnx: {file}: no such file; expected an ONNX model\n"
