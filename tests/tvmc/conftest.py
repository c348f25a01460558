"""Models and libraries for the tests of the command line, and a way to call it that sees all it prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_mxplan
from tvm_mxplan.tvmc.main import main


@dataclass(frozen=True)
class Result:
    """What one command did."""

    code: int
    out: str
    err: str

    def error(self, code: int = 1) -> str:
        """The one line on stderr of a command that failed with ``code`` and printed nothing else."""
        assert (self.code, self.out) == (code, "")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err


Tvmc = Callable[..., Result]


@pytest.fixture
def tvmc(capfd: pytest.CaptureFixture[str]) -> Tvmc:
    """``tvmc("run", path)`` in this process; prints of C++ count too."""

    def call(*args: object) -> Result:
        capfd.readouterr()
        code = main([str(arg) for arg in args])
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return call


def small_model(batch: int | str = 1) -> onnx.ModelProto:
    """image -> convolution, ReLU -> features, with odd channels."""
    weights = np.random.default_rng(0).standard_normal((17, 3, 3, 3), np.float32)
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["features"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, (batch, 3, 9, 9))],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, (batch, 17, 9, 9))],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small.onnx and batch.onnx (of a symbolic batch) and libraries of both; leave it be."""
    folder = tmp_path_factory.mktemp("models")
    for name, batch in (("small", 1), ("batch", "N")):
        onnx.save(small_model(batch), folder / f"{name}.onnx")
        ex = tvm_mxplan.compile(folder / f"{name}.onnx")
        assert [step.kind for region in ex.report.regions for step in region.steps].count("convolution") == 1
        ex.export(folder / f"{name}.so")
    return folder
