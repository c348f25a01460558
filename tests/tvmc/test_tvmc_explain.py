"""``tvmc compile --explain`` and ``tvmc show --explain``: all operators, or one."""

from __future__ import annotations

import pytest

import tvm_mxplan


@pytest.mark.parametrize("flags", [("--explain", "MODEL"), ("MODEL", "--explain"), ("MODEL", "--explain=")])
def test_compile_explains_every_operator(tvmc, models, tmp_path, flags):
    """Also where the file follows the flag, which could be taken for an operator's name."""
    words = [models / "small.onnx" if flag == "MODEL" else flag for flag in flags]
    result = tvmc("compile", *words, "-o", tmp_path / "m.so")
    assert (result.code, result.err) == (0, "")
    assert result.out.strip() == tvm_mxplan.load(tmp_path / "m.so").report.explain()
    assert "conv2d_0 runs in onednn: direct, " in result.out
    assert "relu_0 runs inside conv2d_0, in onednn" in result.out
    assert "out  llvm" in result.out


def test_compile_explains_one_operator(tvmc, models, tmp_path):
    result = tvmc("compile", models / "small.onnx", "-o", tmp_path / "m.so", "--explain", "conv2d_0")
    assert result.code == 0
    assert result.out.startswith("conv2d_0 runs in onednn")
    assert "relu_0" not in result.out


def test_compile_explains_what_comes_from_a_node(tvmc, models, tmp_path):
    whole = tvmc("compile", models / "small.onnx", "-o", tmp_path / "m.so", "--explain").out
    node = next(line for line in whole.splitlines() if line.startswith("  from Conv ")).split()[-1]
    result = tvmc("show", tmp_path / "m.so", f"--explain={node}")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("conv2d_0 runs in onednn") and f"  from Conv {node}" in result.out
    assert "relu_0" not in result.out


def test_explain_comes_behind_the_report(tvmc, models, tmp_path):
    out = tvmc("compile", models / "small.onnx", "-o", tmp_path / "m.so", "--explain", "--report").out
    report = tvm_mxplan.load(tmp_path / "m.so").report
    assert out.index("multiply-adds offloaded") < out.index(report.explain())


def test_show_explains_what_the_library_carries(tvmc, models):
    report = tvm_mxplan.load(models / "small.so").report
    assert tvmc("show", models / "small.so", "--explain").out.strip() == report.explain()
    assert tvmc("show", "--explain", "relu_0", models / "small.so").out.strip() == report.explain("relu_0")


def test_an_operator_that_is_not_there_is_one_line(tvmc, models):
    error = tvmc("show", models / "small.so", "--explain", "conv2d_7").error()
    assert "no operator 'conv2d_7'; the nearest are conv2d_0" in error


def test_an_order_and_a_preference_reach_the_library(tvmc, models, tmp_path):
    flags = ("--target", "llvm, dnnl", "--opt", "prefer=conv2d=dnnl", "--explain")
    out = tvmc("compile", models / "small.onnx", "-o", tmp_path / "m.so", *flags).out
    assert out.startswith("order of preference: llvm, onednn\n")
    assert "conv2d_0 runs in onednn" in out
    assert "relu_0 runs in llvm\n  out  onednn  after llvm in the order of preference" in out
