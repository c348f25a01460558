"""Steps of training: numbers that go into them, results in order, and pools that are left to TVM."""

from __future__ import annotations

import numpy as np
import pytest
from composites import composite_of, roles, shapes, tensor, typed

from tvm_mxplan.byoc import own_operators
from tvm_mxplan.byoc.onednn.families import training
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.batch_norm import Normalization, batch_norm, batch_norm_backward
from tvm_mxplan.operators.gate import gate
from tvm_mxplan.operators.layer_norm import layer_norm_backward
from tvm_mxplan.operators.pooling_gradients import Pool, average_pool_backward, max_pool_backward
from tvm_mxplan.operators.recurrent_training import TrainedLayer, recurrent_backward, recurrent_training

CHANNELS = ("scale", "shift", "mean", "variance")


def normalized(*shape: int, unbiased: bool = False, momentum: float = 0.125):
    operands = [tensor("x", *shape), *(tensor(name, shape[1]) for name in CHANNELS)]
    return composite_of(batch_norm(operands, Normalization(1e-3, momentum, unbiased)))


def factors(c) -> list[float]:
    """Factors of the running statistics in order: kept mean, new mean, kept variance, new variance."""
    return [step.attrs.alpha for step in c.builder.steps if isinstance(step.attrs, ir.Eltwise)]


# --- batch norms -------------------------------------------------------------------------------------------


def test_batch_norms_have_ranks_2_to_5() -> None:
    for rank, taken in ((2, True), (3, True), (5, True), (6, False)):
        shape = (2, 3, *[4] * (rank - 2))
        operands = [tensor("x", *shape), *(tensor(name, 3) for name in CHANNELS)]
        call = typed(batch_norm(operands, Normalization(1e-3, 0.1, False)))
        reason = training.ranks({"root": call})
        assert reason is None if taken else reason == "rank 6, batch norms are taken from 2 to 5"


def test_a_batch_norm_has_the_operands_of_the_operator() -> None:
    c = normalized(2, 3, 4, 5)
    results = training.batch_norm(c)
    step = c.builder.steps[0]
    assert step.attrs == ir.BatchNormalizationTraining(pytest.approx(1e-3))
    assert roles(c, step) == {
        "src": 0, "scale": 1, "shift": 2,
        "dst": results[0], "batch_mean": results[1], "batch_variance": results[2],
    }  # fmt: skip
    assert shapes(c, step)["dst"] == (2, 3, 4, 5) and shapes(c, step)["batch_mean"] == (3,)
    assert len(results) == 5 and all(c.builder.values[value].shape == (3,) for value in results[1:])


def test_running_statistics_keep_what_the_momentum_leaves() -> None:
    c = normalized(2, 3, 4, 5)
    *_, mean, variance = training.batch_norm(c)
    assert factors(c) == [0.875, 0.125, 0.875, 0.125]
    scaled = {step.dst: step.operand("src") for step in c.builder.steps if isinstance(step.attrs, ir.Eltwise)}
    sums = [step for step in c.builder.steps if step.attrs == ir.Binary("add")]
    assert [step.dst for step in sums] == [mean, variance]
    # The running mean and variance are inputs 3 and 4, those of the batch results of the step.
    batch = c.builder.steps[0].results
    read = [[scaled[step.operand(role)] for role in ("src", "src1")] for step in sums]
    assert read == [[3, batch[1]], [4, batch[2]]]


def test_an_unbiased_variance_is_divided_by_one_element_less() -> None:
    c = normalized(2, 3, 4, 5, unbiased=True)
    training.batch_norm(c)
    terms = 2 * 4 * 5
    assert factors(c) == [0.875, 0.125, 0.875, pytest.approx(0.125 * terms / (terms - 1))]


def test_the_variance_of_one_element_is_as_it_is() -> None:
    c = normalized(1, 3, unbiased=True)
    training.batch_norm(c)
    assert np.isfinite(factors(c)).all() and factors(c)[-1] == pytest.approx(0.125)


