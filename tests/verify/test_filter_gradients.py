"""A kernel of gradients of weights is held against numbers that are worked out for some of its filters."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.verify import references
from tvm_mxplan.verify.data import operands
from tvm_mxplan.verify.references import Run, judge


def program(groups: int) -> ir.Program:
    attrs = ir.ConvolutionBackwardWeights((2, 1), (1, 0, 0, 1), (1, 2), groups)
    shape = (9, 6, 3, 2) if groups == 1 else (groups, 9 // groups, 6 // groups, 3, 2)
    values = (
        ir.Value("src", (2, 6, 11, 8), "float32", "input", "abcd", 0),
        ir.Value("gradient", (2, 9, 5, 7), "float32", "input", "abcd", 1),
        ir.Value("dst", shape, "float32", "output", "abcde"[: len(shape)], 0),
    )
    roles = ("src", "gradient", "dst")
    return ir.Program("", values, (ir.Step("", attrs, tuple(map(ir.Operand, roles, range(3)))),))


def by_hand(given: dict[int, np.ndarray], shape: tuple[int, ...], groups: int) -> np.ndarray:
    padded = np.pad(given[0], ((0, 0), (0, 0), (1, 0), (0, 1))).astype("float64")
    found = np.zeros((groups, 9 // groups, 6 // groups, 3, 2))
    for group, r, s in np.ndindex(groups, 3, 2):
        seen = padded[:, group * (6 // groups) :][:, : 6 // groups, r : r + 9 : 2, 2 * s : 2 * s + 7]
        grads = given[1][:, group * (9 // groups) :][:, : 9 // groups]
        found[group, :, :, r, s] = np.einsum("nkhw,nchw->kc", grads, seen)
    return found.reshape(shape).astype("float32")


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("multiplied", [1 << 30, 1])
def test_right_numbers_pass_and_wrong_ones_are_found(
    groups: int, multiplied: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "MULTIPLIED", multiplied)
    whole = program(groups)
    given = operands(whole)
    shape: tuple[int, ...] = whole.values[2].shape  # type: ignore[assignment]
    right = by_hand(given, shape, groups)
    assert judge(Run(whole, given, None, right, 0.0)) is None
    wrong = right.copy()
    wrong[(-1,) * len(shape)] += 1
    finding = judge(Run(whole, given, None, wrong, 0.0))
    assert finding is not None
    assert finding.index == tuple(extent - 1 for extent in shape)
