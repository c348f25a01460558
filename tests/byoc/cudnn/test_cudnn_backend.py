"""Compiling for a GPU that is not here: regions, graphs, plans inside the library, and what running says.

cuDNN's planner is played by a stand-in, so nothing here needs cuDNN; ``test_cudnn_plans`` asks the real one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cudnn_stand_in import DEVICES, StandIn, small_network
from onnx import numpy_helper
from tvm import relax

import tvm_mxplan
from tvm_mxplan.byoc import registry
from tvm_mxplan.byoc.cudnn import library
from tvm_mxplan.byoc.cudnn.plans.record import digest_of
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.report.inspection import decoded_programs, failed_plans, region_modules

TARGET = "cudnn, cuda -arch=sm_90"


def compiled(dtype: str = "float16", **options: object) -> tvm_mxplan.Executable:
    return tvm_mxplan.compile(
        small_network(dtype), TARGET, device_properties=DEVICES / "h200.json", options=options
    )


def convolutions(ex: tvm_mxplan.Executable) -> list[tuple[ir.Program, ir.Step]]:
    return [
        (program, step)
        for program in decoded_programs(ex.module)
        for step in program.steps
        if isinstance(step.attrs, ir.Convolution)
    ]


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_products_are_in_regions_with_what_stands_behind_them(planner: StandIn, dtype: str) -> None:
    found = convolutions(compiled(dtype))
    assert len(found) == 3
    by_inputs = {program.values[step.operand("src")].shape[1:]: (program, step) for program, step in found}
    program, second = by_inputs[17, 7, 5]
    added, activation = second.post_ops
    assert isinstance(added, ir.BinaryPostOp) and isinstance(activation, ir.EltwisePostOp)
    assert {program.values[number].dtype for number in program.reads(second)} == {dtype}
    assert program.values[second.dst].layout == "acdb"
    _, dense = by_inputs[17, 1, 1]
    assert dense.post_ops == () and dense.operand("bias") >= 0


def test_types_are_the_models_whatever_precision_is_asked_for(planner: StandIn) -> None:
    ex = compiled("float32", precision="bf16")
    found = convolutions(ex)
    types = {program.values[number].dtype for program, step in found for number in program.reads(step)}
    assert len(found) == 3 and types == {"float32"}
    assert "the types that the model states, bfloat16 is not chosen" in str(ex.report)


def test_filters_are_stored_as_engines_read_them(planner: StandIn) -> None:
    ex = compiled()
    model = small_network()
    weights = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    for program, step in convolutions(ex):
        value = program.values[step.operand("weights")]
        assert value.layout == "acdb"
        constant = program.values[program.root(step.operand("weights"))]
        assert constant.kind == "constant"
        known = [array for array in weights.values() if array.ndim == 4 and array.shape == value.shape]
        if known:
            assert constant.shape == known[0].transpose(0, 2, 3, 1).shape


def test_graphs_are_asked_for_the_device_of_the_file(planner: StandIn) -> None:
    compiled()
    assert planner.requests
    for request in planner.requests:
        assert request["sm"] == 90 and request["device"]["multiProcessorCount"] == 132
        stored = {one["uid"]: one for one in request["tensors"]}
        for node in request["nodes"]:
            assert {*node["in"], node["out"]} <= stored.keys()
        assert [one["uid"] for one in request["tensors"] if one["virtual"]] == [
            node["out"] for node in request["nodes"][:-1]
        ]
    # A residual stands before the bias, the activation last.
    longest = max((request["nodes"] for request in planner.requests), key=len)
    assert [node.get("mode", node["kind"]) for node in longest] == ["convolution", "ADD", "ADD", "RELU_FWD"]
    assert longest[1]["in"][1] != longest[2]["in"][1]


def test_each_graph_is_asked_for_once(planner: StandIn) -> None:
    compiled()
    texts = [repr(request) for request in planner.requests]
    assert len(texts) == len(set(texts)) > 3  # parts of what is fused are asked for as well


@pytest.mark.parametrize("options, notes", [({}, True), ({"tf32": True}, False)])
def test_float32_keeps_its_digits_unless_tf32_is_asked_for(
    planner: StandIn, options: dict[str, bool], notes: bool
) -> None:
    compiled("float32", **options)
    products, others = [], []
    for request in planner.requests:
        kinds = {node["kind"] for node in request["nodes"]}
        (products if "convolution" in kinds else others).append("TENSOR_CORE" in request["notes"])
    assert set(products) == {notes}
    assert set(others) == {False}  # a pool rounds nothing


def test_deterministic_bars_engines_that_are_not(planner: StandIn) -> None:
    compiled(deterministic=True)
    assert planner.requests
    assert all("NONDETERMINISTIC" in request["notes"] for request in planner.requests)


def test_plans_travel_in_the_library_and_are_not_made_again(planner: StandIn, tmp_path: Path) -> None:
    ex = compiled()
    told = {step.name: step.implementation for _, step in convolutions(ex)}
    assert set(told.values()) == {"eng7_k1=2"}
    ex.export(tmp_path / "model.so")
    planner.requests.clear()
    loaded = tvm_mxplan.load(tmp_path / "model.so")
    found = convolutions(loaded)
    assert {step.name: step.implementation for _, step in found} == told
    for _, step in found:
        assert library.check_plan(step.prepared) == step.implementation
    assert planner.requests == []
    assert "eng7_k1=2" in str(loaded.report)
    assert loaded.report.to_json()["regions"] == ex.report.to_json()["regions"]


@pytest.mark.parametrize("spares, behavior", [("compiled", [["RUNTIME_COMPILATION"]]), ("any", [[]])])
def test_the_next_engine_stands_by_in_no_larger_workspace(
    planner: StandIn, spares: str, behavior: list[list[str]]
) -> None:
    found = convolutions(compiled(spare_plans=spares))
    asked = [request for request in planner.requests if request["refused"]]
    assert len(asked) >= len(found) == 3
    for request in asked:
        assert request["refused"] == ["eng7_"] and request["workspace_limit"] == planner.workspace
        assert [request["behavior"]] == behavior
    first = [request for request in planner.requests if not request["refused"]]
    assert all(request["behavior"] == [] and request["workspace_limit"] == -1 for request in first)
    for _, step in found:
        assert step.implementation == "eng7_k1=2" and b"eng0" in step.prepared


def test_without_spares_nothing_more_is_asked(planner: StandIn) -> None:
    found = convolutions(compiled(spare_plans="none"))
    assert found and not any(request["refused"] for request in planner.requests)
    assert not any(b"eng0" in step.prepared for _, step in found)
    with pytest.raises(InvalidInputError, match="spare_plans"):
        compiled(spare_plans="some")


def test_a_graph_with_one_engine_has_no_spare(planner: StandIn) -> None:
    planner.names = ("eng7_k1=2",)
    found = convolutions(compiled())
    assert found and not any(b"eng0" in step.prepared for _, step in found)


def test_plans_that_failed_are_in_the_report(
    planner: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ex = compiled()
    program, step = convolutions(ex)[0]
    told = [(program.name, step.name, digest_of(step.prepared), "eng7_k1=2", "no luck", "eng0")]
    others = [(program.name, step.name, "0" * 32, "eng7_k1=2", "another model's", "eng0")]
    monkeypatch.setattr(library, "failures", lambda: [*others, *told])
    (failed,) = failed_plans(ex.module)
    assert failed == f"{step.name}: eng7_k1=2 failed (no luck); eng0 runs in its place"
    engine = registry.engine("cudnn")
    monkeypatch.setattr(
        "tvm_mxplan.byoc.runtime_functions.stats",
        lambda _: {"specializations": [{"steps": [{"name": step.name, "implementation": "eng7_k1=2"}]}]},
    )
    (module,) = region_modules(ex.module)
    (ran,) = engine.stats(module)["specializations"][0]["steps"]
    assert ran["implementation"] == "eng0"
    monkeypatch.setattr(ex, "_elsewhere", "")  # as where there is a GPU
    assert f"plan that failed here, {failed}" in str(ex.report)
    assert ex.report.from_json(ex.report.to_json()).failed_plans == (failed,)


def test_running_without_a_gpu_is_one_clear_error(planner: StandIn, tmp_path: Path) -> None:
    ex = compiled()
    ex.export(tmp_path / "model.so")
    x = np.zeros((2, 3, 14, 10), "float16")
    for made in (ex, tvm_mxplan.load(tmp_path / "model.so")):
        with pytest.raises(UnsupportedError, match="NVIDIA H200") as caught:
            made(x)
        assert "\n" not in str(caught.value)


def test_measuring_without_a_gpu_is_one_clear_error(planner: StandIn) -> None:
    with pytest.raises(UnsupportedError, match=r"tune=measure: .*tuning_records that were made there"):
        compiled(tune="measure")
    assert planner.requests == []


def test_workspaces_are_planned_in_the_arena(planner: StandIn) -> None:
    planner.workspace = 100_000
    programs = decoded_programs(compiled().module)
    planned = [step for program in programs for step in program.steps if step.scratchpad_bytes > 0]
    assert planned and all(step.scratchpad_offset >= 0 for step in planned)
    assert max(program.arena_bytes for program in programs) >= 100_000


@pytest.mark.slow
def test_a_graph_without_engines_goes_back_to_tvm_with_the_reason(planner: StandIn) -> None:
    planner.error = "no engine builds a plan: nothing fits"
    ex = compiled()
    assert convolutions(ex) == []
    assert "nothing fits" in str(ex.report)


def test_targets_and_devices_have_to_agree(planner: StandIn) -> None:
    model = small_network()
    with pytest.raises(UnsupportedError, match="device_properties"):
        tvm_mxplan.compile(model, TARGET)
    with pytest.raises(InvalidInputError, match=r"sm_80.*NVIDIA H200"):
        tvm_mxplan.compile(model, "cudnn, cuda -arch=sm_80", device_properties=DEVICES / "h200.json")
    with pytest.raises(UnsupportedError, match="no library for it"):
        tvm_mxplan.compile(model, "dnnl, cuda -arch=sm_90")


def test_the_architecture_may_be_the_files(planner: StandIn) -> None:
    ex = tvm_mxplan.compile(small_network(), "cudnn, cuda", device_properties=DEVICES / "a100.json")
    assert convolutions(ex) and {request["sm"] for request in planner.requests} == {80}


def test_without_cudnn_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "version", lambda: "")
    with pytest.raises(UnsupportedError, match="not installed; run scripts/setup test cuda in a checkout"):
        tvm_mxplan.compile(small_network(), TARGET, device_properties=DEVICES / "h200.json")
    monkeypatch.setattr(library, "version", lambda: "9.19.0.56")
    monkeypatch.setattr(library, "PLANNER", "nothing.so")
    assert library.why_not() == "nothing.so is not built; run scripts/setup test cuda in a checkout"


def test_a_module_without_dataflow_blocks_is_taken_like_any(planner: StandIn) -> None:
    mod = relax.transform.ToNonDataflow()(import_model(small_network("float32"), None, ""))
    ex = tvm_mxplan.compile(mod, TARGET, device_properties=DEVICES / "h200.json")
    assert ex.report.offloaded == 1.0
    assert len(convolutions(ex)) == 3
