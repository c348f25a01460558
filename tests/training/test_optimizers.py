"""New weights by each optimiser against PyTorch's formulas in float64; clipping; schedules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tvm import relax

import tvm_mxplan
from tvm_mxplan import training
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.operators.update import all_finite
from tvm_mxplan.testing.reference import relative_l2
from tvm_mxplan.training.functions import Clipping, Recipe, update_function
from tvm_mxplan.training.losses import MeanSquaredError
from tvm_mxplan.training.model import Model
from tvm_mxplan.training.optimizers import Optimizer

SHAPES = {"w": (3, 5), "b": (5,)}
STEPS = 4


def updates(optimizer: Optimizer, clipping: Clipping, random: np.random.Generator):  # type: ignore[no-untyped-def]
    """First weights, the gradients of some steps, and the weights behind each."""
    first = {name: random.standard_normal(shape).astype("float32") for name, shape in SHAPES.items()}
    nothing = relax.Function([], relax.Tuple([]), relax.TupleType([]))
    model = Model(nothing, (), first, frozenset(first), ())
    run = tvm_mxplan.compile(update_function(Recipe(model, MeanSquaredError(), optimizer, clipping)), "llvm")
    weights = list(first.values())
    slots = [np.zeros_like(array) for _ in optimizer.slots for array in weights]
    grads, after = [], []
    for step in range(STEPS):
        grads.append(
            {name: random.standard_normal(shape).astype("float32") for name, shape in SHAPES.items()}
        )
        numbers = [np.array(value, "float32") for value in optimizer.numbers_of(step, optimizer.rate(step))]
        found = [tensor.numpy() for tensor in run(*weights, *numbers, *slots, *grads[-1].values())]
        count = len(weights)
        weights, slots, largest = found[:count], found[count:-count], found[-count:]
        assert all(map(all_finite, largest))
        after.append(dict(zip(first, weights, strict=True)))
    return first, grads, after


def sgd(momentum: float, decay: float, nesterov: bool) -> Callable[..., np.ndarray]:
    def run(weight, grad, state, step, rate):  # type: ignore[no-untyped-def]
        grad = grad + decay * weight
        state["m"] = momentum * state.get("m", 0) + grad
        return weight - rate * (grad + momentum * state["m"] if nesterov else state["m"])

    return run


def adam(decay: float, *, decoupled: bool) -> Callable[..., np.ndarray]:
    def run(weight, grad, state, step, rate):  # type: ignore[no-untyped-def]
        if decoupled:
            weight = weight * (1 - rate * decay)
        else:
            grad = grad + decay * weight
        state["m"] = 0.8 * state.get("m", 0) + 0.2 * grad
        state["v"] = 0.95 * state.get("v", 0) + 0.05 * grad * grad
        mean, square = state["m"] / (1 - 0.8 ** (step + 1)), state["v"] / (1 - 0.95 ** (step + 1))
        return weight - rate * mean / (np.sqrt(square) + 1e-6)

    return run


BETAS = {"betas": (0.8, 0.95), "epsilon": 1e-6}


@pytest.mark.parametrize(
    "optimizer, formula",
    [
        (training.SGD(0.1), sgd(0, 0, False)),
        (training.SGD(0.1, momentum=0.9, weight_decay=0.1), sgd(0.9, 0.1, False)),
        (training.SGD(training.StepDecay(0.1, 2), momentum=0.7, nesterov=True), sgd(0.7, 0, True)),
        (training.Adam(0.1, weight_decay=0.1, **BETAS), adam(0.1, decoupled=False)),
        (training.AdamW(0.1, weight_decay=0.1, **BETAS), adam(0.1, decoupled=True)),
    ],
)
def test_weights_follow_the_formulas(optimizer: Optimizer, formula: Callable[..., np.ndarray]) -> None:
    first, grads, after = updates(optimizer, Clipping(), np.random.default_rng(0))
    weights = {name: array.astype("float64") for name, array in first.items()}
    states: dict[str, dict] = {name: {} for name in first}  # type: ignore[type-arg]
    for step, grad in enumerate(grads):
        for name in weights:
            weights[name] = formula(weights[name], grad[name], states[name], step, optimizer.rate(step))
            assert relative_l2(after[step][name], weights[name]) < 1e-6


def test_gradients_are_clipped_by_number_and_by_norm() -> None:
    first, grads, after = updates(training.SGD(1.0), Clipping(norm=0.5, value=0.4), np.random.default_rng(1))
    clipped = {name: np.clip(grad.astype("float64"), -0.4, 0.4) for name, grad in grads[0].items()}
    norm = np.sqrt(sum((grad * grad).sum() for grad in clipped.values()))
    assert norm > 0.5
    for name, grad in clipped.items():
        assert relative_l2(after[0][name], first[name] - grad * 0.5 / (norm + 1e-6)) < 1e-6


def test_rates_by_step() -> None:
    decay, cosine = training.StepDecay(0.4, 3, 0.5), training.Cosine(1.0, 12, 0.1, warmup=2)
    assert [decay(step) for step in (0, 2, 3, 6)] == [0.4, 0.4, 0.2, 0.1]
    assert [cosine(step) for step in (0, 1, 2)] == [0.5, 1.0, 1.0]
    assert cosine(7) == pytest.approx(0.55)
    assert cosine(12) == cosine(40) == pytest.approx(0.1)


def test_numbers_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"momentum=1.5; expected a number from 0 to below 1"):
        training.SGD(0.1, momentum=1.5)
    with pytest.raises(InvalidInputError, match="nesterov=True asks for a momentum above 0"):
        training.SGD(0.1, nesterov=True)
    with pytest.raises(InvalidInputError, match="learning rate nan in step 3"):
        training.SGD(lambda step: float("nan")).rate(3)
    with pytest.raises(InvalidInputError, match="weight_decay=-1"):
        training.Adam(weight_decay=-1)
