"""The way of a user: compile from anything, call in any way, export, load elsewhere, use the pieces alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan import transform
from tvm_mxplan.core.policies import POLICIES
from tvm_mxplan.execution.signature import Signature
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.report.inspection import region_programs
from tvm_mxplan.report.report import Report
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, relative_l2

pytest.importorskip("onnxruntime")

TOLERANCE = 1e-5
HOST = tvm.target.Target("llvm")


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return zoo.load("tiny")


@pytest.fixture(scope="module")
def ex(model: onnx.ModelProto) -> tvm_mxplan.Executable:
    return offloaded(tvm_mxplan.compile(model))


@pytest.fixture(scope="module")
def x(model: onnx.ModelProto) -> np.ndarray:
    return zoo.random_inputs(model)["image"]


@pytest.fixture(scope="module")
def expected(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    return onnxruntime_outputs(model, {"image": x})[0]


def offloaded(ex: tvm_mxplan.Executable, share: float = 0.99) -> tvm_mxplan.Executable:
    """The executable, after a look at its report: a comparison of TVM with itself would prove nothing."""
    assert ex.report.regions
    assert ex.report.offloaded >= share
    return ex


def close(actual: tvm.runtime.Tensor | np.ndarray, expected: np.ndarray) -> bool:
    actual = actual if isinstance(actual, np.ndarray) else actual.numpy()
    return relative_l2(actual, expected) < TOLERANCE


# --- models in ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_models_from_paths_protos_and_relax(model, x, expected, tmp_path):
    path = tmp_path / "tiny.onnx"
    onnx.save(model, path)
    for source in (path, str(path), model, import_model(model)):
        (y,) = offloaded(tvm_mxplan.compile(source))(x)
        assert close(y, expected)


def test_the_model_given_is_not_changed(model):
    proto, module = model.SerializeToString(), import_model(model)
    before = module.clone()
    offloaded(tvm_mxplan.compile(model))
    offloaded(tvm_mxplan.compile(module))
    assert model.SerializeToString() == proto
    tvm.ir.assert_structural_equal(module, before)


@pytest.mark.parametrize("layouts", POLICIES)
def test_every_layout_policy_gives_the_same(model, x, expected, layouts):
    (y,) = offloaded(tvm_mxplan.compile(model, options={"layouts": layouts}))(x)
    assert close(y, expected)


def test_shapes_replace_those_of_the_model(model):
    ex = offloaded(tvm_mxplan.compile(model, shapes={"image": (2, 3, 48, 32)}))
    assert ex.signature.inputs[0].shape == (2, 3, 48, 32)
    x = zoo.random_images((2, 3, 48, 32))
    whole = onnxruntime_outputs(zoo.load("tiny", batch="n"), {"image": x[:, :, :32]})[0]
    assert ex(x)[0].shape == whole.shape


def test_names_and_types_are_the_models(ex):
    assert str(ex.signature.inputs[0]) == "image: float32[1, 3, 32, 32]"
    assert str(ex.signature.outputs[0]) == "probabilities: float32[1, 10]"


# --- calls --------------------------------------------------------------------------------------------


def test_calls_by_position_and_name_with_numpy_and_tvm_tensors(ex, x, expected):
    tensor = tvm.runtime.tensor(x)
    for outputs in (ex(x), ex(image=x), ex(tensor), ex(image=tensor)):
        assert isinstance(outputs, list)
        (y,) = outputs
        assert isinstance(y, tvm.runtime.Tensor)
        assert close(y, expected)


def test_numpy_views_are_taken_as_they_read(ex, x, expected):
    for view in (np.asfortranarray(x), np.repeat(x, 2, axis=3)[..., ::2], x[..., ::-1].copy()[..., ::-1]):
        assert close(ex(view)[0], expected)


def test_results_are_not_overwritten_by_later_calls(ex, x, expected):
    (first,) = ex(x)
    (second,) = ex(-x)
    assert close(first, expected)
    assert not close(second, expected)


def test_many_threads_call_one_executable(model, ex):
    inputs = [zoo.random_inputs(model, seed)["image"] for seed in range(6)]
    wanted = [ex(x)[0].numpy() for x in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(5):
            if not np.array_equal(ex(inputs[number])[0].numpy(), wanted[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not np.array_equal(wanted[0], wanted[1])


def test_a_symbolic_batch_takes_any_size():
    model = zoo.load("tiny", batch="N")
    ex = offloaded(tvm_mxplan.compile(model))
    assert ex.signature.inputs[0].shape == ("N", 3, 32, 32)
    for batch in (1, 3, 4, 3):
        inputs = zoo.random_inputs(model, seed=batch, batch=batch)
        assert close(ex(**inputs)[0], onnxruntime_outputs(model, inputs)[0])


def test_dimensions_without_names_are_different_ones():
    """TVM's importer alone would take them for one, and refuse all images that are not square."""
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Conv", ["x", "w"], ["c"]), onnx.helper.make_node("Add", ["c", "b"], ["y"])],
        "unnamed",
        [
            onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (None, 3, None, "width")),
            onnx.helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, (1, 1, 1, "width")),
        ],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (None, 17, None, "width"))],
        [onnx.numpy_helper.from_array(zoo.random_images((17, 3, 1, 1)), "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    ex = offloaded(tvm_mxplan.compile(model))
    assert ex.signature.inputs[0].shape == ("x_0", 3, "x_2", "width")
    inputs = {"x": zoo.random_images((2, 3, 5, 7)), "b": zoo.random_images((1, 1, 1, 7))}
    assert close(ex(**inputs)[0], onnxruntime_outputs(model, inputs)[0])


# --- libraries ----------------------------------------------------------------------------------------


def test_an_exported_library_loads_in_this_process(ex, x, tmp_path):
    ex.export(tmp_path / "tiny.so")
    loaded = offloaded(tvm_mxplan.load(tmp_path / "tiny.so"))
    np.testing.assert_array_equal(loaded(x)[0].numpy(), ex(x)[0].numpy())
    assert loaded.signature == ex.signature
    assert loaded.report.regions == ex.report.regions
    assert loaded.report.fallbacks == ex.report.fallbacks
    assert region_programs(loaded.module) == region_programs(ex.module)


STOCK = """
import sys, tvm, numpy as np
from tvm.runtime.vm import VirtualMachine
main = VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())["main"]
np.save(sys.argv[2], main(tvm.runtime.tensor(np.load(sys.argv[3]))).numpy())
print(getattr(tvm, "_RUNTIME_ONLY", False))
"""

OURS = """
import sys, numpy as np, tvm_mxplan
ex = tvm_mxplan.load(sys.argv[1])
assert ex.report.regions
np.save(sys.argv[2], ex(np.load(sys.argv[3]))[0].numpy())
"""


@pytest.mark.parametrize("runtime_only", ["0", "1"])
@pytest.mark.parametrize("script", [STOCK, OURS], ids=["stock", "ours"])
def test_an_exported_library_runs_in_a_fresh_process(ex, x, tmp_path, script, runtime_only):
    ex.export(tmp_path / "tiny.so")
    np.save(tmp_path / "x.npy", x)
    command = [sys.executable, "-c", script, *(tmp_path / name for name in ("tiny.so", "y.npy", "x.npy"))]
    environment = {**os.environ, "TVM_USE_RUNTIME_LIB": runtime_only}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    if script is STOCK:
        assert result.stdout.strip() == str(runtime_only == "1")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), ex(x)[0].numpy())


