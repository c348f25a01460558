"""``deterministic``: the same bits run by run, process by process, compile by compile; or the reason."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_mxplan
from tvm_mxplan.byoc import runtime_functions
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.execution.determinism import Determinism
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.testing import zoo

RUN = """
import hashlib, sys
import numpy as np
import tvm_mxplan
ex = tvm_mxplan.load(sys.argv[1])
x = np.load(sys.argv[2])
print({hashlib.sha256(ex(x)[0].numpy().tobytes()).hexdigest() for _ in range(3)}, ex.determinism_lost)
"""


def convolution() -> onnx.ModelProto:
    """In plain layouts oneDNN multiplies matrices for it, and splits their sums by the number of threads."""
    weights = np.random.default_rng(0).standard_normal((64, 64, 3, 3), np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 64, 14, 14))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 64, 14, 14))],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


X = np.random.default_rng(1).standard_normal((1, 64, 14, 14), np.float32)


def digest(outputs: list) -> str:
    return hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in outputs)).hexdigest()


@pytest.fixture
def two_threads():
    with with_threads(2):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "squeezenet", "shufflenet"])
def test_calls_and_compiles(name):
    model = zoo.load(name)
    inputs = zoo.random_inputs(model)
    seen = set()
    for _ in range(2):
        ex = tvm_mxplan.compile(model, options={"deterministic": True})
        assert ex.report.regions
        seen |= {digest(ex(**inputs)) for _ in range(3)}
        assert ex.determinism_lost == []
    assert len(seen) == 1


@pytest.mark.slow
def test_processes_with_other_numbers_of_threads(tmp_path, two_threads):
    np.save(tmp_path / "x.npy", X)
    answers = {}
    for held in (True, False):
        path = tmp_path / f"held-{held}.so"
        ex = tvm_mxplan.compile(convolution(), options={"layouts": "plain", "deterministic": held})
        (step,) = ex.report.regions[0].steps
        assert "gemm" in step.implementation
        answers[held] = {digest(ex(X))}
        ex.export(path)
        for threads in ("1", "2", "8"):
            answer = subprocess.run(
                [sys.executable, "-c", RUN, str(path), str(tmp_path / "x.npy")],
                env={**os.environ, "OMP_NUM_THREADS": threads},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            digests, _, reasons = answer.strip().partition("} ")
            answers[held].add(digests.strip("{'"))
            assert reasons == ("[]" if held else "['compiled without the option deterministic']")
    assert len(answers[True]) == 1
    if "avx512" in library.isa():
        assert len(answers[False]) > 1  # the option is what holds the bits


def test_the_number_of_threads_is_held_during_a_call_alone(two_threads, monkeypatch):
    ex = tvm_mxplan.compile(convolution(), options={"deterministic": True})
    assert "deterministic with 2 thread(s)" in str(ex.report)
    seen = []
    main = ex._main()
    monkeypatch.setattr(ex, "_main", lambda: lambda *x: (seen.append(library.threads()), main(*x))[1])
    with with_threads(5):
        ex(X)
        with pytest.raises(tvm_mxplan.InvalidInputError):
            ex(X[:, :3])
        assert library.threads() == 5
    assert seen == [2]


def test_what_cannot_be_held_is_said(tmp_path, monkeypatch):
    here = Determinism.here(measured=False)
    assert here.lost() == []
    (reason,) = replace(here, code={**here.code, "oneDNN": "9.9.9"}).lost()
    assert reason == f"oneDNN is {library.version()} here, and was 9.9.9 where it was compiled"
    (reason,) = replace(here, code={**here.code, "instruction set": "none"}).lost()
    assert "instruction set" in reason and "none" in reason
    (reason,) = replace(here, code={**here.code, "another library": "1.0"}).lost()
    assert reason == "another library is not known here, and was 1.0 where it was compiled"
    monkeypatch.setattr(library, "thread_limit", lambda: here.threads - 1)
    assert "OpenMP allows" in here.lost()[0]
    assert "another compile may make others" in str(replace(here, measured=True))


def test_a_primitive_that_is_not_the_one_planned_is_named(monkeypatch):
    ex = tvm_mxplan.compile(convolution(), options={"deterministic": True})
    ex(X)
    assert ex.determinism_lost == []
    stats = runtime_functions.stats
    monkeypatch.setattr(runtime_functions, "stats", lambda region: other_code(stats(region)))
    assert "runs on other:code here, and was planned for" in ex.determinism_lost[0]


def other_code(stats: dict) -> dict:
    for specialization in stats["specializations"]:
        for step in specialization["steps"]:
            step["implementation"] = "other:code"
    return stats


@pytest.mark.slow
def test_a_library_carries_it(tmp_path):
    ex = tvm_mxplan.compile(zoo.load("tiny"), options={"deterministic": True, "tune": "measure"})
    assert ex.report.determinism.measured
    ex.export(tmp_path / "tiny.so")
    loaded = tvm_mxplan.load(tmp_path / "tiny.so")
    assert loaded.report.determinism == ex.report.determinism
    x = zoo.random_images((1, 3, 32, 32))
    assert digest(loaded(x)) == digest(ex(x))
    assert loaded.determinism_lost == []


def test_without_the_option_nothing_is_promised():
    ex = tvm_mxplan.compile(zoo.load("tiny"))
    assert ex.report.determinism is None
    assert ex.determinism_lost == ["compiled without the option deterministic"]


def test_a_wrong_value():
    with pytest.raises(tvm_mxplan.InvalidInputError, match="option deterministic='yes'; expected"):
        tvm_mxplan.Options(deterministic="yes")
