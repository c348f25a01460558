"""``tvmc quantize``: a model is written and told of layer by layer, bad data and names are one line."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tvm_mxplan.testing.reference import onnxruntime_outputs, relative_l2
from tvm_mxplan.tvmc.main import main

pytest.importorskip("onnxruntime", reason="its tools quantise")

BATCH, DEPTH, CLASSES = 4, 24, 7


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a model of two dense layers, the second without a name, and samples for it."""
    random = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(random.normal(0, 0.3, shape).astype("float32"), name)

    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
            helper.make_node("Relu", ["h"], ["r"], name="relu"),
            helper.make_node("MatMul", ["r", "v"], ["y"]),
        ],
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [BATCH, DEPTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [BATCH, CLASSES])],
        [weights("w", DEPTH, DEPTH), weights("v", DEPTH, CLASSES)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "model.onnx")
    np.savez(tmp_path / "data.npz", x=random.standard_normal((3 * BATCH, DEPTH)).astype("float32"))
    return tmp_path


def quantize(files: Path, *more: str, data: bool = True) -> int:
    given = ["--data", str(files / "data.npz")] if data else []
    return main(["quantize", str(files / "model.onnx"), *given, "-o", str(files / "made.onnx"), *more])


def kinds(files: Path) -> list[str]:
    return [node.op_type for node in onnx.load(files / "made.onnx").graph.node]


def error(files: Path) -> float:
    x = np.load(files / "data.npz")["x"][:BATCH]
    right, got = (
        onnxruntime_outputs(onnx.load(files / name), {"x": x})[0] for name in ("model.onnx", "made.onnx")
    )
    return relative_l2(got, right)


def test_a_static_model_is_written_and_told_of_by_layer(
    files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert quantize(files) == 0
    told = capfd.readouterr().out.splitlines()
    assert told[0].endswith("made.onnx: static, 3 samples")
    whole = float(told[1].split()[4])
    assert told[1].startswith("results are off by") and 1e-4 < whole < 0.1
    assert told[2].split()[:4] == ["node", "kind", "alone", "together"]
    rows = {row.split()[0]: row.split() for row in told[3:-2]}
    assert {"first", "MatMul_y"} <= set(rows) <= {"first", "relu", "MatMul_y"}
    for name in ("first", "MatMul_y"):
        row = rows[name]
        alone, without, integers, real = float(row[2]), float(row[4]), float(row[5]), float(row[6])
        assert 1e-4 < alone < 0.1 and 0 < without < whole and integers > 0 and real > 0
    assert kinds(files).count("QuantizeLinear") == 3 and 1e-4 < error(files) < 0.1


def test_a_node_that_is_left_out_stays_real(files: Path) -> None:
    assert quantize(files, "--no-report") == 0
    before = error(files)
    assert quantize(files, "--no-report", "--exclude", "MatMul_y") == 0
    assert error(files) < before and kinds(files).count("DequantizeLinear") == 3


@pytest.mark.parametrize("activations, weights", [("u8", "u8"), ("s8", "s8"), ("u8", "s8")])
@pytest.mark.parametrize("form, expected", [("qdq", "DequantizeLinear"), ("qoperator", "QLinearMatMul")])
def test_the_types_and_forms_that_are_asked_for(files: Path, activations, weights, form, expected) -> None:
    options = [
        "--activations",
        activations,
        "--weights",
        weights,
        "--format",
        form,
        "--per-channel",
        "--reduce-range",
    ]
    assert quantize(files, "--no-report", *options) == 0
    assert expected in kinds(files) and error(files) < 0.1


@pytest.mark.parametrize(
    "kind, shape, constants",
    [
        ("Conv", (2, 3, 6, 5), {"w": (7, 3, 3, 3), "b": (7,)}),
        ("Gemm", (2, 24), {"w": (24, 7), "b": (7,)}),
        ("Add", (2, 5, 24), {"b": (24,)}),
        ("LayerNormalization", (2, 5, 24), {"w": (24,), "b": (24,)}),
    ],
)
def test_a_layer_with_a_bias_is_told_of(
    files: Path, kind: str, shape, constants, capfd: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(3)
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", *constants], ["y"], name="biased")],
        "biased",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(shape))],
        [
            numpy_helper.from_array(random.normal(0, 0.3, s).astype("float32"), n)
            for n, s in constants.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, files / "model.onnx")
    np.savez(files / "data.npz", x=random.standard_normal((3 * shape[0], *shape[1:])).astype("float32"))
    assert quantize(files) == 0
    told = capfd.readouterr().out.splitlines()
    (row,) = [row.split() for row in told[3:] if row.startswith("biased")]
    assert row[1] == kind and 1e-4 < float(row[2]) < 0.1
    assert float(row[4]) < float(told[1].split()[4])  # what its result's conversion alone is off by


def test_a_dynamic_model_wants_no_data(files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert quantize(files, "--dynamic", data=False) == 0
    assert capfd.readouterr().out.splitlines() == [f"{files / 'made.onnx'}: dynamic, 0 samples"]
    assert kinds(files).count("MatMulInteger") == 2 and error(files) < 0.1
    assert quantize(files, "--dynamic") == 0
    told = capfd.readouterr().out.splitlines()
    rows = {row.split()[0]: row.split() for row in told[3:-2]}
    assert set(rows) == {"first", "MatMul_y"} and 0 < float(rows["first"][4]) < float(told[1].split()[4])


@pytest.mark.parametrize(
    "arrays, said",
    [
        ({"z": np.zeros((4, 24), "float32")}, "data: no input 'z'; the model's inputs are x"),
        ({}, "data: no array 'x'; expected x"),
        ({"x": np.zeros((4, 23), "float32")}, "data: x: expected shape (samples, 24), got (4, 23)"),
        ({"x": np.zeros((4, 24))}, "data: x: expected float32, got float64"),
        ({"x": np.zeros((0, 24), "float32")}, "data: x: is empty"),
        ({"x": np.zeros((6, 24), "float32")}, "data: x: expected a multiple of 4 rows"),
        ({"x": np.full((4, 24), np.nan, "float32")}, "data: x: holds numbers that are not finite"),
    ],
)
def test_data_that_does_not_fit_is_one_line(
    files: Path, arrays, said, capfd: pytest.CaptureFixture[str]
) -> None:
    np.savez(files / "data.npz", **arrays)
    assert quantize(files) == 1
    told = capfd.readouterr().err
    assert said in told and len(told.splitlines()) == 1
    assert not (files / "made.onnx").exists()


@pytest.mark.slow
def test_what_cannot_be_done_is_one_line(files: Path, capfd: pytest.CaptureFixture[str], monkeypatch) -> None:
    assert quantize(files, data=False) == 1
    assert "--data: no calibration data; give an .npz file, or --dynamic" in capfd.readouterr().err
    assert quantize(files, "--exclude", "frist") == 1
    assert "no node 'frist' to leave out; there are first" in capfd.readouterr().err
    assert quantize(files, "--operators", "Conv") == 1
    assert "no node of kind 'Conv'; there are MatMul, Relu" in capfd.readouterr().err
    assert quantize(files, "--no-report") == 0
    (files / "made.onnx").rename(files / "model.onnx")
    assert quantize(files) == 1
    assert "is quantised already (it has QuantizeLinear)" in capfd.readouterr().err
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization", None)
    assert quantize(files) == 1
    assert "onnxruntime, whose tools quantise, is not installed" in capfd.readouterr().err
