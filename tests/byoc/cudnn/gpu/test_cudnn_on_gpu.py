"""Answers of regions on the GPU that is here, against float64; skipped where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from cudnn_stand_in import small_network

import tvm_mxplan
from tvm_mxplan.byoc.cudnn import library
from tvm_mxplan.report.inspection import decoded_programs

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The properties of the GPU that is here."""
    path = tmp_path_factory.mktemp("device") / "gpu.json"
    path.write_text(json.dumps(library.device_properties()))
    return path


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-4), ("float16", 2e-2)])
def test_a_network_computes_what_its_model_says(
    here: Path, tmp_path: Path, dtype: str, tolerance: float
) -> None:
    model = small_network(dtype)
    x = np.random.default_rng(0).standard_normal((2, 3, 14, 10)).astype(dtype)
    ex = tvm_mxplan.compile(model, "cudnn, cuda", device_properties=here)
    assert ex.report.offloaded == 1 and not ex.report.fallbacks
    assert any(step.prepared for program in decoded_programs(ex.module) for step in program.steps)
    ex.export(tmp_path / "model.so")
    (right,) = onnxruntime.InferenceSession(
        small_network("float32").SerializeToString(), providers=["CPUExecutionProvider"]
    ).run(None, {"x": x.astype("float32")})
    for made in (ex, tvm_mxplan.load(tmp_path / "model.so")):
        for _ in range(3):
            (found,) = made(x)
            error = np.linalg.norm(found.numpy().astype("float64") - right) / np.linalg.norm(right)
            assert error < tolerance
