"""Models and libraries for the tests of the command line, and a way to call it that sees all it prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from tvmc_helpers import Result, small_model

import tvm_mxplan
from tvm_mxplan.tvmc.main import main

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
