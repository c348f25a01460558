"""Shares of our kernel for each channel by itself in the time of oneDNN's in float32: formulas by hand."""

from __future__ import annotations

import pytest
from costs_by_hand import info, rates

from tvm_mxplan.byoc.onednn.costs.own.depthwise import depthwise_share, is_own_depthwise
from tvm_mxplan.byoc.onednn.costs.steps import cost
from tvm_mxplan.byoc.onednn.costs.types import time_share
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts, operands_of

OURS, THEIRS, FLOAT = "depthwise:avx512_bf16", "jit_dw:avx512_core_bf16", "brgdmm_dw:avx512_core"


def facts(
    channels: int = 64,
    window: int = 3,
    implementation: str = OURS,
    dtype: str = "bfloat16",
    stride: int = 1,
    dilation: int = 1,
) -> StepFacts:
    side = (28 - (window - 1) * dilation - 1) // stride + 1
    values = (
        ir.Value("x", (1, channels, 28, 28), dtype, "input", "acdb", 0),
        ir.Value("w", (channels, 1, 1, window, window), dtype, "constant", "abcde", 0),
        ir.Value("y", (1, channels, side, side), dtype, "output", "acdb", 0),
    )
    attrs = ir.Convolution((stride, stride), (0, 0, 0, 0), (dilation, dilation), channels)
    step = ir.Step("s", attrs, (ir.Operand("src", 0), ir.Operand("weights", 1), ir.Operand("dst", 2)))
    layouts = tuple(values[number].layout for _, number in operands_of(step))
    return StepFacts(ir.Program("p", values, (step,)), step, layouts, info(implementation))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (facts(), 16.5 / 20),
        (facts(window=5), 24.5 / 36),
        (facts(window=7), 36.5 / 60),
        (facts(16), 1.4 * 16.5 / 20),
        (facts(8), 1.4 * 16.5 / 20),
        (facts(24), 16.5 / 20),
        (facts(stride=2), 16.5 / 20),
        (facts(window=5, stride=3), 1.5 * 24.5 / 36),
        (facts(dilation=2), 1.5 * 16.5 / 20),
        (facts(144), 4.7 / 4.5 * 16.5 / 20),
    ],
)
def test_shares(made: StepFacts, expected: float) -> None:
    assert depthwise_share(made) == pytest.approx(expected)
    assert time_share(made, rates()) == pytest.approx(expected)


def test_a_share_is_one_of_the_time_in_float32() -> None:
    machine = rates()
    there = cost(facts(implementation=FLOAT, dtype="float32"), machine)
    assert cost(facts(), machine) == pytest.approx(depthwise_share(facts()) * there)


@pytest.mark.parametrize("window", [3, 5, 7])
def test_ours_takes_less_than_the_librarys(window: int) -> None:
    machine, theirs = rates(), facts(window=window, implementation=THEIRS)
    assert is_own_depthwise(facts().info) and not is_own_depthwise(theirs.info)
    assert cost(facts(window=window), machine) < cost(theirs, machine)