def test_an_import_does_nothing():
    code = "import sys, tvm_mxplan; sys.exit('tvm' in sys.modules or 'numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_a_library_of_stock_tvm_loads_too(model, x, expected, tmp_path):
    tvm.compile(import_model(model), HOST).export_library(str(tmp_path / "stock.so"))
    stock = tvm_mxplan.load(tmp_path / "stock.so")
    assert not stock.report.regions
    assert [port.name for port in stock.signature.inputs] == ["image"]
    assert close(stock(x)[0], expected)
    assert close(stock(image=x)[0], expected)


def test_an_export_replaces_a_library_in_use(model, x, expected, tmp_path):
    path = tmp_path / "tiny.so"
    offloaded(tvm_mxplan.compile(model)).export(path)
    old = offloaded(tvm_mxplan.load(path))
    offloaded(tvm_mxplan.compile(zoo.load("tiny", seed=1))).export(path)
    new = offloaded(tvm_mxplan.load(path))
    assert close(old(x)[0], expected)
    assert not close(new(x)[0], expected)
    assert [file.name for file in Path(tmp_path).iterdir()] == ["tiny.so"]


# --- reports ------------------------------------------------------------------------------------------


def test_reports_and_signatures_round_trip(ex):
    report = offloaded(ex).report
    again = Report.from_json(json.loads(json.dumps(report.to_json())))
    assert again == report
    assert str(again) == str(report)
    assert Signature.from_json(json.loads(json.dumps(ex.signature.to_json()))) == ex.signature


