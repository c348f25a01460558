"""``tvmc compile``: what it writes and prints, and its options."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvm_mxplan


def test_compile_writes_a_library_that_computes_what_the_model_does(tvmc, models, tmp_path):
    result = tvmc("compile", models / "small.onnx", "--target", "dnnl, llvm", "-o", tmp_path / "m.so")
    assert (result.code, result.err) == (0, "")
    assert "100.0 %" in result.out
    assert [path.name for path in tmp_path.iterdir()] == ["m.so"]
    x = np.random.default_rng(1).standard_normal((1, 3, 9, 9), np.float32)
    (expected,) = tvm_mxplan.compile(models / "small.onnx", target="llvm")(x)
    ex = tvm_mxplan.load(tmp_path / "m.so")
    assert ex.report.regions
    np.testing.assert_allclose(ex(x)[0].numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_the_default_output_is_module_so(tvmc, models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert tvmc("compile", models / "small.onnx").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["module.so"]


def test_an_existing_library_is_replaced(tvmc, models, tmp_path):
    (tmp_path / "m.so").write_text("old")
    assert tvmc("compile", models / "small.onnx", "-o", tmp_path / "m.so").code == 0
    assert tvm_mxplan.load(tmp_path / "m.so").report.regions


def test_target_llvm_offloads_nothing_and_says_so(tvmc, models, tmp_path):
    result = tvmc("compile", models / "small.onnx", "--target", "llvm", "-o", tmp_path / "m.so")
    assert result.code == 0
    assert "nothing offloaded" in result.out
    assert not tvm_mxplan.load(tmp_path / "m.so").report.regions


def test_input_shapes_take_the_place_of_the_models(tvmc, models, tmp_path):
    shapes = "image:[2, 3, 11, 5]"
    assert tvmc("compile", models / "batch.onnx", "--input-shapes", shapes, "-o", tmp_path / "m.so").code == 0
    assert tvm_mxplan.load(tmp_path / "m.so").signature.inputs[0].shape == (2, 3, 11, 5)


def test_bounds_and_names_of_dimensions_stay_with_the_library(tvmc, models, tmp_path):
    flags = ("--input-shapes", "image: [count, 3, rows, 9]", "--bounds", "count=1:4 rows=5:12", "--bounds")
    result = tvmc("compile", models / "batch.onnx", *flags, "rows=5:12", "-o", tmp_path / "m.so")
    assert result.code == 0, result.err
    signature = tvm_mxplan.load(tmp_path / "m.so").signature
    assert signature.inputs[0].shape == ("count", 3, "rows", 9)
    assert signature.bounds == {"count": (1, 4), "rows": (5, 12)}


def test_states_stay_with_the_library(tvmc, tmp_path):
    """One that is not called through a session says so."""
    nodes = [helper.make_node("Add", ["h", "x"], ["h1"]), helper.make_node("Mul", ["h1", "x"], ["y"])]
    tensors = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in ("x", "h", "y", "h1")}
    graph = helper.make_graph(nodes, "g", [tensors["x"], tensors["h"]], [tensors["y"], tensors["h1"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    flags = ("--states", "h=h1", "--capacity", "7")
    result = tvmc("compile", tmp_path / "m.onnx", *flags, "-o", tmp_path / "m.so")
    assert result.code == 0, result.err
    session = tvm_mxplan.load(tmp_path / "m.so").session()
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(session.run(x)[0], x * x)
    np.testing.assert_array_equal(session.run(x)[0], 2 * x * x)
    result = tvmc("run", tmp_path / "m.so", "--fill-mode", "ones")
    assert result.code != 0 and "called through a session: ex.session()" in result.err


@pytest.mark.parametrize(
    "flags", [("--layouts", "blocked"), ("--opt", "layouts=blocked"), ("--desired-layout", "NCHW16c")]
)
def test_options_reach_the_library(tvmc, models, tmp_path, flags):
    assert tvmc("compile", models / "small.onnx", *flags, "-o", tmp_path / "m.so").code == 0
    expected = tvm_mxplan.compile(models / "small.onnx", options={"layouts": "blocked"}).report
    (region,) = tvm_mxplan.load(tmp_path / "m.so").report.regions
    assert region.steps == expected.regions[0].steps


def test_a_precision_reaches_the_regions(tvmc, models, tmp_path):
    """Whether the processor computes in it or not: the report says what became of the wish."""
    result = tvmc("compile", models / "small.onnx", "--precision", "bf16", "-o", tmp_path / "m.so")
    assert (result.code, result.err) == (0, "")
    (region,) = tvm_mxplan.load(tmp_path / "m.so").report.regions
    assert region.precision.wanted == "bf16"


def test_single_operators_are_chosen_by_name(tvmc, models, tmp_path):
    flags = ("--opt", "layers=conv2d_0=nchw")
    assert tvmc("compile", models / "small.onnx", *flags, "-o", tmp_path / "m.so").code == 0
    (region,) = tvm_mxplan.load(tmp_path / "m.so").report.regions
    assert [step.layouts for step in region.steps if step.name == "conv2d_0"] == [("abcd", "abcd")]
    wrong = ("--opt", "layers=conv2d_1=off")
    error = tvmc("compile", models / "small.onnx", *wrong, "-o", tmp_path / "m.so").error()
    assert "no operator 'conv2d_1'; the nearest are conv2d_0" in error


@pytest.mark.slow
def test_options_are_numbers_and_words(tvmc, models, tmp_path, monkeypatch):
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path / "cache"))
    flags = ("--opt", "tune=measure", "--opt", "tune_seconds=0.5")
    assert tvmc("compile", models / "small.onnx", *flags, "-o", tmp_path / "m.so").code == 0
    assert tvm_mxplan.load(tmp_path / "m.so").report.regions


def test_dumps_lie_beside_the_output(tvmc, models, tmp_path):
    output = tmp_path / "m.so"
    assert (
        tvmc("compile", models / "small.onnx", "-o", output, "--dump-code", "relax, program,report").code == 0
    )
    dumps = {path.name: path for path in tmp_path.iterdir()}
    assert set(dumps) == {"m.so", "m.so.relax.py", "m.so.program.txt", "m.so.report.json"}
    assert "R.call_dps_packed" in dumps["m.so.relax.py"].read_text()
    assert "convolution" in dumps["m.so.program.txt"].read_text()
    report = json.loads(dumps["m.so.report.json"].read_text())
    assert report["regions"]


def test_what_a_phase_hands_on_is_printed(tvmc, models, tmp_path):
    result = tvmc("compile", models / "small.onnx", "-o", tmp_path / "m.so", "--dump-after", "memory")
    assert result.code == 0
    assert result.out.startswith('# mxplan: what phase "memory" hands on')
    assert "program mxplan_onednn_0, arena" in result.out
    assert "1 region(s)" in result.out
    wrong = tvmc("compile", models / "small.onnx", "-o", tmp_path / "m.so", "--dump-after", "memroy")
    assert wrong.code != 0 and "memroy" in wrong.err and "borders" in wrong.err


def test_the_relax_dump_of_a_model_for_llvm_is_the_model(tvmc, models, tmp_path):
    flags = ("--target", "llvm", "--dump-code", "relax")
    assert tvmc("compile", models / "small.onnx", "-o", tmp_path / "m.so", *flags).code == 0
    assert "R.nn.conv2d" in (tmp_path / "m.so.relax.py").read_text()


def test_report_says_what_runs_where(tvmc, models, tmp_path):
    result = tvmc("compile", models / "small.onnx", "-o", tmp_path / "m.so", "--report")
    assert result.code == 0
    assert "region" in result.out
    assert "left to TVM" in result.out


def test_quiet_prints_nothing(tvmc, models, tmp_path):
    result = tvmc("compile", models / "small.onnx", "-q", "-o", tmp_path / "m.so")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_a_model_is_known_by_what_is_in_it(tvmc, models, tmp_path):
    model = tmp_path / "model.bin"
    model.write_bytes((models / "small.onnx").read_bytes())
    assert tvmc("compile", model, "-o", tmp_path / "m.so").code == 0
    other = tvmc("compile", model, "--model-format", "relay", "-o", tmp_path / "m.so").error()
    assert "holds onnx, not relay; leave --model-format out" in other
    model.write_bytes(b"0123")
    assert "--model-format onnx" in tvmc("compile", model, "-o", tmp_path / "m.so").error()
    assert "no relay module" in tvmc("compile", model, "--model-format", "relay").error()


@pytest.mark.parametrize("suffix, name", [(".tflite", "TFLite"), (".pt", "PyTorch"), (".h5", "Keras")])
def test_other_formats_are_named(tvmc, tmp_path, suffix, name):
    model = tmp_path / f"model{suffix}"
    model.write_bytes(b"0")
    error = tvmc("compile", model, "-o", tmp_path / "m.so").error()
    assert str(model) in error
    assert name in error
    assert "ONNX" in error


def test_relay_and_its_parameters(tvmc, tmp_path):
    path, weights = tmp_path / "net.relay", tmp_path / "net.npz"
    path.write_text(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {\n"
        "  nn.relu(nn.dense(%x, %w, units=4))\n}\n"
    )
    np.savez(weights, w=np.random.default_rng(1).standard_normal((4, 3), np.float32))
    result = tvmc("compile", path, "--params", weights, "-o", tmp_path / "m.so")
    assert result.code == 0, result.err
    assert "100.0 % of the multiply-adds" in result.out
    path.write_text(path.read_text().replace("nn.relu", "nn.unheard"))
    error = tvmc("compile", path, "--params", weights, "-o", tmp_path / "m.so").error()
    assert f"{path}:3:3: nn.unheard: this operator of Relay's is not read" in error


@pytest.mark.slow
def test_it_runs_as_a_module_in_a_process_of_its_own(models, tmp_path):
    command = [sys.executable, "-m", "tvm_mxplan.tvmc", "compile", models / "small.onnx"]
    command += ["-o", tmp_path / "m.so", "--input-shapes", "image:[1,5,9,9]"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert "small.onnx" in result.stderr
    assert list(tmp_path.iterdir()) == []
