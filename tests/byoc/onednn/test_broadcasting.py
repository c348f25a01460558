"""Broadcasts of a second operand: the runs that its axes fall into, and which are fast."""

from __future__ import annotations

import pytest

from tvm_mxplan.byoc.onednn.broadcasting import broadcast_runs, can_be_fast, is_fast, is_per_channel
from tvm_mxplan.core.program.dims import Symbol

N = Symbol("n")


@pytest.mark.parametrize(
    ("operand", "dst", "runs"),
    [
        ((1, 17, 1, 1), (2, 17, 5, 7), [(True, [0]), (False, [1]), (True, [2, 3])]),
        ((2, 17, 5, 7), (2, 17, 5, 7), [(False, [0, 1, 2, 3])]),
        ((1, 1, 1, 1), (2, 17, 5, 7), [(True, [0, 1, 2, 3])]),
        ((1, 17, 1, 1), (1, 17, 5, 7), [(False, [0, 1]), (True, [2, 3])]),
        ((2, 1, 5, 1), (2, 17, 5, 7), [(False, [0]), (True, [1]), (False, [2]), (True, [3])]),
        ((2, 1, 1, 1), (2, 1, 5, 1), [(False, [0, 1]), (True, [2, 3])]),
        ((1, 1), (1, 1), [(False, [0, 1])]),
        ((N, 1), (N, 3), [(False, [0]), (True, [1])]),
    ],
)
def test_runs(operand, dst, runs):
    """Extents of 1 in the result are of either kind, and join what stands before them."""
    assert broadcast_runs(operand, dst) == runs


@pytest.mark.parametrize(
    ("operand", "fast", "possible"),
    [
        ((2, 17, 5, 7), True, True),
        ((1, 17, 5, 7), True, True),
        ((1, 1, 5, 7), True, True),
        ((1, 1, 1, 7), True, True),
        ((2, 1, 5, 7), True, True),
        ((2, 1, 1, 7), True, True),
        ((1, 17, 1, 1), True, True),
        ((2, 17, 1, 1), True, True),
        ((1, 1, 1, 1), True, True),
        ((2, 1, 1, 1), False, True),
        ((1, 1, 5, 1), False, True),
        ((1, 17, 5, 1), False, True),
        ((2, 17, 5, 1), False, True),
        ((2, 1, 5, 1), False, False),
        ((1, 17, 1, 7), False, False),
    ],
)
def test_fast_ones(operand, fast, possible):
    dst = (2, 17, 5, 7)
    assert (is_fast(operand, dst), can_be_fast(operand, dst)) == (fast, possible)


def test_fast_ones_of_few_axes():
    assert is_fast((3, 1), (3, 4)) and not is_fast((3, 1, 1), (3, 4, 5))
    assert is_fast((1,), (4,)) and is_fast((4,), (4,))
    assert is_fast((1, 4, 1), (1, 4, 5)) and is_fast((1, 1, 5), (1, 4, 5))
    assert is_fast((N, 4, 1), (N, 4, 5))


def test_vectors_along_one_axis():
    dst = (2, 17, 5, 7)
    for operand, axis, expected in (
        ((1, 17, 1, 1), 1, True),
        ((1, 1, 1, 1), 1, True),
        ((1, 1, 1, 7), 3, True),
        ((1, 17, 1, 1), 3, False),
        ((2, 17, 1, 1), 1, False),
        ((1, 17, 5, 1), 1, False),
    ):
        assert is_per_channel(operand, dst, axis) == expected
