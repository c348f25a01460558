"""Weights and momenta in the layouts of their steps: what is still reordered, what it computes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tvm_mxplan import training
from tvm_mxplan.core.layout.layout import plain_layout

SHAPE, CLASSES = (2, 19, 8, 7), 5
OPTIONS = {"machine": "default", "cache": "disabled"}
ODD = (40, 40, 23)


def model(channels: tuple[int, int, int], groups: int) -> onnx.ModelProto:
    """Three convolutions, of which the second may have groups."""
    random = np.random.default_rng(5)

    def normal(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float32")

    first, second, third = channels
    weights = {
        "first.w": normal(first, SHAPE[1], 3, 3),
        "second.w": normal(second, first // groups, 3, 3),
        "third.w": normal(third, second, 1, 1),
        "dense.w": normal(third, CLASSES),
    }
    nodes = [
        helper.make_node("Conv", ["x", "first.w"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "second.w"], ["c"], group=groups, pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "third.w"], ["e"]),
        helper.make_node("GlobalAveragePool", ["e"], ["f"]),
        helper.make_node("Flatten", ["f"], ["g"]),
        helper.make_node("Gemm", ["g", "dense.w"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "three",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(SHAPE))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [SHAPE[0], CLASSES])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def compiled(
    channels: tuple[int, int, int] = ODD,
    groups: int = 1,
    options: dict[str, str] = OPTIONS,
    **settings: object,
) -> training.TrainingStep:
    sgd = training.SGD(0.1, momentum=0.9)
    return training.compile(
        model(channels, groups), "softmax_cross_entropy", sgd, options=options, **settings
    )


@pytest.fixture(scope="module")
def step() -> training.TrainingStep:
    return compiled(groups=4)


def batch(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.standard_normal(SHAPE).astype("float32"), random.integers(0, CLASSES, SHAPE[0])


def test_weights_and_momenta_stand_in_the_layouts_of_their_steps(step: training.TrainingStep) -> None:
    stored = step.report.state
    assert len(stored) >= 2
    # A parameter for each stored weight, and one for its momentum in the same form.
    forms = [(one.shape, one.layout) for one in stored]
    assert forms[: len(forms) // 2] == forms[len(forms) // 2 :]
    assert all(one.layout != plain_layout(len(one.shape)) for one in stored)
    assert "stored as" in str(step.report)


def test_blocked_weights_are_converted_for_data_gradients_alone() -> None:
    step = compiled(options={**OPTIONS, "layouts": "blocked"}, channels=(32, 64, 32))
    kinds = {one.name: one.kind for region in step.report.regions for one in region.steps}
    assert Counter(kinds.values())["convolution_backward_weights"] == 3
    assert len(step.report.state) == 6
    assert all("8" in one.layout or "16" in one.layout for one in step.report.state)
    assert len(set(step.report.converting)) == len(step.report.converting) <= 2
    assert {kinds[name] for name in step.report.converting} == {"deconvolution"}


@pytest.mark.slow
def test_it_computes_what_plain_state_does(step: training.TrainingStep) -> None:
    plain = compiled(
        groups=4, keep_gradients=True
    )  # gradients that are results are plain, and their weights with them
    assert not plain.report.state
    for number in range(3):
        x, labels = batch(number)
        assert step(x, labels) == pytest.approx(plain(x, labels), rel=1e-5)
    mine, other = step.state_dict(), plain.state_dict()
    for name, array in other["model"].items():
        assert mine["model"][name].shape == array.shape
        np.testing.assert_allclose(mine["model"][name], array, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            mine["slots"]["momentum"][name], other["slots"]["momentum"][name], rtol=1e-4, atol=1e-5
        )
    np.testing.assert_allclose(
        step.evaluate(batch(9)[0])[0], plain.evaluate(batch(9)[0])[0], rtol=1e-4, atol=1e-5
    )


def test_a_state_goes_from_one_way_of_storing_to_another(step: training.TrainingStep) -> None:
    step(*batch(0))
    saved = step.state_dict()
    step.load_state_dict(saved)
    after = step.state_dict()
    for name, array in saved["model"].items():
        assert after["model"][name].tobytes() == array.tobytes()
    first = step(*batch(1))
    step.load_state_dict(saved)
    assert step(*batch(1)) == first
