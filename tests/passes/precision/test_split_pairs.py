"""Pairs of convolutions taken apart: the value between them, their operands and what stands behind each."""

from __future__ import annotations

import pytest
from costed_programs import RELU, TANH, pair

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.program_rules import check_program
from tvm_mxplan.passes.precision.split_pairs import parts_of, split_pairs


@pytest.mark.parametrize("before", [(), (RELU,), (RELU, TANH)])
@pytest.mark.parametrize("behind", [(), (TANH,), (TANH, RELU)])
def test_post_ops_stand_behind_the_convolution_that_they_stood_behind(before, behind) -> None:
    program = split_pairs(pair(before, behind))
    check_program(program)
    first, second, last = program.steps
    assert (first.post_ops, second.post_ops) == (before, behind)
    assert (first.name, second.name) == parts_of("c") == ("c", "c.depthwise")
    assert last == pair(before, behind).steps[1]


@pytest.mark.parametrize("biased", [True, False])
def test_each_has_its_own_operands(biased: bool) -> None:
    whole = pair((RELU,), (), biased=biased)
    program = split_pairs(whole)
    assert program.values[: len(whole.values)] == whole.values
    (middle,) = program.values[len(whole.values) :]
    assert (middle.shape, middle.kind, middle.dtype, middle.layout) == (
        (2, 24, 11, 7), "local", "float32", "abcd",
    )  # fmt: skip
    first, second, _ = program.steps
    at = len(whole.values)
    biases = ({"bias": 2}, {"bias": 4}) if biased else ({}, {})
    assert {o.role: o.value for o in first.operands} == {"src": 0, "weights": 1, **biases[0], "dst": at}
    assert {o.role: o.value for o in second.operands} == {"src": at, "weights": 3, **biases[1], "dst": 5}
    assert first.attrs == whole.steps[0].attrs
    assert second.attrs == ir.Convolution((2, 2), (1, 1, 1, 1), (1, 1), 24)


def test_only_pairs_that_are_not_kept_are_taken_apart() -> None:
    whole = pair((), ())
    assert split_pairs(whole, {"c"}) == whole
    assert len(split_pairs(whole, {"last"}).steps) == 3
    assert split_pairs(split_pairs(whole)) == split_pairs(whole)
