"""Plans by the real cuDNN, for devices that are not here; without the extra ``cuda`` all of it is skipped."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cudnn_stand_in import DEVICES, small_network

import tvm_mxplan
from tvm_mxplan.byoc.backend import DeviceChoice
from tvm_mxplan.byoc.cudnn import library
from tvm_mxplan.byoc.cudnn.backend import Cudnn
from tvm_mxplan.byoc.cudnn.functions import POOLING
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.report.inspection import decoded_programs

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.inputs.quantized import quantized
from _cudnn.cases import CASES

COMES_COMPILED = CASES[:17]
"""Cases whose engines come compiled."""

pytestmark = pytest.mark.skipif(bool(library.why_not()), reason=f"needs cuDNN: {library.why_not()}")


def on(device: str, tf32: bool = False, deterministic: bool = False) -> Cudnn:
    choice = DeviceChoice(str(DEVICES / f"{device}.json"), "", tf32, deterministic)
    backend = Cudnn().for_device(choice).backend
    assert isinstance(backend, Cudnn)
    return backend


@pytest.mark.parametrize("device", ["a100", "h200", "b200"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_every_pattern_has_a_plan(device: str, dtype: str) -> None:
    backend = on(device)
    for case in CASES:
        compiled = case not in COMES_COMPILED
        if dtype not in case.types or (compiled and (device, dtype) != ("h200", "float16")):
            continue  # plans that cuDNN compiles take seconds each
        program = case.program(dtype)
        (info,) = backend.describe(program).steps
        assert info.error == "", case.name
        if info.implementation == POOLING:
            continue  # cuDNN's function, which has no plan
        assert info.implementation.startswith("eng")
        record = backend.plans.record(program, program.steps[0])
        assert library.check_plan(record) == info.implementation


def test_tf32_and_plain_float32_have_other_engines() -> None:
    program = CASES[0].program("float32")
    engines = {on("h200", tf32).describe(program).steps[0].implementation for tf32 in (False, True)}
    assert len(engines) == 2


def test_a_refused_engine_is_not_taken_again() -> None:
    backend, program = on("h200"), CASES[0].program("float16")
    first = backend.describe(program).steps[0]
    backend.refuse(first.descriptor, first.implementation, "wrong")
    second = backend.describe(program).steps[0]
    assert second.error == "" and second.implementation != first.implementation


def test_layouts_that_no_engine_is_asked_for_have_a_reason() -> None:
    program = CASES[0].program("float16")
    plain = program.with_value(0, layout="abcd")
    assert "channels last alone" in on("h200").describe(plain).steps[0].error


@pytest.mark.parametrize(
    "name, dtype",
    [
        ("3x3, 64 channels, a zero point", "int8"),
        ("and integers added", "int8"),
        ("int8 to float32", "int8"),
        ("batch norm in training", "float32"),
        ("its gradients", "float32"),
    ],
)
def test_integers_and_batch_norms_have_engines(name: str, dtype: str) -> None:
    (case,) = [one for one in CASES if one.name == name]
    (info,) = on("h200").describe(case.program(dtype)).steps
    assert info.error == "" and info.implementation.startswith("eng")


def test_a_named_batch_has_plans_for_each_size() -> None:
    model = small_network()
    for port in (model.graph.input[0], model.graph.output[0]):
        port.type.tensor_type.shape.dim[0].dim_param = "n"
    target, device = "cudnn, cuda -arch=sm_90", DEVICES / "h200.json"
    ex = tvm_mxplan.compile(model, target, device_properties=device, bounds={"n": (1, 3)})
    assert len(ex.report.regions) == 3 and not ex.report.fallbacks
    for program in decoded_programs(ex.module):
        for step in program.steps:
            if not isinstance(step.attrs, ir.Reorder):
                assert library.check_plan(step.prepared) == step.implementation


def test_a_network_is_planned_exported_and_loaded(tmp_path: Path) -> None:
    target, device = "cudnn, cuda -arch=sm_90", DEVICES / "h200.json"
    ex = tvm_mxplan.compile(small_network(), target, device_properties=device)
    ex.export(tmp_path / "model.so")
    loaded = tvm_mxplan.load(tmp_path / "model.so")
    steps = [
        step
        for program in decoded_programs(loaded.module)
        for step in program.steps
        if not isinstance(step.attrs, ir.Reorder)
    ]
    assert [step.kind for step in steps] == ["convolution", "convolution", "pooling", "convolution"]
    for step in steps:
        assert library.check_plan(step.prepared) == step.implementation


def test_a_quantised_network_multiplies_integers(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="its tools quantise the network")
    target, device = "cudnn, cuda -arch=sm_90", DEVICES / "h200.json"
    model = quantized(small_network("float32"))
    ex = tvm_mxplan.compile(model, target, device_properties=device, options={"spare_plans": "none"})
    ex.export(tmp_path / "model.so")
    loaded = tvm_mxplan.load(tmp_path / "model.so")
    assert loaded.report.offloaded == 1.0 and not loaded.report.fallbacks
    (program,) = decoded_programs(loaded.module)
    products = [step for step in program.steps if isinstance(step.attrs, ir.Convolution)]
    assert len(products) == 3 and all(step.is_quantized for step in products)
    residual = [getattr(one, "algorithm", "") for one in products[1].post_ops]
    assert "round" in residual, "the sum is in the product"
    for step in products:
        assert library.check_plan(step.prepared) == step.implementation
