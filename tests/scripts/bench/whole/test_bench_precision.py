"""scripts/bench precision: its table, with engines that are there and one that is not."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
SCRIPTS = Path(__file__).resolve().parents[4] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench.harness.schedule import EngineResult  # noqa: E402
from _bench.inputs.encoder import encoder_model  # noqa: E402
from _bench.whole import precision  # noqa: E402
from _shared.exact import exact_outputs  # noqa: E402

from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2  # noqa: E402


def result(engine: str, seconds: list[float], **fields: object) -> EngineResult:
    made = EngineResult(engine, relative_l2=1e-3, processor_s=[2 * one for one in seconds], **fields)
    made.rounds = [[one, one, one] for one in seconds]
    return made


def test_ratios_are_of_the_same_round_and_processors_of_the_least(tmp_path: Path) -> None:
    results = {
        "ours": result("ours", [0.010, 0.020, 0.040]),
        "ours_bf16": result("ours_bf16", [0.005, 0.010, 0.030]),
        "openvino_bf16": EngineResult("openvino_bf16", "not installed"),
    }
    row = precision._row("net", results, precision.Files(tmp_path))
    named = dict(zip(precision._HEADER, row, strict=True))
    assert named["model"] == "net" and named["f32 ms"] == "20.00"
    assert named["bf16 / f32"].startswith("0.50 (")
    assert row[4] == "0.50" and row[7] == "-"
    assert named["OpenVINO ms"] == "not installed" and named["bf16 / OpenVINO"] == "-"
    assert named["arena bytes"] == "0 -> 0"


def test_the_encoder_in_float64_is_what_onnxruntime_gives() -> None:
    model = encoder_model(batch=1, layers=1)
    inputs = {"x": np.random.default_rng(2).standard_normal((1, 128, 768)).astype("float32")}
    error = worst_relative_l2(onnxruntime_outputs(model, inputs), exact_outputs(model, inputs))
    assert 0 < error < 1e-5
