"""scripts/bench gpu: no figure without a GPU, and a row for each model where there is one (played here)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.harness import gpu_engines
from _bench.harness.engines import ENGINES
from _bench.harness.files import read_arrays
from _bench.harness.schedule import EngineResult
from _bench.whole import gpu
from _shared.half_models import half

from tvm_mxplan.byoc import registry


def test_without_a_gpu_it_says_that_there_is_no_figure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry.engine("cudnn"), "absent", lambda: "no GPU is here (the driver knows none)")
    assert gpu.main([]) == gpu.NO_GPU != 0
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "bench gpu: no GPU is here (the driver knows none); no figure exists without a GPU\n"


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Sequence[str], dict[str, Any]]]:
    """A GPU, and the answers of engines on it; what is asked is noted."""
    asked: list[tuple[Any, Sequence[str], dict[str, Any]]] = []
    engine = registry.engine("cudnn")
    monkeypatch.setattr(engine, "absent", lambda: "")
    monkeypatch.setattr(engine, "device_properties", lambda: '{"deviceName": "a GPU"}')

    def measure(
        configuration: Any, engines: Sequence[str], files: Any, *_: object
    ) -> dict[str, EngineResult]:
        noted = {
            "expected": read_arrays(files.expected),
            "device": gpu_engines.device_file(str(files.artifact(engines[0]))).read_text(),
        }
        asked.append((configuration, engines, noted))
        ours, torch, tvm = (
            EngineResult(name, rounds=[[0.001 * at]] * 3) for at, name in enumerate(engines, 1)
        )
        ours.relative_l2, ours.compile_s, ours.imports_s, ours.loads_s = 3e-4, 12.5, [0.5, 0.4], [1.0, 0.25]
        tvm.status = "failed"
        return {one.engine: one for one in (ours, torch, tvm)}

    monkeypatch.setattr(gpu, "measure", measure)
    return asked


def test_each_model_is_a_row(
    played: list[tuple[Any, Sequence[str], dict[str, Any]]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpu.main(["--models", "squeezenet", "--batch", "1,2", "--kinds", "f16", "--rounds", "3"]) == 0
    assert [configuration.batch for configuration, _, _ in played] == [1, 2]
    for configuration, engines, noted in played:
        assert list(engines) == ["cudnn_f16", "torch_cuda_f16", "tvm_cuda_f16"]
        assert set(engines) <= gpu_engines.EVERY.keys()
        assert noted["expected"][0].shape[0] == configuration.batch
        assert noted["expected"][0].dtype == np.float64
        assert noted["device"] == '{"deviceName": "a GPU"}'
    header, _, first, second = capsys.readouterr().out.splitlines()
    cells = dict(zip(header.strip("| ").split(" | "), first.strip("| ").split(" | "), strict=True))
    assert (
        cells["model"] == "squeezenet f16"
        and cells["batch"] == "1"
        and second.startswith("| squeezenet f16 | 2")
    )
    assert cells["ours / torch"].startswith("0.50") and cells["error"] == "3.0e-04"
    assert (cells["compile s"], cells["first answer s"]) == ("12.5", "0.65")


@pytest.mark.parametrize("given", [["--models", "nobody"], ["--kinds", "f8"], ["--batch", "one"]])
def test_what_is_not_known_is_refused(given: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        gpu.main(given)
    assert ended.value.code == 2


def test_engines_of_gpus_are_named_apart() -> None:
    assert not ENGINES.keys() & gpu_engines.GPU_ENGINES.keys()
    assert len(gpu_engines.GPU_ENGINES) == 6


def test_a_model_in_float16_computes_as_its_float32(tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    random = np.random.default_rng(3)
    weights = random.standard_normal((4, 3)).astype("float32")
    nodes = [
        helper.make_node("Cast", ["i"], ["x"], to=TensorProto.FLOAT),
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.float32([0.5]))),
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "c"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("i", TensorProto.INT32, [2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    wide = model.SerializeToString()
    narrow = half(model)
    onnx.checker.check_model(narrow, full_check=True)
    feeds = {"i": random.integers(-3, 4, (2, 4)).astype("int32")}
    answers = [
        ort.InferenceSession(one, providers=["CPUExecutionProvider"]).run(None, feeds)[0]
        for one in (wide, narrow.SerializeToString())
    ]
    assert answers[1].dtype == np.float16
    np.testing.assert_allclose(answers[1], answers[0], rtol=2e-2, atol=2e-2)
