"""Quotients of dimensions."""

from __future__ import annotations

import math

import numpy as np
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
    resized,
    subtracted,
    truncated,
)
from tvm_mxplan.frontend.onnx.node import NotTaken

N = tirx.Var("n", "int64")


def test_what_both_have_is_left_out():
    assert quotient(simplified(N * 2), N) == 2
    assert same(resized(N, quotient(7, N)), 7)
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


ROUNDED = {0.7: (7, 10), 0.9: (9, 10), 0.1: (1, 10), 1.1: (11, 10), 2.3: (23, 10), 0.2: (1, 5)}


@pytest.mark.parametrize("factor", ROUNDED)
def test_sizes_are_those_of_float32(factor):
    """Wherever a product or a quotient by a factor is taken, at all sizes it rounds as in float32."""
    single = np.float32(factor)
    assert of_float(float(single)) == Ratio(*ROUNDED[factor])
    over, under = ROUNDED[factor]
    sizes = np.arange(1, 5000)
    product, shared = sizes.astype("float32") * single, sizes.astype("float32") / single
    np.testing.assert_array_equal(np.floor(product), sizes * over // under)
    np.testing.assert_array_equal(np.ceil(product), -(-sizes * over // under))
    np.testing.assert_array_equal(np.floor(shared), sizes * under // over)
    scaled, parts = multiplied(N, of_float(float(single))), quotient(N, of_float(float(single)))
    with within({"n": (70, 70)}):
        assert simplified(floor(scaled)) == np.floor(np.float32(70) * single)
        assert simplified(ceiling(scaled)) == np.ceil(np.float32(70) * single)
        assert simplified(floor(parts)) == np.floor(np.float32(70) / single)


def test_what_may_round_to_another_size_is_left_to_the_model():
    """50 * 0.3 is more than 15 in float32, 1 / 41 * 41 less than 1; thirds are rounded."""
    assert np.float32(50) * np.float32(0.3) > 15
    assert np.float32(1) / np.float32(41) * np.float32(41) < 1
    third = quotient(N, 3)
    with pytest.raises(NotTaken):
        of_float(float(np.float32(0.3)))
    for function, other in ((multiplied, 41), (multiplied, third), (quotient, 5), (added, third)):
        with pytest.raises(NotTaken):
            function(third, other)
    assert same(added(third, 1).over, N + 3)
    assert same(multiplied(third, 2).under, 3)


def test_what_is_not_exact_or_may_be_negative_is_left_to_the_model():
    for value in (float("nan"), float("inf"), math.pi):
        with pytest.raises(NotTaken):
            of_float(value)
    with pytest.raises(NotTaken):
        quotient(N, 0)
    with pytest.raises(NotTaken):
        truncated(simplified(N - 5))
