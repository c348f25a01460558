"""The option ``layers``: operators switched off or put into a layout by the names that the report prints."""

from __future__ import annotations

import onnx
import pytest

import tvm_mxplan
from tvm_mxplan import InvalidInputError, Options
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.layout.layout import channels_blocked
from tvm_mxplan.report.report import Report, StepReport
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, relative_l2


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return zoo.load("tiny")


def steps(report: Report) -> dict[str, StepReport]:
    return {step.name: step for region in report.regions for step in region.steps}


def compiled(model: onnx.ModelProto, **options: object) -> Report:
    """The report, having seen that the numbers are right."""
    ex = tvm_mxplan.compile(model, options=options)
    inputs = zoo.random_inputs(model)
    (actual,), (expected,) = ex(**inputs), onnxruntime_outputs(model, inputs)
    assert relative_l2(actual.numpy(), expected) <= 1e-5
    return ex.report


def test_an_operator_that_is_switched_off_stays_with_tvm(model):
    usual = steps(compiled(model))
    report = compiled(model, layers={"conv2d_1": "off", "max_pool2d_0": "off"})
    assert {"conv2d_0", "conv2d_1", "conv2d_2", "max_pool2d_0"} <= set(usual)
    assert {"conv2d_0", "conv2d_2"} <= set(steps(report))
    assert not {"conv2d_1", "max_pool2d_0"} & set(steps(report))
    reasons = {fallback.operator: (fallback.count, fallback.reason) for fallback in report.fallbacks}
    assert reasons["relax.nn.conv2d"] == (1, "switched off by option: conv2d_1")
    assert reasons["relax.nn.max_pool2d"] == (1, "switched off by option: max_pool2d_0")


def test_several_of_a_kind_are_all_named(model):
    report = compiled(model, layers="conv2d_1=off, conv2d_3=off")
    (reason,) = [f.reason for f in report.fallbacks if f.operator == "relax.nn.conv2d"]
    assert reason == "switched off by option: conv2d_1, conv2d_3"


def test_all_convolutions_can_be_switched_off(model):
    names = {f"conv2d_{number}": "off" for number in range(5)}
    report = compiled(model, layers=names)
    assert not [step for step in steps(report).values() if step.kind == "convolution"]
    (fallback,) = [f for f in report.fallbacks if f.operator == "relax.nn.conv2d"]
    assert fallback.count == 5


@pytest.mark.parametrize("policy", ["cost", "any", "channels_last", "naive"])
@pytest.mark.parametrize("layout, tag", [("nchw", "abcd"), ("plain", "abcd"), ("nhwc", "acdb")])
def test_a_layout_is_forced_whatever_the_policy(model, policy, layout, tag):
    report = compiled(model, layouts=policy, layers={"conv2d_2": layout})
    assert set(steps(report)["conv2d_2"].layouts) == {tag}
    assert report.regions[0].layouts.forced == ("conv2d_2",)
    assert "forced for conv2d_2" in str(report)


def test_a_first_layer_takes_blocks_on_the_side_that_can(model):
    """Three channels are read plain; what comes out is blocked."""
    blocked = channels_blocked(4, OneDNN().block)
    assert steps(compiled(model, layers={"conv2d_0": "blocked"}))["conv2d_0"].layouts == ("abcd", blocked)


# --- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "layers, message",
    [
        ("conv2d_99=off", r"the model has no operator 'conv2d_99'; the nearest are conv2d_"),
        ("zzz=nhwc", r"the model has no operator 'zzz'; its report lists them"),
        ("relu_0=nhwc", r"relu_0 is no step of the library's own: it is fused into another step"),
        ("conv2d_0=ncdhw", r"conv2d_0: layout 'ncdhw' is of rank 5, the tensor of rank 4"),
        ("conv2d_0=nChw4c", r"conv2d_0 cannot run in nChw4c \(.*\); the layouts it takes: .*nhwc"),
    ],
)
def test_what_cannot_be_is_named_with_the_way_out(model, layers, message):
    with pytest.raises(InvalidInputError, match=message):
        tvm_mxplan.compile(model, options={"layers": layers})


@pytest.mark.parametrize("layers", ["conv2d_0", "conv2d_0=", {"conv2d_0": "nchq"}, ["conv2d_0"], 3])
def test_the_option_is_checked(layers):
    with pytest.raises(InvalidInputError, match="option layers"):
        Options(layers=layers)


def test_text_and_mapping_are_the_same():
    given = {"a": "off", "b": "nhwc"}
    assert Options(layers="a=off,b=nhwc") == Options(layers=given)
    assert hash(Options(layers=given)) == hash(Options(layers="a=off,b=nhwc"))
    given["c"] = "off"
    assert Options(layers="a=off,b=nhwc").layers_off == {"a"}


# --- what the report says of the choice --------------------------------------------------------------------


def test_the_report_says_what_was_proved(model):
    report = compiled(model)
    (region,) = report.regions
    assert region.layouts.policy == "cost"
    assert 0 < region.layouts.lower_bound_us <= region.layouts.cost_us + 1e-6
    most = 0.0 if "avx512" in library.isa() else 0.001  # AVX2's kernels leave the relaxation a gap
    assert region.layouts.gap <= most
    assert "layouts by policy cost in " in str(report)
    assert ("proved optimal" in str(report)) == (region.layouts.gap == 0.0)
    assert Report.from_json(report.to_json()) == report


@pytest.mark.alone
def test_layouts_of_densenet_take_a_part_of_the_passes():
    """A fifth of them, in whatever time a machine takes for these."""
    report = tvm_mxplan.compile(zoo.load("densenet121")).report
    (region,) = report.regions
    assert sum(step.kind == "convolution" for step in region.steps) == 121
    assert region.layouts.gap == 0.0
    assert 0 < region.layouts.seconds < 0.6 * report.seconds["passes"]
