"""Costs of our kernels for convolutions with few output channels: a formula by hand."""

from __future__ import annotations

import pytest
from costs_by_hand import info, rates

from tvm_mxplan.byoc.onednn.costs.own.few_outputs import few_outputs
from tvm_mxplan.byoc.onednn.costs.steps import cost
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts, operands_of

OURS, THEIRS = "few_outputs:avx512", "jit:avx512_core"


def facts(
    outputs: int = 3,
    inputs: int = 64,
    window: int = 3,
    side: int = 128,
    implementation: str = OURS,
    transposed: bool = False,
) -> StepFacts:
    values = (
        ir.Value("x", (1, inputs, side, side), "float32", "input", "aBcd16b", 0),
        ir.Value("w", (outputs, inputs, window, window), "float32", "constant", "abcd", 0),
        ir.Value("y", (1, outputs, side, side), "float32", "output", "abcd", 0),
    )
    kind = ir.Deconvolution if transposed else ir.Convolution
    attrs = kind((1, 1), (window // 2,) * 4, (1, 1), 1)
    step = ir.Step("s", attrs, (ir.Operand("src", 0), ir.Operand("weights", 1), ir.Operand("dst", 2)))
    layouts = tuple(values[number].layout for _, number in operands_of(step))
    return StepFacts(ir.Program("p", values, (step,)), step, layouts, info(implementation))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ({}, 128 * 8 * (32 * 64 * 27 / 0.9 + 10.0 * (100 + 3 * 9 + 5 * 64 + 12 * 3))),
        ({"inputs": 65}, 128 * 8 * (32 * 65 * 27 / 0.9 + 10.0 * (100 + 3 * 9 * 2 + 5 * 65 + 12 * 3))),
        (
            {"side": 17, "window": 5},
            17 * 2 * (32 * 64 * 75 / 0.9 + 10.0 * (100 + 3 * 15 + 5 * 64)) + 10.0 * 12 * 3 * 17 * 17 / 16,
        ),
        (
            {"implementation": "few_outputs:avx2"},
            128 * 16 * (16 * 64 * 27 / 0.9 + 10.0 * (100 + 3 * 9 + 5 * 64 + 12 * 3)),
        ),
    ],
)
def test_operations(made: dict, expected: float, transposed: bool) -> None:
    assert few_outputs(facts(**made, transposed=transposed), 10.0) == pytest.approx(expected)


@pytest.mark.parametrize("outputs", [1, 3, 8])
def test_ours_take_less_than_the_librarys(outputs: int) -> None:
    machine = rates()
    theirs = cost(facts(outputs, implementation=THEIRS), machine)
    assert cost(facts(outputs), machine) < theirs
    assert cost(facts(outputs), machine) < cost(facts(outputs + 1), machine)


def test_narrow_vectors_take_longer_where_wide_ones_compute_faster() -> None:
    machine = rates(narrow=0.5)
    narrow = cost(facts(implementation="few_outputs:avx2"), machine)
    assert cost(facts(), machine) < narrow
