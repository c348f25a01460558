"""Shares of our kernel for the largest of windows in the time in float32: formulas by hand."""

from __future__ import annotations

import pytest
from costs_by_hand import info, rates

from tvm_mxplan.byoc.onednn.costs.integers import integer_share
from tvm_mxplan.byoc.onednn.costs.steps import cost
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts, operands_of

OURS, THEIRS = "maxima:avx512", "jit_int:avx512_core"


def facts(
    channels: int = 64,
    size: int = 55,
    window: int = 3,
    stride: int = 2,
    implementation: str = OURS,
    dtype: str = "uint8",
) -> StepFacts:
    src = (size - 1) * stride + window
    values = (
        ir.Value("x", (1, channels, src, src), dtype, "input", "acdb", 0),
        ir.Value("y", (1, channels, size, size), dtype, "output", "acdb", 0),
    )
    attrs = ir.Pooling("max", (window,) * 2, (stride,) * 2, (0, 0), (1, 1))
    step = ir.Step("s", attrs, (ir.Operand("src", 0), ir.Operand("dst", 1)))
    layouts = tuple(values[number].layout for _, number in operands_of(step))
    return StepFacts(ir.Program("p", values, (step,)), step, layouts, info(implementation))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (facts(), 0.30),  # 55 * 11 loads and stores, or 111 * 5 + 55 * 5
        (facts(256), 0.30),
        (facts(100), 0.30 * 128 / 112),
        (facts(1000, 1, 13, 13), 0.30 * 1024 / 1008),
        (facts(64, 56, 2, 2), 0.30),
        (facts(64, 20, 5, 1), 0.20 * 10 / 25),
        (facts(64, 56, 13, 1), 0.20 * 26 / 169),
        (facts(17, 56, 3, 1), 0.20 * 6 * 17 / (9 * 32)),
        (facts(16, 56, 3, 2), 0.20 * (6 * 16 + 3 * 64) / (9 * 16)),
        (facts(3, 112, 3, 2), 0.20 * (6 * 3 + 3 * 64) / (9 * 16)),
    ],
)
def test_shares(made: StepFacts, expected: float) -> None:
    assert integer_share(made) == pytest.approx(expected)


def test_a_share_is_one_of_the_time_in_float32() -> None:
    machine = rates()
    floats = facts(64, 20, 5, 1, "jit:avx512_core", "float32")
    assert cost(facts(64, 20, 5, 1), machine) == pytest.approx(0.08 * cost(floats, machine))


def test_large_windows_gain_and_the_librarys_have_its_share() -> None:
    machine = rates()
    assert integer_share(facts(implementation=THEIRS)) == 0.30
    assert cost(facts(64, 20, 5, 1), machine) < 0.5 * cost(facts(64, 20, 5, 1, THEIRS), machine)
