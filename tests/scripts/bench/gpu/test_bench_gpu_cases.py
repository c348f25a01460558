"""Cases of scripts/bench gpu, right answers and fresh processes: all that needs no GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.gpu import answers, cases, main, starts
from _bench.gpu.cases import Case
from _bench.gpu.engines import ENGINES

import tvm_mxplan
from tvm_mxplan.execution import machine
from tvm_mxplan.options import Options
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.float64 import float64_outputs
from tvm_mxplan.testing.reference import relative_l2


def file_of(folder: Path, *shape: int | str, operator: str = "Relu") -> str:
    """A file of one operator on an input of a shape."""
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "g", sides[:1], sides[1:])
    path = folder / "made.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), str(path))
    return str(path)


def case_of(name: str, folder: Path, batch: int = 2, kind: str = "f16") -> Case:
    return Case(name, batch, kind, *cases.read(name, batch), folder, folder / "device.json")


@pytest.mark.parametrize(
    "shape, measured", [(("N", 3, 5), [1, 8]), ((3, 5), [3]), ((), [1])], ids=["named", "fixed", "scalar"]
)
def test_a_file_has_the_batches_that_it_permits(
    tmp_path: Path, shape: tuple[int | str, ...], measured: list[int]
) -> None:
    assert cases.batches(file_of(tmp_path, *shape), [1, 8]) == measured
    assert cases.batches("resnet50", [1, 8]) == [1, 8]


def test_a_file_is_read_at_a_batch(tmp_path: Path) -> None:
    case = case_of(file_of(tmp_path, "N", 3, 5, 7), tmp_path, batch=4)
    assert {name: value.shape for name, value in case.inputs.items()} == {"x": (4, 3, 5, 7)}
    assert case.title == "made f16"
    dims = case.model().graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [4, 3, 5, 7]


def test_another_dimension_without_a_size_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"made\.onnx: input 'x' has a dimension 'seq' without a size"):
        cases.read(file_of(tmp_path, "N", "seq"), 2)


def test_a_model_of_each_use_is_its_own(tmp_path: Path) -> None:
    case = case_of(zoo.TINY, tmp_path)
    wide, narrow = TensorProto.FLOAT, TensorProto.FLOAT16
    for _ in range(2):
        assert {tensor.data_type for tensor in case.model().graph.initializer} >= {narrow}
        assert wide not in {tensor.data_type for tensor in case.model().graph.initializer}
        assert narrow not in {tensor.data_type for tensor in case.source.graph.initializer}
    assert [value.dtype for value in case.feeds()] == [np.float16]
    assert [value.dtype for value in case_of(zoo.TINY, tmp_path, kind="tf32").feeds()] == [np.float32]


def test_without_pytorch_on_a_gpu_the_answer_is_float64_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    case = case_of(zoo.TINY, tmp_path)
    (found,) = answers.right_answer(case)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, float64_outputs(case.source, case.inputs)[0])
    assert "; held against float64 on the CPU" in capsys.readouterr().err


def test_a_file_that_pytorch_lacks_is_held_against_onnxruntime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")

    def lacks(case: Case) -> list[np.ndarray]:
        raise NotImplementedError("Softsign has no form in PyTorch here")

    monkeypatch.setattr(answers, "by_torch", lacks)
    case = case_of(file_of(tmp_path, "N", 6, operator="Softsign"), tmp_path)
    (found,) = answers.right_answer(case)
    x = case.inputs["x"].astype(np.float64)
    assert relative_l2(found, x / (1 + abs(x))) < 1e-6
    assert (
        "NotImplementedError: Softsign has no form in PyTorch here; held against onnxruntime in float32"
        in capsys.readouterr().err
    )


def test_what_nothing_can_answer_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(RuntimeError, match=r"float64 on the GPU: .*; onnxruntime in float32: "):
        answers.right_answer(case_of(file_of(tmp_path, "N", 6), tmp_path))


def test_no_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "no_model.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(SystemExit) as ended:
        main.main(["--models", str(path)])
    assert ended.value.code == 2 and "no_model.onnx: no ONNX model (" in capsys.readouterr().err


def filters(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    return [tensor for tensor in model.graph.initializer if len(tensor.dims) == 4]


@pytest.mark.parametrize(
    "name, kind, wanted",
    [
        ("ours", "f16", {"tf32": False, "cuda_graphs": True}),
        ("ours", "tf32", {"tf32": True, "cuda_graphs": True}),
        ("ours_steps", "f32", {"tf32": False, "cuda_graphs": False}),
        ("ours_tuned", "f16", {"tf32": False, "cuda_graphs": True, "tune": "measure"}),
    ],
)
def test_ours_differ_by_their_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str, wanted: dict[str, object]
) -> None:
    case, compiled = case_of(zoo.TINY, tmp_path, kind=kind), []

    def compile(model: onnx.ModelProto, target: str, **given: Any) -> Callable[..., list[np.ndarray]]:
        (dtype,) = {helper.tensor_dtype_to_np_dtype(tensor.data_type) for tensor in filters(model)}
        compiled.append((dtype, target, given["device_properties"]))
        Options(**given["options"])  # names that are options
        assert given["options"] == {"cache": "disabled", **wanted}
        return lambda *tensors: list(tensors)

    monkeypatch.setattr(tvm_mxplan, "compile", compile)
    monkeypatch.setattr(machine, "tensor_of", lambda value, gpu: value if gpu else None)
    runner = ENGINES[name].prepare(case)
    assert compiled == [(cases.KINDS[kind], "cudnn, cuda", case.device)]
    assert [value.dtype for value in runner.run()] == [cases.KINDS[kind]] and ENGINES[name].ours


@pytest.mark.slow
def test_fresh_processes_answer(tmp_path: Path) -> None:
    """For the CPU: the process asks the library where it runs, and compiles for the target that is named."""
    case = case_of(zoo.TINY, tmp_path, kind="f32")
    executable = tvm_mxplan.compile(case.model(), options={"cache": "disabled"})
    seconds = starts.first_answers_s(executable, case, "dnnl, llvm")
    assert tuple(seconds) == starts.WAYS and all(0.05 < one < starts.LIMIT for one in seconds.values())
    assert list((tmp_path / "kept" / "tuning").iterdir())


@pytest.mark.slow
def test_a_process_without_an_answer_is_told(tmp_path: Path) -> None:
    class Broken:
        def export(self, path: Path) -> None:
            path.write_bytes(b"no library")

    case = case_of(zoo.TINY, tmp_path, kind="f32")
    with pytest.raises(RuntimeError, match=r"a process ended with status 1 without an answer: .*Error"):
        starts.first_answers_s(Broken(), case, "dnnl, llvm")  # type: ignore[arg-type]
