"""Post-ops behind Winograd's convolutions against the direct sum in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from program_builder import call, random
from winograd_cases import ALGORITHMS, LAYOUTS, RELU, Case

from tvm_mxplan.core.program import program as ir


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "post_op, reference",
    [
        (ir.EltwisePostOp("relu", 0.25, 0.0), lambda y: np.where(y > 0, y, 0.25 * y)),
        (ir.EltwisePostOp("clip", -0.5, 0.75), lambda y: np.clip(y, -0.5, 0.75)),
        (ir.EltwisePostOp("clip_v2", 0.0, 6.0), lambda y: np.clip(y, 0, 6)),
        (ir.EltwisePostOp("linear", 1.5, -0.5), lambda y: 1.5 * y - 0.5),
        (ir.EltwisePostOp("logistic", 0.0, 0.0), lambda y: 1 / (1 + np.exp(-y))),
        (ir.EltwisePostOp("swish", 1.5, 0.0), lambda y: y / (1 + np.exp(-1.5 * y))),
        (ir.EltwisePostOp("tanh", 0.0, 0.0), np.tanh),
        (ir.EltwisePostOp("elu", 0.5, 0.0), lambda y: np.where(y > 0, y, 0.5 * np.expm1(np.minimum(y, 0)))),
        (ir.EltwisePostOp("hardsigmoid", 0.25, 0.5), lambda y: np.clip(0.25 * y + 0.5, 0, 1)),
        (ir.EltwisePostOp("hardswish", 0.25, 0.5), lambda y: y * np.clip(0.25 * y + 0.5, 0, 1)),
    ],
)
def test_eltwise(algorithm, layout, post_op, reference):
    case = Case(algorithm, (2, 19, 9, 10), 35, layouts=(layout, layout)).convolve(post_op)
    case.check(reference(case.direct()).astype("float32"))


@pytest.mark.parametrize("size", [1e-4, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("name", ["logistic", "swish", "tanh", "elu"])
def test_exponentials_of_small_and_large_numbers(name, size):
    """Held by opcheck, element by element, to what float64 gives for the same tile."""
    case = Case("winograd_f4", (1, 16, 9, 10), 35)
    case.w, case.bias = case.w * np.float32(size), case.bias * np.float32(size)
    case.convolve(ir.EltwisePostOp(name, 1.0, 0.0))
    assert case.info().implementation == "winograd_f4"
    assert np.isfinite(case.builder.run(case.x)).all()


BINARY: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("per_channel", [False, True])
def test_binary(layout, name, per_channel):
    case = Case("winograd_f4", (2, 19, 9, 10), 35, layouts=(layout, layout))
    other = np.abs(random(*((1, 35, 1, 1) if per_channel else case.shape), seed=2)) + np.float32(0.5)
    b = case.builder
    value = b.constant(other) if per_channel else b.reorder(b.input(case.shape), layout)
    case.convolve(ir.BinaryPostOp(name, value), RELU)
    apply: Any = {
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "min": np.minimum,
        "max": np.maximum,
    }
    expected = np.maximum(apply.get(name, np.add)(case.direct(), other), 0)
    case.check(expected, *([] if per_channel else [other]))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sum_then_relu(layout):
    """The residual's bytes are the destination's."""
    case = Case("winograd_f4", (2, 19, 9, 10), 35, layouts=(layout, layout))
    b = case.builder
    residual = random(*case.shape, seed=2)
    held = b.reorder(b.input(case.shape), layout)
    case.dst = b.view(held, case.shape, layout)
    case.convolve(ir.SumPostOp(0.5), RELU)
    case.check(np.maximum(case.direct() + 0.5 * residual, 0), residual)


def test_values_that_are_no_numbers_stay_where_they_are():
    """One NaN reaches the tiles that read it, and no stale bytes of a scratchpad reach any."""
    case = Case("winograd_f4", (1, 16, 40, 40), 16).convolve(RELU)
    case.x[0, 3, 20, 20] = np.nan
    y = np.zeros(case.shape, "float32")
    call(case.builder.module(), "case", case.x, y)  # opcheck would tell of the NaN
    assert np.isnan(y[0, :, 20, 20]).all()
    assert np.isfinite(y[0, :, :16]).all() and np.isfinite(y[0, :, 25:]).all()
