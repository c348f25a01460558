"""``ex.report.dispatch``: every operator of a model, who runs it, and why the others were out."""

from __future__ import annotations

import json
import math

import onnx
import pytest
from blocks import BLOCKED
from tvm import relax

import tvm_mxplan
from tvm_mxplan import InvalidInputError, Options
from tvm_mxplan.report.report import Report
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, relative_l2
from tvm_mxplan.tuning import tune_plans
from tvm_mxplan.tuning.candidates import PlanCandidate


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return zoo.load("tiny")


@pytest.fixture(scope="module")
def usual(model) -> Report:
    return tvm_mxplan.compile(model).report


def compiled(model: onnx.ModelProto, target: str = "dnnl, llvm", **options: object) -> Report:
    """The report, having seen that the numbers are right."""
    ex = tvm_mxplan.compile(model, target, options=options)
    inputs = zoo.random_inputs(model)
    (actual,), (expected,) = ex(**inputs), onnxruntime_outputs(model, inputs)
    assert relative_l2(actual.numpy(), expected) <= 1e-5
    return ex.report


def test_each_step_of_a_region_is_the_decision_on_an_operator(usual):
    (region,) = usual.regions
    for step in region.steps:
        if step.kind == "reorder":
            continue
        chosen = usual.dispatch[step.name].chosen
        assert (chosen.backend, chosen.implementation, chosen.layouts) == (
            "onednn",
            step.implementation,
            step.layouts,
        )
    own = {decision.operator for decision in usual.dispatch if decision.runs == decision.operator}
    assert own == {step.name for step in region.steps if step.kind != "reorder"}


def test_layout_candidates_have_costs_and_reasons(usual):
    (region,) = usual.regions
    for step in region.steps:
        if step.kind != "convolution":
            continue
        decision = usual.dispatch[step.name]
        assert decision.chosen.cost_us > 0 and decision.chosen.source == "model"
        others = [one for one in decision.candidates if one.out and one.algorithm == "direct" and one.layouts]
        assert any("reference code" in one.out and "ref" in one.implementation for one in others)
        assert any("costs" in one.out and one.cost_us > 0 for one in others)
        assert decision.candidates[-1].backend == "llvm"
        assert "order of preference" in decision.candidates[-1].out


def test_fused_operators_say_where_they_run(usual):
    fused = {decision.operator: decision.runs for decision in usual.dispatch if decision.is_fused}
    assert fused["multiply_0"] == fused["add_0"] == fused["relu_0"] == "conv2d_0"
    assert fused["permute_dims_0"] == "matmul_0"
    assert "view" in usual.dispatch["reshape_0"].note
    assert "relu_0 runs inside conv2d_0, in onednn" in usual.explain()


def test_winograd_is_weighed_with_its_error(usual):
    winograd = [one for one in usual.dispatch["conv2d_1"].candidates if one.algorithm == "winograd_f4"]
    assert [one.out for one in winograd] == ["costs more than direct"]
    assert winograd[0].relative_error > 0
    strided = [one for one in usual.dispatch["conv2d_0"].candidates if one.algorithm == "winograd_f4"]
    assert [one.out for one in strided] == ["Winograd takes filters with stride 1 and without dilation"]


