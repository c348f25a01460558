"""A whole step of a small network against float64, its state, and what it refuses."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
import small_network

from tvm_mxplan import training
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.testing.reference import onnxruntime_outputs, relative_l2

OPTIONS = {"machine": "default", "cache": "disabled"}
RATE, MOMENTUM, DECAY = 0.05, 0.9, 1e-3


@pytest.fixture(scope="module")
def compiled() -> training.TrainingStep:
    sgd = training.SGD(RATE, momentum=MOMENTUM, nesterov=True, weight_decay=DECAY)
    return training.compile(
        small_network.model(), "softmax_cross_entropy", sgd, options=OPTIONS, keep_gradients=True
    )


@pytest.fixture
def step(compiled: training.TrainingStep) -> training.TrainingStep:
    """The step as it was at first."""
    start = compiled.state_dict()
    fresh = {name: np.zeros_like(array) for name, array in start["slots"]["momentum"].items()}
    compiled.load_state_dict(
        {
            **start,
            "model": small_network.first_weights(),
            "slots": {"momentum": fresh},
            "steps": 0,
            "calls": 0,
        }
    )
    return compiled


@pytest.mark.slow
def test_ten_steps_agree_with_float64(step: training.TrainingStep) -> None:
    kinds = Counter(one.kind for region in step.report.regions for one in region.steps)
    expected = {
        "convolution": 3,
        "convolution_backward_weights": 3,
        "deconvolution": 2,
        "pooling_backward": 2,
    }
    expected |= {"batch_normalization_training": 2, "batch_normalization_backward": 2}
    assert expected.items() <= kinds.items()
    weights = {name: array.astype("float64") for name, array in small_network.first_weights().items()}
    momenta = {name: np.zeros_like(array) for name, array in weights.items()}
    for number in range(10):
        x, labels = small_network.batch(number)
        expected, grads, statistics = small_network.float64_gradients(weights, x, labels)
        assert step(x, labels) == pytest.approx(expected, rel=1e-4)
        if number == 0:
            assert set(step.gradients) == set(grads)
            for name, grad in grads.items():
                if name != "conv1.b":  # a shift that the batch norm behind it takes out: all rounding
                    assert relative_l2(step.gradients[name], grad) < 1e-4, name
        for name, grad in grads.items():
            grad = grad + DECAY * weights[name]
            momenta[name] = MOMENTUM * momenta[name] + grad
            weights[name] = weights[name] - RATE * (grad + MOMENTUM * momenta[name])
        weights.update(statistics)
        if number in (0, 9):
            found = step.state_dict()["model"]
            for name, array in weights.items():
                assert relative_l2(found[name], array) < 1e-4, (number, name)
    assert step.steps == 10


@pytest.mark.slow
def test_every_step_of_a_region_agrees_with_float64() -> None:
    options = {**OPTIONS, "opcheck": True}
    step = training.compile(small_network.model(), "softmax_cross_entropy", "sgd", options=options)
    assert sum(len(region.steps) for region in step.report.regions) > 30
    assert any("binary mul" in one.post_ops for region in step.report.regions for one in region.steps)
    assert np.isfinite(step(*small_network.batch()))


def test_a_checkpoint_goes_on_bit_for_bit(step: training.TrainingStep, tmp_path: Path) -> None:
    step(*small_network.batch(0))
    step.save_checkpoint(tmp_path / "half.npz")
    first = [step(*small_network.batch(number)) for number in (1, 2)]
    after = step.state_dict()
    step.load_checkpoint(tmp_path / "half.npz")
    assert [step(*small_network.batch(number)) for number in (1, 2)] == first
    for name, array in step.state_dict()["model"].items():
        assert array.tobytes() == after["model"][name].tobytes(), name


def test_the_saved_model_computes_what_evaluate_gives(step: training.TrainingStep, tmp_path: Path) -> None:
    x, labels = small_network.batch()
    before = step.evaluate(x)[0]
    step(x, labels)
    step.save(tmp_path / "trained.onnx")
    (expected,) = onnxruntime_outputs(onnx.load(tmp_path / "trained.onnx"), {"x": x})
    (found,) = step.evaluate(x)
    assert relative_l2(found, expected) < 1e-5
    assert relative_l2(found, before) > 1e-3


def _unchanged(step: training.TrainingStep, before: dict) -> bool:  # type: ignore[type-arg]
    after = step.state_dict()
    same = all(array.tobytes() == before["model"][name].tobytes() for name, array in after["model"].items())
    return same and after["steps"] == before["steps"] and after["calls"] == before["calls"]


def test_bad_input_names_itself_and_changes_nothing(step: training.TrainingStep) -> None:
    x, labels = small_network.batch()
    step(x, labels)
    before = step.state_dict()
    wrong = labels.copy()
    wrong[4] = small_network.CLASSES
    with pytest.raises(InvalidInputError, match=r"labels\[4\] is 7; expected 0 to 6"):
        step(x, wrong)
    with pytest.raises(InvalidInputError, match=r"labels\[4\] is -1; expected 0 to 6"):
        step(x, np.where(np.arange(len(labels)) == 4, -1, labels))
    with pytest.raises(InvalidInputError, match=r"input x: float32\[6, 3, 19, 17\].*\[5, 3, 19, 17\]"):
        step(x[:5], labels)
    with pytest.raises(InvalidInputError, match="expected element type float32, got float64"):
        step(x.astype("float64"), labels)
    with pytest.raises(InvalidInputError, match="'labels' is missing"):
        step(x)
    with pytest.raises(InvalidInputError, match="no weight was changed; set detect_anomaly=True"):
        step(np.full_like(x, np.nan), labels)
    assert _unchanged(step, before)
    assert np.isfinite(step(x, labels))


def test_a_state_of_another_model_or_optimiser_is_refused(step: training.TrainingStep) -> None:
    step(*small_network.batch())
    before = step.state_dict()
    other = {**before, "model": {"stem.w": np.zeros(3, "float32")}}
    with pytest.raises(InvalidInputError, match=r"of another model: it has 'stem.w', this one conv1.w"):
        step.load_state_dict(other)
    short = {**before, "model": {**before["model"], "dense.b": np.zeros(3, "float32")}}
    with pytest.raises(InvalidInputError, match=r"'dense.b' is float32\[3\]; expected float32\[7\]"):
        step.load_state_dict(short)
    with pytest.raises(InvalidInputError, match="of the optimiser Adam; expected SGD"):
        step.load_state_dict({**before, "optimizer": {"kind": "Adam"}})
    with pytest.raises(InvalidInputError, match="of an optimiser with mean for each weight"):
        step.load_state_dict({**before, "slots": {"mean": before["slots"]["momentum"]}})
    assert _unchanged(step, before)


def test_a_damaged_checkpoint_is_refused(step: training.TrainingStep, tmp_path: Path) -> None:
    step.save_checkpoint(tmp_path / "whole.npz")
    data = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(data[: len(data) // 2])
    with pytest.raises(InvalidInputError, match=r"half.npz: no checkpoint, or damaged"):
        step.load_checkpoint(tmp_path / "half.npz")
    with pytest.raises(InvalidInputError, match=r"none.npz: no such file"):
        step.load_checkpoint(tmp_path / "none.npz")


def test_settings_that_cannot_be_are_refused() -> None:
    model = small_network.model()
    with pytest.raises(InvalidInputError, match="unknown setting 'clip'; the settings are trainable,"):
        training.compile(model, "softmax_cross_entropy", "sgd", clip=1)
    with pytest.raises(InvalidInputError, match="loss='hinge'; expected softmax_cross_entropy,"):
        training.compile(model, "hinge", "sgd")
    with pytest.raises(InvalidInputError, match="optimizer='lion'; expected sgd, adam, adamw"):
        training.compile(model, "softmax_cross_entropy", "lion")
    with pytest.raises(InvalidInputError, match=r"the model has no weight 'stem'; it has conv1.w"):
        training.compile(model, "softmax_cross_entropy", "sgd", trainable=["stem"])
    with pytest.raises(InvalidInputError, match="accumulate=0; expected a whole number from 1"):
        training.compile(model, "softmax_cross_entropy", "sgd", accumulate=0)


def test_an_operator_without_a_gradient_is_named() -> None:
    model = small_network.model()
    node = next(node for node in model.graph.node if node.name == "relu2")
    node.CopyFrom(onnx.helper.make_node("Acos", ["g"], ["h"], name="angle"))
    with pytest.raises(UnsupportedError, match=r"relax.acos \(Acos angle\) has no gradient here"):
        training.compile(model, "softmax_cross_entropy", "sgd")


def test_a_gradient_that_is_not_there_yet_names_its_node() -> None:
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    places = np.array([[[1], [0]], [[2], [2]], [[4], [0]]])
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["a"]),
            helper.make_node("GatherND", ["a", "places"], ["y"], batch_dims=1, name="picked"),
        ],
        "picks",
        [helper.make_tensor_value_info("x", kind, [3, 2])],
        [helper.make_tensor_value_info("y", kind, [3, 2])],
        [
            onnx.numpy_helper.from_array(np.full((2, 5), 0.5, "float32"), "w"),
            onnx.numpy_helper.from_array(places, "places"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    with pytest.raises(UnsupportedError, match=r"relax.gather_nd \(GatherND picked\): gather_nd along axes"):
        training.compile(model, "mean_squared_error", "sgd")


@pytest.mark.slow
def test_the_first_operator_that_makes_no_number_is_named() -> None:
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
            helper.make_node("Log", ["a"], ["y"], name="logarithm"),
        ],
        "logarithm",
        [helper.make_tensor_value_info("x", kind, [3, 2])],
        [helper.make_tensor_value_info("y", kind, [3, 5])],
        [onnx.numpy_helper.from_array(np.full((2, 5), 0.5, "float32"), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    step = training.compile(
        model, "mean_squared_error", "adam", target="llvm", detect_anomaly=True, options=OPTIONS
    )
    targets = np.ones((3, 5), "float32")
    assert np.isfinite(step(np.ones((3, 2), "float32"), targets))
    before = step.state_dict()
    with pytest.raises(InvalidInputError, match=r"first made by relax.log \(Log logarithm\)"):
        step(np.array([[1, 2], [-3, 1], [2, 2]], "float32"), targets)
    with pytest.raises(InvalidInputError, match=r"it came in the input x"):
        step(np.full((3, 2), np.nan, "float32"), targets)
    assert _unchanged(step, before)


def test_a_moment_that_is_no_number_is_told() -> None:
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 2])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 3])],
        [onnx.numpy_helper.from_array(np.zeros((2, 3), "float32"), "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    step = training.compile(model, "mean_squared_error", "adam", target="llvm", options=OPTIONS)
    targets = np.full((2, 3), 1e15, "float32")
    before = step.state_dict()
    with pytest.raises(InvalidInputError, match="a new weight or a moment is no number"):
        # The gradient's square is infinite: the weight would stay where it is for ever.
        step(np.full((2, 2), 1e10, "float32"), targets)
    assert _unchanged(step, before)
