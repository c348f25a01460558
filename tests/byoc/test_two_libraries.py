"""Two libraries in one function: oneDNN, and one that is made of TVM's loops, in either order."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import loops_backend
import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan import InvalidInputError
from tvm_mxplan.byoc import registry
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.layout.layout import plain_layout

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "adding_a_backend.md"
X = np.random.default_rng(1).standard_normal((2, 3, 9, 7), np.float32)


@pytest.fixture(autouse=True)
def loops() -> Iterator[None]:
    with registry.registered(loops_backend.LIBRARY):
        yield


def network(batch: object = 2) -> tvm.IRModule:
    """Two convolutions with operators between, behind and before them that both libraries take."""
    rng = np.random.default_rng(0)
    shapes = (17, 3, 3, 3), (5, 17, 3, 3)
    weights = [relax.const(rng.standard_normal(shape, np.float32) / 5) for shape in shapes]
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((batch, 3, 9, 7), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.relu(x))
            y = builder.emit(relax.op.nn.conv2d(y, weights[0], padding=1))
            y = builder.emit(relax.op.tanh(y))
            y = builder.emit(relax.op.exp(y))
            y = builder.emit(relax.op.nn.relu(y))
            y = builder.emit(relax.op.nn.conv2d(y, weights[1], padding=1))
            y = builder.emit_output(relax.op.exp(y))
        builder.emit_func_output(y)
    return builder.get()


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """By TVM alone."""
    return tvm_mxplan.compile(network(), "llvm")(X)[0].numpy()


def kinds(ex: tvm_mxplan.Executable, library: str) -> list[list[str]]:
    """Kinds of steps in each region of one library."""
    regions = [one for one in ex.report.regions if one.backend == f"mxplan_{library}"]
    return [[step.kind for step in one.steps if step.kind != "reorder"] for one in regions]


ORDERS = {
    "loops, dnnl, llvm": ({}, [["eltwise"], ["eltwise", "eltwise"], ["eltwise"]]),
    "dnnl, loops, llvm": ({"exp": "loops"}, [["eltwise"], ["eltwise"]]),
}


@pytest.mark.parametrize("target", ORDERS)
def test_both_run_in_one_function(target: str, expected: np.ndarray, tmp_path: Path) -> None:
    prefer, of_loops = ORDERS[target]
    ex = tvm_mxplan.compile(network(), target, options={"prefer": prefer})
    assert sorted(kinds(ex, "loops")) == sorted(of_loops)
    assert sum(region.count("convolution") for region in kinds(ex, "onednn")) == 2
    assert {one.operator: one.chosen.backend for one in ex.report.dispatch if one.kind == "exp"} == {
        "exp_0": "loops",
        "exp_1": "loops",
    }
    assert ex.report.fallbacks == ()
    np.testing.assert_allclose(ex(X)[0].numpy(), expected, rtol=1e-4, atol=1e-5)
    ex.export(tmp_path / "two.so")
    np.save(tmp_path / "x.npy", X)
    code = (
        "import sys, numpy as np, tvm_mxplan\n"
        "ex = tvm_mxplan.load(sys.argv[1])\n"
        "np.save(sys.argv[3], ex(np.load(sys.argv[2]))[0].numpy())\n"
    )
    paths = [tmp_path / name for name in ("two.so", "x.npy", "y.npy")]
    subprocess.run([sys.executable, "-c", code, *map(str, paths)], check=True)  # which knows oneDNN alone
    np.testing.assert_array_equal(np.load(paths[-1]), ex(X)[0].numpy())


def test_one_phase_is_done_for_both_before_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    options = {"dump_after": "programs,emit", "cache": "disabled"}
    tvm_mxplan.compile(network(), "loops, dnnl, llvm", options=options)
    _, programs, emitted = re.split(r"# mxplan: what phase .* hands on", capsys.readouterr().out)
    assert {"mxplan_loops", "mxplan_onednn"} <= set(re.findall(r"^program (\w+)_\d", programs, re.MULTILINE))
    assert "call_dps_packed" not in programs
    assert {"mxplan_loops", "mxplan_onednn"} <= set(re.findall(r'call_dps_packed\("(\w+)_\d', emitted))


def test_the_kernels_of_both_are_verified() -> None:
    options = {"verify": "all", "cache": "disabled"}
    ex = tvm_mxplan.compile(network(), "loops, dnnl, llvm", options=options)
    ran = {step.implementation for region in ex.report.regions for step in region.steps}
    assert ran > {loops_backend.IMPLEMENTATION}
    assert ex.report.verification.checked >= len(ran) and not ex.report.verification.refused
    assert not ex.report.verification.unchecked


def test_a_wrong_kernel_of_one_leaves_the_other_as_it_is(
    monkeypatch: pytest.MonkeyPatch, expected: np.ndarray
) -> None:
    def minus(step: object, source: tvm.te.Tensor) -> tvm.te.Tensor:
        return tvm.te.compute(source.shape, lambda *at: -source(*at), "minus")

    monkeypatch.setattr(loops_backend, "_loop", minus)
    options = {"verify": "all", "cache": "disabled"}
    ex = tvm_mxplan.compile(network(), "loops, dnnl, llvm", options=options)
    assert kinds(ex, "loops") == []
    assert sum(region.count("convolution") for region in kinds(ex, "onednn")) == 2
    assert {refusal.implementation for refusal in ex.report.verification.refused} == {"tvm:loops"}
    reasons = {fallback.operator: fallback.reason for fallback in ex.report.fallbacks}
    assert "wrong on this machine" in reasons["relax.exp"]
    np.testing.assert_allclose(ex(X)[0].numpy(), expected, rtol=1e-4, atol=1e-5)


def test_what_one_refuses_the_other_gets() -> None:
    n = tvm.tirx.Var("n", "int64")
    ex = tvm_mxplan.compile(network(n), "loops, dnnl, llvm")
    assert kinds(ex, "loops") == []
    assert {one.chosen.backend for one in ex.report.dispatch} == {"onednn"}
    out = [one.out for one in ex.report.dispatch["exp_0"].candidates if one.backend == "loops"]
    assert out == ["loops take float32 of fixed shapes"]
    assert ex(X)[0].numpy().shape == (2, 5, 9, 7)


@pytest.mark.slow
def test_whole_plans_of_both_are_compared(expected: np.ndarray) -> None:
    options = {"tune": "measure", "tune_for": "energy", "cache": "disabled", "convolutions": "direct"}
    ex = tvm_mxplan.compile(network(), "loops, dnnl, llvm", options=options)
    assert ex.report.tuning.measured["plans"] > 1
    assert kinds(ex, "loops") and kinds(ex, "onednn")
    np.testing.assert_allclose(ex(X)[0].numpy(), expected, rtol=1e-4, atol=1e-5)


def test_a_layout_is_forced_on_a_step_of_the_second() -> None:
    layers = {"conv2d_1": "nhwc"}
    ex = tvm_mxplan.compile(network(), "loops, dnnl, llvm", options={"layers": layers})
    assert ("conv2d_1",) in {region.layouts.forced for region in ex.report.regions}
    with pytest.raises(InvalidInputError, match="conv2d_7"):
        tvm_mxplan.compile(network(), "loops, dnnl, llvm", options={"layers": {"conv2d_7": "nhwc"}})


def test_finished_compilations_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: np.ndarray
) -> None:
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path))
    outcomes = []
    for _ in range(2):
        ex = tvm_mxplan.compile(network(), "loops, dnnl, llvm", options={"cache": "on_compile"})
        outcomes.append(ex.report.cache.outcome)
        np.testing.assert_allclose(ex(X)[0].numpy(), expected, rtol=1e-4, atol=1e-5)
    assert outcomes == ["miss", "hit"]
    assert kinds(ex, "loops") and kinds(ex, "onednn")


def test_names_are_taken_once() -> None:
    with pytest.raises(ValueError, match="loops is taken"):
        registry.register(loops_backend.LIBRARY)
    known = "known are dnnl, onednn, mkldnn, cudnn, host, loops"
    with pytest.raises(InvalidInputError, match=f"unknown part 'lops'; {known}"):
        tvm_mxplan.compile(network(), "lops, llvm")


def test_what_the_planner_says_of_other_layouts() -> None:
    """Both sides give one answer for a program: plain layouts, bytes, an error for what is neither."""
    from tvm_mxplan.core.program import program as ir

    def asked(layout: str, algorithm: str) -> ir.Program:
        values = tuple(
            ir.Value(name, (2, 17, 5, 3), "float32", kind, layout, 0)
            for name, kind in (("x", "input"), ("y", "output"))
        )
        step = ir.Step("s", ir.Eltwise(algorithm, 0.0, 0.0), (ir.Operand("src", 0), ir.Operand("dst", 1)))
        return ir.Program("p", values, (step,))

    plain = plain_layout(4)
    ours = loops_backend.Loops().describe(asked(plain, "relu"))
    theirs = OneDNN().describe(asked(plain, "relu"))
    assert ours.values == theirs.values
    assert not ours.steps[0].error and ours.steps[0].implementation == loops_backend.IMPLEMENTATION
    for question in (asked("acdb", "relu"), asked(plain, "tanh")):
        assert "plain tensors" in loops_backend.Loops().describe(question).steps[0].error


def test_the_document_is_the_library_that_is_tested() -> None:
    """The blocks of the page, put together, are the statements of the file."""
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    tested = ast.parse(Path(loops_backend.__file__).read_text())
    del tested.body[0]  # its docstring
    assert ast.dump(ast.parse("\n".join(blocks))) == ast.dump(tested)
