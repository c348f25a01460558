"""Steps of oneDNN and of the host library in one region, tuned on another machine over TVM's RPC."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tvm
from host_networks import between_convolutions
from rpc_processes import KEY
from tvm import relax

import tvm_mxplan
from tvm_mxplan import Remote

TARGET = "dnnl, host, llvm"
KINDS = dict.fromkeys(("mean", "subtract", "erf", "strided_slice"), "host")
OPTIONS = {"tune_seconds": 20.0, "machine": "default", "prefer": {**KINDS, "conv2d": "dnnl"}}
"""Measured times decide layouts and implementations, not who runs what."""
X = np.random.default_rng(3).standard_normal((2, 3, 9, 7), np.float32)


def network() -> tvm.IRModule:
    """Two convolutions with a mean over one axis, a function and a backwards slice between them."""
    return between_convolutions(
        lambda y: relax.op.subtract(y, relax.op.mean(y, [2], keepdims=True)),
        lambda y: relax.op.strided_slice(relax.op.erf(y), [2], [8], [-10], [-1]),
    )


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """By TVM alone."""
    return tvm_mxplan.compile(network(), "llvm")(X)[0].numpy()


def of_both(ex: tvm_mxplan.Executable) -> bool:
    """Whether steps of both libraries stand in the one region that there is."""
    (region,) = ex.report.regions
    kinds = [step.kind for step in region.steps]
    ours = ("eltwise", "reduction", "strided_slice")
    return kinds.count("convolution") == 2 and set(ours) <= set(kinds)


def tuned(ex: tvm_mxplan.Executable) -> dict[str, int]:
    report = ex.report.tuning
    assert report is not None
    return dict(report.measured)


def test_tuned_over_there(tmp_path: Path, pi: str, expected: np.ndarray) -> None:
    ex = tvm_mxplan.tune(
        network(), tmp_path / "records", TARGET, options=OPTIONS, remote=Remote(tracker=pi, key=KEY)
    )
    assert of_both(ex) and tuned(ex)["operators"] > 3
    np.testing.assert_allclose(ex(X)[0].numpy(), expected, atol=1e-5)
    ex.export(tmp_path / "both.so")
    np.testing.assert_allclose(tvm_mxplan.load(tmp_path / "both.so")(X)[0].numpy(), expected, atol=1e-5)
