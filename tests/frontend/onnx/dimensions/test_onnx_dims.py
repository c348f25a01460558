"""Arithmetic on dimensions."""

from __future__ import annotations

import pytest
from tvm import tirx

from tvm_mxplan.frontend.onnx.dimensions.dims import (
    compared,
    divided,
    expression,
    implied,
    product,
    same,
    simplified,
    variables,
    within,
)

N, M = tirx.Var("n", "int64"), tirx.Var("m", "int64")


def test_numbers_stay_numbers():
    assert product([2, 3]) == 6
    assert product([]) == 1
    assert divided(12, 4) == 3
    assert simplified(expression(5)) == 5
    assert simplified(N - N) == 0


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient"),
    [
        (product([N, M, 768]), product([N, 12]), M * 64),
        (product([N, M]), M, N),
        (N * 6, 4, tirx.floordiv(N * 3, 2)),
    ],
)
def test_a_quotient_drops_what_both_have(dividend, divisor, quotient):
    assert same(divided(dividend, divisor), quotient)


def test_comparisons_hold_for_all_sizes_or_are_not_known():
    assert compared("==", N, -1) is False
    assert compared("==", N * 2, N + N) is True
    assert compared("<", N, N + 1) is True
    assert compared("==", N, 1) is None
    assert compared("==", N, 0) is None, "a dimension may be 0"
    assert compared(">=", N, M) is None


def test_variables_are_found_once():
    assert variables(tirx.max(N * M, N + 1)) == [N, M] or variables(tirx.max(N * M, N + 1)) == [M, N]
    assert variables(3) == []


def test_what_follows_where_another_dimension_is_1():
    cut = simplified(tirx.min(N, tirx.const(64, "int64")))
    assert implied(cut, N, 1)
    assert implied(N, cut, 1), "min(n, 64) is 1 where n is"
    assert not implied(N, M, 1)
    assert implied(M, simplified(N + 2), 1), "n + 2 is never 1"


def test_bounds_decide_comparisons():
    assert compared("==", N, 1) is None
    with within({"n": (2, 64)}):
        assert compared("==", N, 1) is False
        assert same(simplified(tirx.min(N, tirx.const(64, "int64"))), N)
    assert compared("==", N, 1) is None
