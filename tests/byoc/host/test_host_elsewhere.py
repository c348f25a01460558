"""Steps of oneDNN and of the host library in one region, tuned on another machine over TVM's RPC."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from host_networks import PREFER, X, for_both, ran_by_both
from rpc_processes import KEY

import tvm_mxplan
from tvm_mxplan import Remote

TARGET = "dnnl, host, llvm"
OPTIONS = {"tune_seconds": 20.0, "machine": "default", "prefer": PREFER}
"""Measured times decide layouts and implementations, not who runs what."""


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """By TVM alone."""
    return tvm_mxplan.compile(for_both(), "llvm")(X)[0].numpy()


def tuned(ex: tvm_mxplan.Executable) -> dict[str, int]:
    report = ex.report.tuning
    assert report is not None
    return dict(report.measured)


@pytest.mark.slow
def test_tuned_over_there(tmp_path: Path, pi: str, expected: np.ndarray) -> None:
    ex = tvm_mxplan.tune(
        for_both(), tmp_path / "records", TARGET, options=OPTIONS, remote=Remote(tracker=pi, key=KEY)
    )
    assert ran_by_both(ex) and tuned(ex)["operators"] > 3
    np.testing.assert_allclose(ex(X)[0].numpy(), expected, atol=1e-5)
    ex.export(tmp_path / "both.so")
    np.testing.assert_allclose(tvm_mxplan.load(tmp_path / "both.so")(X)[0].numpy(), expected, atol=1e-5)
