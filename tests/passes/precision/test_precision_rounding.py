"""The cost of roundings: the stated squares against measured ones, and the steps that make none."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.precision.rounding import AMPLIFIED, filters_of, rounding, rounding_of, spent_by
from tvm_mxplan.passes.precision.step_types import StepTypes

WIDE, SHORT = "float32", "bfloat16"
F, S, TO_WIDE, TO_SHORT = StepTypes(), StepTypes(SHORT, SHORT), StepTypes(SHORT, WIDE), StepTypes(WIDE, SHORT)
ONE = rounding(SHORT)


@pytest.mark.parametrize(
    "numbers",
    [
        np.random.default_rng(0).standard_normal(200_000),
        np.random.default_rng(1).uniform(-1, 1, 200_000),
        np.exp(np.random.default_rng(2).normal(0, 1, 200_000)),
        np.random.default_rng(3).uniform(1.0, 1.01, 200_000),  # mantissas near 1: the worst there is
    ],
    ids=["normal", "uniform", "over many sizes", "near 1"],
)
@pytest.mark.parametrize(
    ("dtype", "held"), [(SHORT, ml_dtypes.bfloat16), ("float16", np.float16)], ids=["bf16", "f16"]
)
def test_the_square_of_a_rounding_bounds_what_is_measured(numbers: np.ndarray, dtype: str, held) -> None:
    exact = numbers.astype("float32").astype("float64")
    short = exact.astype(held).astype("float64")
    measured = np.square(short - exact).sum() / np.square(exact).sum()
    once = rounding(dtype) / AMPLIFIED**2
    assert once / 4 < measured < 1.01 * once
    stated = rounding_of(numbers.astype("float32"), dtype)
    assert stated == pytest.approx(AMPLIFIED**2 * measured, rel=1e-6)


def test_a_product_of_rounded_operands_errs_by_both() -> None:
    random = np.random.default_rng(4)
    x, w = random.standard_normal((50, 800)), random.standard_normal((800, 60))
    short = [one.astype(ml_dtypes.bfloat16).astype("float64") for one in (x, w)]
    error = np.linalg.norm(short[0] @ short[1] - x @ w) / np.linalg.norm(x @ w)
    stated = rounding_of(x.astype("float32"), SHORT) + rounding_of(w.astype("float32"), SHORT)
    assert AMPLIFIED**2 * error**2 == pytest.approx(stated, rel=0.05)
    assert AMPLIFIED**2 * error**2 < 2 * ONE


def test_constants_that_a_type_holds_cost_nothing() -> None:
    held = np.array([0.0, -1.5, 2.0**-100, 3.0, np.inf, -np.inf, np.nan], "float32")
    assert rounding_of(held, SHORT) == 0.0
    for nothing in (np.zeros((0, 3), "float32"), np.zeros(3, "float32")):
        assert rounding_of(nothing, SHORT) == 0.0
    assert rounding_of(np.array([1.001], "float32"), WIDE) == rounding(WIDE) == 0.0


def test_large_constants_are_taken_in_pieces_that_add_up() -> None:
    numbers = np.random.default_rng(5).standard_normal((3, 1 << 19)).astype("float32")
    short = numbers.astype(ml_dtypes.bfloat16).astype("float64")
    exact = numbers.astype("float64")
    expected = np.square(short - exact).sum() / np.square(exact).sum()
    assert rounding_of(numbers, SHORT) == pytest.approx(AMPLIFIED**2 * expected, rel=1e-9)


def step(attrs: object, *post_ops: object) -> ir.Step:
    operands = (ir.Operand("src", 0), ir.Operand("weights", 1), ir.Operand("dst", 2))
    return ir.Step("s", attrs, operands, tuple(post_ops))  # type: ignore[arg-type]


RELU = ir.Eltwise("relu", 0.0, 0.0)
POOL = ir.Pooling("max", (2, 2), (2, 2), (0, 0), (1, 1))
AVERAGE = ir.Pooling("avg_include_padding", (2, 2), (2, 2), (0, 0), (1, 1))


@pytest.mark.parametrize(
    ("attrs", "types", "spent"),
    [
        (ir.MatMul(), F, 0.0),
        (ir.MatMul(), TO_WIDE, 7.0),
        (ir.MatMul(), S, 7.0 + ONE),
        (ir.LayerNormalization(1e-5), TO_SHORT, ONE),
        (RELU, S, 7.0),
        (ir.Eltwise("relu", 0.1, 0.0), S, 7.0 + ONE),
        (ir.Eltwise("exp", 0.0, 0.0), S, 7.0 + ONE),
        (POOL, S, 7.0),
        (AVERAGE, S, 7.0 + ONE),
        (ir.Concat(1), S, 7.0),
        (ir.Resampling("nearest"), S, 7.0),
        (ir.Resampling("linear"), S, 7.0 + ONE),
        (ir.Reorder(), TO_SHORT, ONE),
    ],
)
def test_steps_spend_by_filters_and_by_results_that_they_round(attrs, types, spent) -> None:
    assert spent_by(step(attrs), types, 7.0) == spent


def test_what_stands_behind_a_step_rounds_again() -> None:
    assert spent_by(step(POOL, ir.EltwisePostOp("exp", 0.0, 0.0)), S, 0.0) == ONE


def test_filters_are_constants_in_the_shorter_type() -> None:
    values = (
        ir.Value("x", (4, 9), WIDE, "input", "ab", 0),
        ir.Value("w", (9, 9), WIDE, "constant", "ab", 0),
        ir.Value("y", (4, 9), WIDE, "output", "ab", 0),
        ir.Value("b", (9,), WIDE, "constant", "a", 1),
    )
    operands = (
        ir.Operand("src", 0), ir.Operand("weights", 1), ir.Operand("bias", 3), ir.Operand("dst", 2)
    )  # fmt: skip
    product = ir.Step("m", ir.MatMul(), operands)
    program = ir.Program("p", values, (product,))
    assert filters_of(program, product, S) == [1]
    assert filters_of(program, product, F) == []
