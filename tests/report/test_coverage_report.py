"""Reports name each operator left to TVM, with its nodes, its reason, and its share of the time."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_mxplan
from tvm_mxplan import InvalidInputError
from tvm_mxplan.core.decisions.origin import Origin
from tvm_mxplan.report.kept_operators import Fallback, KeptOperator
from tvm_mxplan.report.report import RegionReport, Report
from tvm_mxplan.testing.reference import onnxruntime_outputs, relative_l2

RANDOM = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype("float32")


def model(size: int = 12) -> onnx.ModelProto:
    """A convolution with a bias and a relu between operators that TVM keeps."""
    nodes = [
        helper.make_node("Floor", ["image"], ["f"], name="/stem/floor"),
        helper.make_node("Conv", ["f", "w", "b"], ["c"], name="/stem/conv", pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"], name="/stem/relu"),
        helper.make_node("Sin", ["r"], ["s"], name="/head/sin"),
        helper.make_node("Cos", ["s"], ["y"]),
    ]
    weights = [
        numpy_helper.from_array(normal(7, 5, 3, 3), "w"),
        numpy_helper.from_array(normal(7), "b"),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [2, 5, size, size])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 7, size, size])
    graph = helper.make_graph(nodes, "small", [image], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def compiled() -> tvm_mxplan.Executable:
    small, image = model(), normal(2, 5, 12, 12)
    ex = tvm_mxplan.compile(small)
    (actual,), (expected,) = ex(image), onnxruntime_outputs(small, {"image": image})
    assert relative_l2(actual.numpy(), expected) <= 1e-5
    assert [region.steps[-1].kind for region in ex.report.regions]
    return ex


def test_kept_operators_point_at_their_nodes(compiled):
    found = {one.operator: [str(origin) for origin in one.origins] for one in compiled.report.kept}
    assert found == {
        "floor_0": ["Floor /stem/floor"],
        "sin_0": ["Sin /head/sin"],
        "cos_0": ["Cos y"],
    }
    assert {one.kind for one in compiled.report.kept} == {f.operator for f in compiled.report.fallbacks}
    assert all(one.reason for one in compiled.report.kept)


def test_shares_sum_to_one(compiled):
    report = compiled.report
    assert 0 < report.outside < 1
    shares = [report.share(one) for one in report.kept]
    assert sum(shares) == pytest.approx(report.outside)
    inside = sum(region.calls * region.estimated_us for region in report.regions)
    total = inside + sum(one.estimated_us for one in report.kept)
    assert sum(shares) + inside / total == pytest.approx(1)


def test_more_work_outside_is_a_larger_share():
    """The same model with its convolution in TVM's code, and on large images."""
    ours = tvm_mxplan.compile(model(64)).report
    theirs = tvm_mxplan.compile(model(64), options={"prefer": {"conv2d": "llvm"}}).report
    assert ours.regions and ours.offloaded == 1.0 and theirs.offloaded == 0.0
    assert ours.outside < theirs.outside and theirs.outside > 0.9
    slowest = max(theirs.kept, key=lambda one: one.estimated_us)
    assert slowest.kind == "relax.nn.conv2d" and slowest.reason == "option prefer: conv2d=llvm"


def test_decisions_say_what_they_come_from(compiled):
    told = compiled.report.explain()
    assert "relu_0 runs inside conv2d_0, in onednn\n  from Relu /stem/relu" in told
    assert compiled.report.dispatch["add_0"].origins == (Origin("/stem/conv", "Conv"),)


def test_a_node_explains_its_operators(compiled):
    report = compiled.report
    whole = report.explain("/stem/conv")
    assert whole.startswith("conv2d_0 runs in onednn")
    assert "\nadd_0 runs inside conv2d_0" in whole and "relu_0" not in whole
    assert report.explain("relu_0") == report.explain("/stem/relu")
    with pytest.raises(InvalidInputError, match="no operator '/stem/cow'"):
        report.explain("/stem/cow")


def test_a_library_carries_it(compiled, tmp_path):
    compiled.export(tmp_path / "m.so")
    report = tvm_mxplan.load(tmp_path / "m.so").report
    assert report.kept == compiled.report.kept
    assert report.outside == compiled.report.outside
    assert report.explain("/stem/conv") == compiled.report.explain("/stem/conv")


def test_a_report_of_an_earlier_version_makes_no_estimate(compiled):
    data = json.loads(json.dumps(compiled.report.to_json()))
    del data["kept"]
    for region in data["regions"]:
        del region["estimated_us"]
    for decision in data["dispatch"]["decisions"]:
        del decision["origins"]
    report = Report.from_json(data)
    assert report.outside is None and "estimated time" not in str(report)
    assert "left to TVM:\n     1 x relax.cos" in str(report)


def test_where_tvm_is_alone_everything_is_outside(monkeypatch):
    report = tvm_mxplan.compile(model(), "llvm").report
    assert report.outside == 1.0 and report.offloaded == 0.0
    slowest = max(report.kept, key=lambda one: one.estimated_us)
    assert slowest.origins == (Origin("/stem/conv", "Conv"),)
    assert {one.reason for one in report.kept} == {"the target names no library that is here"}
    monkeypatch.setenv("TVM_MXPLAN_DISABLE", "1")
    report = tvm_mxplan.compile(model()).report
    assert {one.reason for one in report.kept} == {"TVM_MXPLAN_DISABLE is set"}


def test_the_text():
    region = RegionReport("mxplan_onednn_0", "mxplan_onednn", (), 0, 0, 90, calls=2, estimated_us=30.0)
    kept = (
        KeptOperator("floor_0", "relax.floor", "no implementation", (Origin("/a", "Floor"),), 10.0),
        KeptOperator("floor_1", "relax.floor", "no implementation", (), 30.0),
        KeptOperator("relu_0", "relax.nn.relu", "takes int64", (Origin("/b", "Relu"),), None),
        KeptOperator("relu_1", "relax.nn.relu", "switched off by option: relu_1", (Origin("/c"),), 0.0),
    )
    fallbacks = (
        Fallback("relax.floor", 2, "no implementation"),
        Fallback("relax.nn.relu", 2, "takes int64"),
    )
    report = Report((region,), fallbacks, 180, kept=kept)
    assert str(report).splitlines() == [
        "100.0 % of 0.0 M multiply-adds offloaded",
        "estimated time: 60.0 % in regions, 40.0 % in what is left to TVM",
        "",
        "region mxplan_onednn_0 on mxplan_onednn: 0 primitives (), called 2 times",
        "  arena 0 bytes, constants 0 bytes",
        "",
        "left to TVM:",
        "     2 x relax.floor: no implementation",
        "         floor_1: 30.0 % of the time",
        "         floor_0: 10.0 % of the time, from Floor /a",
        "     2 x relax.nn.relu: takes int64",
        "         relu_0: from Relu /b",
        "         relu_1: 0.0 % of the time, from /c, switched off by option: relu_1",
    ]
    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report
    many = tuple(KeptOperator(f"floor_{at}", "relax.floor", "no implementation") for at in range(8))
    assert "         and 3 more" in str(replace(report, kept=many))