def test_a_region_that_goes_back_is_told_as_tvms():
    x = relax.Var("x", relax.TensorType((2, 3, 5), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.permute_dims(x, [1, 0, 2]))
        builder.emit_func_output(y)
    report = tvm_mxplan.compile(builder.get()).report
    decision = report.dispatch["permute_dims_0"]
    assert decision.chosen.backend == "llvm"
    assert [(one.backend, one.out) for one in decision.candidates] == [
        ("onednn", "only moves data, which no library does better"),
        ("host", "after onednn in the order of preference"),
        ("llvm", ""),
    ]


@pytest.mark.slow
def test_a_step_that_has_nothing_to_do_stands_in_place():
    """Pieces of a concat that are written where they belong."""
    report = tvm_mxplan.compile(zoo.load("squeezenet"), options={"layouts": "blocked"}).report
    concats = [decision for decision in report.dispatch if decision.kind == "concat"]
    assert concats and any(d.chosen.in_place and not d.chosen.implementation for d in concats)


@pytest.mark.slow
def test_a_limit_on_errors_is_a_reason():
    limit = 6e-6
    report = tvm_mxplan.compile(zoo.load("resnet18"), options={"max_relative_error": limit}).report
    convolutions = [decision for decision in report.dispatch if decision.kind == "conv2d"]
    taken = [decision for decision in convolutions if decision.chosen.algorithm != "direct"]
    reasons = [one.out for decision in convolutions for one in decision.candidates]
    assert taken
    assert math.fsum(decision.chosen.relative_error for decision in taken) <= limit
    assert sum(reason.startswith("over max_relative_error: adds ") for reason in reasons) >= 3
    assert all("costs less" in one.out for d in taken for one in d.candidates if one.algorithm == "direct")


@pytest.mark.slow
@pytest.mark.parametrize(("timed", "source"), [(True, "measured"), (False, "model")])
def test_costs_say_where_they_come_from(model, monkeypatch, timed, source):
    """Those of the plan that tuning found the best; here it has one to compare."""
    only = PlanCandidate("cost", "cost", timed, timed)
    monkeypatch.setattr(tune_plans, "candidates_for", lambda *_, **__: [only])
    report = tvm_mxplan.compile(model, options={"tune": "measure"}).report
    assert report.tuning.chosen == only.name
    assert report.dispatch["conv2d_1"].chosen.source == source
    assert ("us measured" in report.explain("conv2d_1")) == timed


def test_a_rule_for_layouts_is_explained_with_costs(model):
    report = compiled(model, layouts="plain")
    steps = [step for step in report.regions[0].steps if step.kind != "reorder"]
    assert len(steps) > 5
    assert all(report.dispatch[step.name].chosen.cost_us is not None for step in steps)
    assert report.dispatch["conv2d_2"].chosen.layouts == ("abcd", "abcd")
    others = [one for one in report.dispatch["conv2d_2"].candidates if one.out and one.cost_us]
    less = [one for one in others if one.out.endswith(" us less alone, but option layouts=plain")]
    assert {one.layouts for one in less} == {("acdb", "acdb"), (BLOCKED, BLOCKED)}
    assert all(one.cost_us < report.dispatch["conv2d_2"].chosen.cost_us for one in less)
    assert any("reference code" in one.out for one in others)


@pytest.mark.slow
def test_a_rule_for_algorithms_is_explained_with_costs():
    report = tvm_mxplan.compile(zoo.load("resnet18"), options={"convolutions": "direct"}).report
    decision = report.dispatch["conv2d_1"]
    assert decision.chosen.algorithm == "direct"
    others = {one.algorithm: one for one in decision.candidates if one.out and one.algorithm != "direct"}
    assert others["winograd_f4"].out == "costs less than direct alone, but option convolutions=direct"
    assert 0 < others["winograd_f4"].cost_us < decision.chosen.cost_us
    assert others["winograd_f4"].relative_error > 0


@pytest.mark.slow
def test_a_measured_plan_by_a_rule_is_explained_with_measured_costs(model, monkeypatch):
    only = PlanCandidate("channels_last", "cost", True, False)
    monkeypatch.setattr(tune_plans, "candidates_for", lambda *_, **__: [only])
    report = tvm_mxplan.compile(model, options={"tune": "measure"}).report
    assert report.tuning.chosen == only.name
    decision = report.dispatch["conv2d_2"]
    assert (decision.chosen.layouts, decision.chosen.source) == (("acdb", "acdb"), "measured")
    others = [one for one in decision.candidates if one.out and one.source == "measured"]
    reasons = ("us more", "costs as much", "us less alone, but the plan was chosen as a whole")
    assert others and all(one.out.endswith(reasons) for one in others)


def test_a_forced_layout_is_the_only_one_weighed(model):
    decision = compiled(model, layers={"conv2d_2": "nchw"}).dispatch["conv2d_2"]
    assert decision.chosen.layouts == ("abcd", "abcd")
    assert len([one for one in decision.candidates if one.layouts]) == 1


# --- the order of the target, and prefer -------------------------------------------------------------------


@pytest.mark.slow
def test_the_target_says_who_comes_first(model):
    report = compiled(model, "llvm, dnnl")
    assert report.dispatch.order == ("llvm", "onednn")
    assert not report.regions
    assert {decision.chosen.backend for decision in report.dispatch} == {"llvm"}
    assert {fallback.reason for fallback in report.fallbacks} == {"after llvm in the order of preference"}


@pytest.mark.slow
def test_prefer_gives_operators_to_others(model):
    report = compiled(model, prefer="softmax=llvm, conv2d_1=llvm", layers="max_pool2d_0=off")
    stock = {decision.operator for decision in report.dispatch if decision.chosen.backend == "llvm"}
    assert stock == {"softmax_0", "conv2d_1", "max_pool2d_0"}
    assert report.dispatch["softmax_0"].candidates[1].out == "option prefer: softmax=llvm"
    report = compiled(model, "llvm, dnnl", prefer={"conv2d": "dnnl"})
    taken = {decision.operator for decision in report.dispatch if decision.chosen.backend == "onednn"}
    assert taken == {f"conv2d_{number}" for number in range(5)}
    assert {step.kind for region in report.regions for step in region.steps} <= {"convolution", "reorder"}


def test_absent_libraries_are_told(model):
    report = compiled(model, "cudnn, dnnl, llvm")
    assert report.dispatch.order == ("onednn", "llvm")
    assert "absent  cudnn: it runs beside cuda, the target is llvm" in report.explain()
    assert report.dispatch["conv2d_0"].chosen.backend == "onednn"


@pytest.mark.slow
def test_tvm_alone_decides_nothing(model):
    assert "TVM runs every operator" in compiled(model, "llvm").explain()


@pytest.mark.parametrize(
    "target, prefer, message",
    [
        ("dnnl, llvm", "conv2d_9=llvm", "option prefer: the model has no operator 'conv2d_9'"),
        ("dnnl, llvm", "conv=llvm", "option prefer: Relax has no operator 'conv'"),
        ("dnnl, llvm", "conv2d=cudnn", "option prefer: conv2d=cudnn: the target does not name it"),
        ("cudnn, dnnl, llvm", "conv2d_1=cudnn", "conv2d_1 cannot run in cudnn: it runs beside cuda"),
        ("llvm", "conv2d=dnnl", "option prefer: conv2d=onednn: the target does not name it; it has llvm"),
    ],
)
def test_what_cannot_be_is_an_error(model, target, prefer, message):
    with pytest.raises(InvalidInputError, match=message):
        tvm_mxplan.compile(model, target, options={"prefer": prefer})


@pytest.mark.parametrize("prefer", ["softmax", "softmax=", {"softmax": "gpu"}, ["softmax"], 3])
def test_the_option_is_checked(prefer):
    with pytest.raises(InvalidInputError, match="option prefer"):
        Options(prefer=prefer)


def test_options_that_contradict_each_other():
    with pytest.raises(InvalidInputError, match="conv2d_1 is switched off and wanted in onednn"):
        Options(layers="conv2d_1=off", prefer="conv2d_1=dnnl")
    assert Options(layers="conv2d_1=off", prefer="conv2d_1=llvm").prefer == {"conv2d_1": "llvm"}
    assert Options(prefer="softmax=mkldnn") == Options(prefer={"softmax": "onednn"})


# --- saved -------------------------------------------------------------------------------------------------


def test_the_report_carries_it(usual):
    assert Report.from_json(json.loads(json.dumps(usual.to_json()))).dispatch == usual.dispatch
    assert len(usual.dispatch) == 29


def test_one_operator_is_explained(usual):
    assert usual.explain("conv2d_1") == str(usual.dispatch["conv2d_1"])
    with pytest.raises(InvalidInputError, match="no operator 'conv2d_77'; the nearest are conv2d_"):
        usual.explain("conv2d_77")
