"""Steps of training whose convolutions run by Winograd's algorithm, on filters that change in each step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tvm_mxplan import training

OPTIONS = {"machine": "default", "cache": "disabled", "verify": "off"}
CLASSES = 5
KINDS = ("convolution", "deconvolution")


def model(src: Sequence[int], outputs: Sequence[int], groups: int = 1) -> onnx.ModelProto:
    """Convolutions of 3x3 with a ReLU behind each; the last but one may have groups."""
    random = np.random.default_rng(3)
    nodes, weights, value, channels = [], [], "x", src[1]
    for number, count in enumerate(outputs):
        parts = groups if number == len(outputs) - 2 else 1
        shape = (count, channels // parts, 3, 3)
        array = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        weights.append(numpy_helper.from_array(array.astype("float32"), f"w{number}"))
        inputs, summed = [value, f"w{number}"], f"sum{number}"
        nodes.append(helper.make_node("Conv", inputs, [summed], group=parts, pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [summed], [f"x{number}"]))
        value, channels = f"x{number}", count
    dense = random.standard_normal((channels, CLASSES)) / np.sqrt(channels)
    weights.append(numpy_helper.from_array(dense.astype("float32"), "dense"))
    nodes.append(helper.make_node("GlobalAveragePool", [value], ["pooled"]))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"]))
    nodes.append(helper.make_node("Gemm", ["flat", "dense"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "convolutions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(src))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [src[0], CLASSES])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def compiled(network: onnx.ModelProto, **options: object) -> training.TrainingStep:
    sgd = training.SGD(0.05, momentum=0.9, weight_decay=1e-3)
    return training.compile(network, "softmax_cross_entropy", sgd, options={**OPTIONS, **options})


def batch(src: Sequence[int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.standard_normal(src).astype("float32"), random.integers(0, CLASSES, src[0])


def running(step: training.TrainingStep, kind: str) -> list[str]:
    """Implementations of the steps of a kind."""
    return [one.implementation for region in step.report.regions for one in region.steps if one.kind == kind]


@pytest.mark.parametrize("algorithm", ["winograd_f2", "winograd_f4"])
@pytest.mark.parametrize(
    "src, outputs, groups", [((2, 19, 9, 8), (40, 48, 35), 4), ((2, 32, 12, 12), (64, 64), 1)]
)
def test_it_computes_what_direct_sums_do(algorithm, src, outputs, groups):
    network = model(src, outputs, groups)
    fast, direct = compiled(network, convolutions=algorithm), compiled(network, convolutions="direct")
    assert running(fast, "convolution") == [algorithm] * len(outputs)
    assert running(fast, "deconvolution") == [algorithm] * (len(outputs) - 1)  # the data gradients
    assert not any("winograd" in name for kind in KINDS for name in running(direct, kind))
    for number in range(5):
        x, labels = batch(src, number)
        assert fast(x, labels) == pytest.approx(direct(x, labels), rel=1e-5)
    mine, other = fast.state_dict(), direct.state_dict()
    for part in (lambda state: state["model"], lambda state: state["slots"]["momentum"]):
        for name, array in part(other).items():
            assert np.linalg.norm(part(mine)[name] - array) < 2e-5 * np.linalg.norm(array)


def test_every_step_agrees_with_its_reference():
    src = (2, 19, 9, 8)
    step = compiled(model(src, (40, 48, 35)), convolutions="winograd_f4", opcheck=True)
    assert [running(step, kind) for kind in KINDS] == [["winograd_f4"] * 3, ["winograd_f4"] * 2]
    assert np.isfinite(step(*batch(src, 0)))  # a step that differs raises


def test_costs_choose_it_where_it_pays():
    large, small = ((8, 64, 28, 28), (128, 128)), ((1, 64, 4, 4), (64, 64))
    steps = [compiled(model(src, outputs)) for src, outputs in (large, small)]
    assert [running(steps[0], kind) for kind in KINDS] == [["winograd_f4"] * 2, ["winograd_f4"]]
    assert not any("winograd" in name for kind in KINDS for name in running(steps[1], kind))


def test_filters_are_stored_as_their_gradients_are_given():
    """The transform reads any layout, so that nothing is converted, forward or backward."""
    step = compiled(model((4, 64, 14, 14), (64, 128)), convolutions="winograd_f4", layouts="blocked")
    assert [running(step, kind) for kind in KINDS] == [["winograd_f4"] * 2, ["winograd_f4"]]
    assert step.report.state
    assert not step.report.converting