def test_gradients_of_a_batch_norm_stand_in_order() -> None:
    operands = [tensor("x", 2, 3, 4), tensor("g", 2, 3, 4), *(tensor(one, 3) for one in "mvs")]
    c = composite_of(batch_norm_backward(operands, 1e-3))
    results = training.batch_norm_backward(c)
    (step,) = c.builder.steps
    assert step.attrs == ir.BatchNormalizationBackward(pytest.approx(1e-3))
    assert roles(c, step) == {
        "src": 0, "gradient": 1, "mean": 2, "variance": 3, "scale": 4,
        "dst": results[0], "scale_gradient": results[1], "shift_gradient": results[2],
    }  # fmt: skip
    assert [c.builder.values[value].shape for value in results] == [(2, 3, 4), (3,), (3,)]


@pytest.mark.parametrize(("algorithm", "bound"), [("gt", 0.0), ("le", 6.0), ("ge", -1.5)])
def test_a_gate_is_one_step_that_compares_and_multiplies(algorithm: str, bound: float) -> None:
    """The tensor is compared with the bound, and the gradient multiplied by the result."""
    c = composite_of(gate(tensor("x", 2, 3, 4), tensor("g", 2, 3, 4), algorithm, bound))
    dst = own_operators.gate(c)
    (step,) = c.builder.steps
    number = step.operand("src1")
    assert (step.attrs, step.post_ops) == (ir.Binary(algorithm), (ir.BinaryPostOp("mul", 1),))
    assert roles(c, step) == {"src": 0, "src1": number, "dst": dst}
    assert c.builder.values[dst].shape == (2, 3, 4) and c.builder.values[number].shape == (1, 1, 1)
    assert c.builder.constants[c.builder.values[number].index].tolist() == [[[bound]]]


def test_gates_have_ranks_1_to_5() -> None:
    for rank, taken in ((1, True), (2, True), (5, True), (6, False)):
        shape = (3,) * rank
        reason = training.gated({"root": gate(tensor("x", *shape), tensor("g", *shape), "gt", 0.0)})
        assert reason is None if taken else reason == "rank 6, gates are taken from 1 to 5"
    empty = gate(tensor("x"), tensor("g"), "gt", 0.0)
    assert training.gated({"root": empty}) == "rank 0, gates are taken from 1 to 5"


def test_gradients_of_a_layer_norm_stand_in_order() -> None:
    c = composite_of(layer_norm_backward(tensor("x", 6, 5), tensor("g", 6, 5), tensor("s", 5), 1e-3))
    results = training.layer_norm_backward(c)
    (step,) = c.builder.steps
    assert step.attrs == ir.LayerNormalizationBackward(pytest.approx(1e-3))
    assert roles(c, step) == {
        "src": 0, "gradient": 1, "scale": 2,
        "dst": results[0], "scale_gradient": results[1], "shift_gradient": results[2],
    }  # fmt: skip
    assert [c.builder.values[value].shape for value in results] == [(6, 5), (5,), (5,)]


def test_gradients_of_layer_norms_have_ranks_2_to_5() -> None:
    for rank, taken in ((1, False), (2, True), (5, True), (6, False)):
        shape = (2,) * (rank - 1) + (3,)
        call = typed(layer_norm_backward(tensor("x", *shape), tensor("g", *shape), tensor("s", 3), 1e-3))
        reason = training.rows({"root": call})
        assert (
            reason is None
            if taken
            else reason == f"rank {rank}, gradients of layer norms are taken from 2 to 5"
        )


# --- recurrent layers --------------------------------------------------------------------------------------

LSTM = TrainedLayer("lstm", "both", (0, 3, 1, 2))
GRU = TrainedLayer("gru_linear", "reverse", (0, 1, 2))


def test_a_recurrent_layer_keeps_what_its_gradients_are_made_of() -> None:
    given = {
        "products": tensor("p", 4, 3, 40), "recurrence": tensor("r", 2, 20, 5),
        "hidden": tensor("h", 2, 3, 5), "cell": tensor("c", 2, 3, 5),
    }  # fmt: skip
    c = composite_of(recurrent_training(LSTM, given))
    results = training.recurrent(c)
    (step,) = c.builder.steps
    assert step.attrs == ir.RecurrentTraining("lstm", "both", (0, 3, 1, 2))
    assert roles(c, step) == {
        "src": 0, "recurrence": 1, "hidden": 2, "cell": 3, "dst": results[0], "kept_gates": results[1],
        "kept_cells": results[2], "last_cell": results[3],
    }  # fmt: skip
    assert [c.builder.values[value].shape for value in results] == [
        (4, 3, 10), (4, 3, 40), (4, 3, 10), (2, 3, 5),
    ]  # fmt: skip


