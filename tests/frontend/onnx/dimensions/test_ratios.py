"""Quotients of dimensions."""

from __future__ import annotations

import math

import pytest
from tvm import tirx

from tvm_mxplan.frontend.onnx.dimensions.dims import same, simplified, within
from tvm_mxplan.frontend.onnx.dimensions.ratios import (
    Ratio,
    added,
    ceiling,
    floor,
    multiplied,
    of_float,
    quotient,
    subtracted,
    truncated,
)
from tvm_mxplan.frontend.onnx.node import NotTaken

N = tirx.Var("n", "int64")


def test_what_both_have_is_left_out():
    assert quotient(simplified(N * 2), N) == 2
    assert same(multiplied(quotient(N, 3), 3), N)
    assert quotient(7, 2) == Ratio(7, 2)
    assert added(quotient(1, 2), quotient(1, 2)) == 1
    assert subtracted(quotient(7, 2), of_float(0.5)) == 3


@pytest.mark.parametrize("factor", [0.5, 1.5, 0.25, 2.0])
def test_rounding_of_a_dimension_by_a_float(factor):
    scaled = multiplied(N, of_float(factor))
    for size in (1, 4, 7):
        for function, expected in ((floor, math.floor), (truncated, math.floor), (ceiling, math.ceil)):
            with within({"n": (size, size)}):
                assert simplified(function(scaled)) == expected(size * factor)


def test_what_is_not_exact_or_may_be_negative_is_left_to_the_model():
    for value in (float("nan"), float("inf"), 0.1):
        with pytest.raises(NotTaken):
            of_float(value)
    with pytest.raises(NotTaken):
        quotient(N, 0)
    with pytest.raises(NotTaken):
        truncated(simplified(N - 5))
