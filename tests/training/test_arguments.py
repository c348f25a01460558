"""Arguments that cannot be are errors of the user's, which name them; numpy's numbers are numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tvm_mxplan import training
from tvm_mxplan.errors import InvalidInputError

SMALL: dict[str, Any] = {"target": "llvm", "options": {"machine": "default", "cache": "disabled"}}
RANDOM = np.random.default_rng(5)
X, LABELS = RANDOM.standard_normal((4, 6)).astype("float32"), np.array([0, 1, 2, 0])


def product(classes: int) -> onnx.ModelProto:
    weight = np.random.default_rng(classes).standard_normal((6, classes)).astype("float32")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, classes])],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def compiled(optimizer: Any, loss: Any = "softmax_cross_entropy", classes: int = 3) -> training.TrainingStep:
    return training.compile(product(classes), loss, optimizer, **SMALL)


@pytest.fixture(scope="module")
def step() -> training.TrainingStep:
    made = compiled(training.Adam(np.float32(0.1), betas=[np.float64(0.9), 0.99]))
    made(X, LABELS)
    return made


class Rate:
    """A learning rate that cannot be copied."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, step: int) -> np.float32:
        return np.float32(0.1)


def test_a_rate_may_hold_what_cannot_be_copied_and_be_a_number_of_numpy() -> None:
    step, plain = compiled(training.SGD(Rate())), compiled(training.SGD(float(np.float32(0.1))))
    assert step(X, LABELS) == plain(X, LABELS)
    np.testing.assert_array_equal(step.state_dict()["model"]["w"], plain.state_dict()["model"]["w"])


@pytest.mark.parametrize("order", [(3, 10), (10, 3)])
def test_one_loss_serves_two_models(order: tuple[int, int]) -> None:
    loss = training.SoftmaxCrossEntropy()
    steps = {classes: compiled("sgd", loss, classes) for classes in order}
    seventh = np.array([0, 1, 7, 2])
    with pytest.raises(InvalidInputError, match=r"labels\[2\] is 7; expected 0 to 2, the classes"):
        steps[3](X, seventh)
    assert np.isfinite(steps[10](X, seventh))
    assert np.isfinite(steps[3](X, LABELS))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: training.SGD("0.1"), r"learning_rate='0.1'; expected a number of at least 0, or a function"),
        (lambda: training.SGD(-1.0), r"learning_rate=-1.0; expected"),
        (lambda: training.AdamW(float("nan")), r"learning_rate=nan; expected"),
        (lambda: training.Adam(betas=0.9), r"betas=0.9; expected two numbers"),
        (lambda: training.Adam(betas=("a", 0.9)), r"betas='a'; expected a number from 0 to below 1"),
        (lambda: training.SGD(momentum=True), r"momentum=True; expected a number from 0 to below 1"),
        (lambda: training.SoftmaxCrossEntropy("a"), r"label_smoothing='a'; expected a number from 0"),
        (lambda: training.SoftmaxCrossEntropy(ignore=1.5), r"ignore=1.5; expected a whole number of int64"),
        (lambda: training.SoftmaxCrossEntropy(ignore=2**70), r"ignore=\d+; expected a whole number of int64"),
        (lambda: training.StepDecay("a", 3), r"rate='a'; expected a number of at least 0"),
        (lambda: training.Cosine(0.1, 3, warmup=-1), r"warmup=-1; expected a whole number from 0"),
        (lambda: training.Settings(seed=-1), r"seed=-1; expected a whole number from 0"),
        (lambda: training.Settings(clip_norm="a"), r"clip_norm='a'; expected a number above 0"),
        (lambda: training.Settings(trainable=3), r"trainable=3; expected a list of names"),
    ],
)
def test_numbers_that_cannot_be_are_refused_where_they_are_stated(
    made: Callable[[], object], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        made()


def test_numbers_of_numpy_are_settings() -> None:
    made = training.Settings(clip_norm=np.float32(2), accumulate=np.int64(2), seed=np.int32(3))
    assert (type(made.seed), made.seed, made.accumulate) == (int, 3, 2)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"slots": None}, r"state: slots=None; expected a table by names"),
        ({"slots": {"mean": 3, "square": {}}}, r"state: slots of mean=3; expected a table by names"),
        ({"sums": 3}, r"state: sums=3; expected a table by names"),
        ({"optimizer": None}, r"state: optimizer=None; expected a table by names"),
        ({"steps": "x"}, r"state: steps='x'; expected a whole number from 0"),
        ({"steps": -1}, r"state: steps=-1; expected a whole number from 0"),
        ({"calls": 1.5}, r"state: calls=1.5; expected a whole number from 0"),
    ],
)
def test_states_that_are_none_are_refused(
    step: training.TrainingStep, part: dict[str, Any], message: str
) -> None:
    before = step.state_dict()
    with pytest.raises(InvalidInputError, match=message):
        step.load_state_dict({**before, **part})
    assert step.steps == before["steps"]


@pytest.mark.parametrize("state", [None, 3, "model"])
def test_another_thing_is_no_state(step: training.TrainingStep, state: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"state: a \w+; expected what state_dict\(\) gives"):
        step.load_state_dict(state)


def test_labels_are_told_as_they_are_given(step: training.TrainingStep) -> None:
    with pytest.raises(InvalidInputError, match=r"labels\[1\] is 18446744073709551615; expected"):
        step(X, np.array([0, 2**64 - 1, 1, 2], "uint64"))
    assert np.isfinite(step(X, LABELS.astype("uint64")))


def test_a_batch_of_which_no_label_counts_is_refused() -> None:
    step = compiled("sgd", training.SoftmaxCrossEntropy(ignore=np.int64(-1)))
    before = step.state_dict()["model"]["w"]
    with pytest.raises(InvalidInputError, match="labels: each one is -1, which does not count"):
        step(X, np.full(4, -1))
    np.testing.assert_array_equal(step.state_dict()["model"]["w"], before)
    assert np.isfinite(step(X, np.array([-1, -1, 2, -1])))
