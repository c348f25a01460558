"""Shares of our kernel for windows over few channels in the time of oneDNN's: formulas by hand."""

from __future__ import annotations

import pytest
from costs_by_hand import info, rates

from tvm_mxplan.byoc.onednn.costs.own.windows import is_own_window, window_share
from tvm_mxplan.byoc.onednn.costs.steps import cost
from tvm_mxplan.byoc.onednn.costs.types import time_share
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts, operands_of

OURS, THEIRS = "windows:avx512_bf16", "jit_bf16:avx512_core_bf16"


def facts(
    channels: int = 3, window: int = 7, implementation: str = OURS, dtype: str = "bfloat16"
) -> StepFacts:
    values = (
        ir.Value("x", (1, channels, 112, 112), dtype, "input", "acdb", 0),
        ir.Value("w", (64, channels, window, window), dtype, "constant", "abcd", 0),
        ir.Value("y", (1, 64, 113 - window, 113 - window), dtype, "output", "acdb", 0),
    )
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    step = ir.Step("s", attrs, (ir.Operand("src", 0), ir.Operand("weights", 1), ir.Operand("dst", 2)))
    layouts = tuple(values[number].layout for _, number in operands_of(step))
    return StepFacts(ir.Program("p", values, (step,)), step, layouts, info(implementation))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (facts(), (7 * 22 + 28) / (49 * 4 + 21)),
        (facts(window=11), (11 * 34 + 28) / (121 * 4 + 21)),
        (facts(window=3), (3 * 10 + 28) / (9 * 4 + 21)),
        (facts(8, 3), (3 * 24 + 28) / (9 * 8 + 21)),
        (facts(1, 2), (2 * 2 + 28) / (4 * 4 + 21)),
    ],
)
def test_shares(made: StepFacts, expected: float) -> None:
    assert window_share(made) == pytest.approx(expected)
    assert time_share(made, rates()) == pytest.approx(0.63 * expected)


def test_a_share_is_one_of_oneDNNs_time() -> None:
    machine = rates()
    theirs = cost(facts(implementation=THEIRS), machine)
    assert cost(facts(), machine) == pytest.approx(window_share(facts()) * theirs)


def test_large_windows_gain_and_small_ones_do_not() -> None:
    machine = rates()
    assert is_own_window(facts().info) and not is_own_window(facts(implementation=THEIRS).info)
    for window, wins in ((11, True), (7, True), (5, True), (3, False)):
        theirs = facts(window=window, implementation=THEIRS)
        assert (cost(facts(window=window), machine) < cost(theirs, machine)) == wins