def test_the_report_counts_what_the_model_has(ex):
    kinds = [step.kind for region in ex.report.regions for step in region.steps]
    assert kinds.count("convolution") == 5
    assert ex.report.multiply_adds == sum(region.multiply_adds for region in ex.report.regions)
    assert not any(region.reference_steps for region in ex.report.regions)


# --- without it, and in pieces ------------------------------------------------------------------------


@pytest.mark.slow
def test_disabled_means_stock_tvm_and_the_same_numbers(model, x, expected, monkeypatch):
    monkeypatch.setenv("TVM_MXPLAN_DISABLE", "1")
    ex = tvm_mxplan.compile(model)
    assert not ex.report.regions
    assert region_programs(ex.module) == ""
    assert close(ex(x)[0], expected)


@pytest.mark.slow
def test_target_llvm_means_stock_tvm(model, x, expected):
    ex = tvm_mxplan.compile(model, target="llvm")
    assert not ex.report.regions
    assert close(ex(x)[0], expected)


def test_the_pipeline_goes_by_its_name_in_tvm_compile(model, x, expected):
    built = tvm.compile(import_model(model), HOST, relax_pipeline="mxplan")
    assert "convolution" in region_programs(built)
    assert close(relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(x)), expected)


def test_the_passes_work_in_anyones_pipeline(model, x, expected):
    passes = [
        transform.FoldConstants(),
        transform.RecoverOperators(),
        transform.SimplifyInference(),
        relax.transform.DecomposeOpsForInference(),
        transform.FoldConstants(),
        transform.NameOperators(),
        transform.DispatchOperators(),
        transform.PartitionRegions(),
        transform.BuildPrograms(),
        transform.InferLayouts(),
        transform.PropagateLayouts(),
        transform.PlanMemory(),
        transform.EmitModules(),
    ]
    module = tvm.transform.Sequential(passes)(import_model(model))
    assert "R.call_dps_packed" in module.script(show_meta=False)
    built = tvm.compile(module, HOST)
    assert "convolution" in region_programs(built)
    assert close(relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(x)), expected)


def test_the_report_counts_what_the_process_had_already(model: onnx.ModelProto) -> None:
    first, second = (tvm_mxplan.compile(model).report for _ in range(2))
    for report in (first, second):
        assert set(report.process_caches) == {"primitives", "weights"}
        assert report.process_caches["primitives"].hits > 0
        assert Report.from_json(report.to_json()).process_caches == report.process_caches
    counts = second.process_caches["primitives"]
    assert counts.misses == 0
    assert f"primitives in this process: {counts.hits} found, 0 made" in str(second)
