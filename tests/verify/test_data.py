"""Operands on which float32 has nothing to round."""

from __future__ import annotations

import numpy as np
import pytest
from single_kernels import RELU, convolution, kernel

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.verify.data import depth, drawn, operands


@pytest.mark.parametrize("inputs, taps", [(3, 1), (3, 3), (67, 3), (512, 3), (2048, 1)])
def test_sums_are_exact_and_near_one(inputs: int, taps: int) -> None:
    program = convolution((inputs, 17), (5, 4), taps=taps).program
    step = program.steps[0]
    assert depth(program) == inputs * taps * taps
    found = operands(program)
    src, weights, bias = (found[step.operand(role)] for role in ("src", "weights", "bias"))
    unit = np.abs(weights[weights != 0]).min()
    for array in (src, weights / unit, bias / unit):
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, np.round(array))
    largest = depth(program) * np.abs(src).max() * np.abs(weights).max() + np.abs(bias).max()
    assert largest / unit < 2**24
    rows = np.random.default_rng(0).choice(src.reshape(-1), (400, depth(program)))
    sums = rows @ weights.reshape(17, -1).T
    assert 1 < sums.std() < 9


def test_a_turn_changes_inputs_alone() -> None:
    program = kernel(ir.MatMul(), ((1, 67), ""), [RELU], src=((1, 31), ""), weights=((31, 67), "")).program
    first = operands(program)
    second = operands(program, 1, first)
    assert second[program.steps[0].operand("weights")] is first[program.steps[0].operand("weights")]
    src = program.steps[0].operand("src")
    assert (first[src] != second[src]).mean() > 0.5


def test_blocks_of_large_tensors_differ() -> None:
    """No two blocks of any size that kernels use are equal, which the wrong one would show by."""
    numbers = drawn((1_200_000,), 1)
    for block in (64, 1024, 4096):
        blocks = numbers[: len(numbers) // block * block].reshape(-1, block)
        assert len(np.unique(blocks, axis=0)) == len(blocks)


def test_what_has_no_exact_sums() -> None:
    program = ir.Program(
        "",
        (
            ir.Value("", (1, 2**24), "float32", "input", "ab", 0),
            ir.Value("", (2**24, 1), "float32", "constant", "ab", 0),
            ir.Value("", (1, 1), "float32", "output", "ab", 0),
        ),
        (ir.Step("", ir.MatMul(), (ir.Operand("src", 0), ir.Operand("weights", 1), ir.Operand("dst", 2))),),
    )
    with pytest.raises(UnsupportedError, match="sums of 16777216 products"):
        operands(program)