def test_a_gru_hands_back_the_gradient_of_what_it_resets() -> None:
    given = {
        "gates": tensor("k", 4, 3, 20), "recurrence": tensor("r", 1, 15, 5),
        "outputs": tensor("y", 4, 3, 5), "gradient": tensor("g", 4, 3, 5),
    }  # fmt: skip
    c = composite_of(recurrent_backward(GRU, given))
    results = training.recurrent_backward(c)
    (step,) = c.builder.steps
    assert step.attrs == ir.RecurrentBackward("gru_linear", "reverse", (0, 1, 2))
    assert roles(c, step) == {
        "src": 0, "recurrence": 1, "outputs": 2, "gradient": 3, "dst": results[0],
        "hidden_gradient": results[1], "reset_gradient": results[2],
    }  # fmt: skip
    assert [c.builder.values[value].shape for value in results] == [(4, 3, 15), (1, 3, 5), (4, 3, 5)]


# --- pools -------------------------------------------------------------------------------------------------

PLAIN = Pool((3, 2), (2, 1), (1, 0, 1, 1), (1, 1))


def gradient(pool: Pool = PLAIN, kind: str = "max", image: tuple[int, ...] = (7, 6), rows: int = 0):
    """A pool's gradient; ``rows`` more of the first axis than fit into its source."""
    size = [
        (image[at] + pool.padding[at] + pool.padding[2 + at] - pool.size[at]) // pool.strides[at] + 1
        for at in range(2)
    ]
    src, grad = tensor("x", 2, 3, *image), tensor("g", 2, 3, size[0] + rows, size[1])
    if kind == "max":
        return max_pool_backward(src, grad, pool)
    return average_pool_backward(src, grad, pool, count_include_pad=kind == "include")


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [("max", "max"), ("include", "avg_include_padding"), ("exclude", "avg_exclude_padding")],
)
def test_the_gradient_of_a_pool_has_its_window(kind: str, algorithm: str) -> None:
    c = composite_of(gradient(kind=kind))
    dst = training.pooling_backward(c)
    (step,) = c.builder.steps
    # Padding in front of both axes; the rest follows from the shapes.
    assert step.attrs == ir.PoolingBackward(algorithm, (3, 2), (2, 1), (1, 0), (1, 1))
    assert roles(c, step) == {"src": 0, "gradient": 1, "dst": dst}
    assert c.builder.values[dst].shape == (2, 3, 7, 6)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (gradient(), None),
        (gradient(kind="include"), None),
        (gradient(Pool((3, 2), (2, 1), (1, 0, 1, 1), (1, 2))), "a dilated window"),
        (gradient(Pool((3, 2), (2, 1), (2, 1, 2, 1), (1, 1))), None),
        (gradient(Pool((3, 2), (2, 1), (3, 0, 1, 1), (1, 1))), "padding [3, 0, 1, 1] is not smaller"),
        (gradient(Pool((3, 2), (2, 1), (1, 0, 1, 2), (1, 1))), "padding [1, 0, 1, 2] is not smaller"),
        (gradient(Pool((3, 2), (2, 1), (0, 2, 1, 1), (1, 1))), "is not smaller than the kernel [3, 2]"),
        (gradient(kind="include", rows=1), "a window past the padded input"),
        (gradient(kind="exclude", rows=1), None),
        (gradient(kind="max", rows=1), None),
    ],
)
def test_pools_that_the_library_has_gradients_of(call, reason: str | None) -> None:
    answer = training.pool({"root": typed(call)})
    assert answer is None if reason is None else reason in str(answer)


def test_counted_padding_reaches_as_far_as_the_last_window() -> None:
    """Windows that end with the padding on either side are inside, one place further is not."""
    for behind, inside in ((1, True), (0, False)):
        pool = Pool((3, 2), (2, 1), (1, 0, behind, 1), (1, 1))
        src, grad = tensor("x", 2, 3, 7, 6), tensor("g", 2, 3, 4, 6)
        call = typed(average_pool_backward(src, grad, pool, count_include_pad=True))
        assert (training.pool({"root": call}) is None) == inside
