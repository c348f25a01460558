"""Constants that bfloat16 cannot hold, and what it makes of the others."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tvm

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.precision.balanced_rounding import Sums, balanced
from tvm_mxplan.passes.precision.constants import Constants, is_beyond
from tvm_mxplan.passes.precision.rounding import rounding_of

SHORT = "bfloat16"
LARGEST = float(np.finfo(np.float32).max)
LARGEST_SHORT = 3.3895313892515355e38


@pytest.mark.parametrize(
    ("numbers", "fine"),
    [
        ([], True),
        ([0.0, -1.5], True),
        ([LARGEST_SHORT], True),
        ([-LARGEST_SHORT, 2.0], True),
        ([LARGEST], False),
        ([1.0, -LARGEST], False),
        ([np.inf], True),
        ([-np.inf, LARGEST_SHORT], True),
    ],
)
def test_numbers_that_would_become_infinite(numbers: list[float], fine: bool) -> None:
    """Infinities themselves stay what they are."""
    values = (
        ir.Value("x", (4,), "float32", "input", "a", 0),
        ir.Value("i", (4,), "int32", "constant", "a", 0),
        ir.Value("w", (4,), "float32", "constant", "a", 1),
    )
    arrays = [np.full(4, 2**31 - 1, "int32"), np.array(numbers, "float32")]
    program, constants = ir.Program("p", values, ()), Constants(arrays, SHORT)
    assert [constants.are_finite(program, number) for number in (0, 1, 2, 2)] == [True, True, fine, fine]
    assert Constants(arrays, "float16").are_finite(program, 1), "integers stay integers"


def test_the_ends_of_the_type() -> None:
    assert is_beyond(LARGEST, SHORT) and is_beyond(-LARGEST, SHORT)
    assert not is_beyond(LARGEST_SHORT, SHORT) and not is_beyond(float("inf"), SHORT)


def test_a_constant_is_rounded_once_and_its_error_known() -> None:
    array = np.random.default_rng(0).standard_normal((5, 7)).astype("float32")
    tensors = [tvm.runtime.tensor(array)]
    constants = Constants([array], SHORT)
    assert constants.stored((0, "float32"), tensors) is tensors[0]
    np.testing.assert_array_equal(constants.stored((0, SHORT), tensors), array.astype(ml_dtypes.bfloat16))
    sums = Sums((5, 7), (1,))
    np.testing.assert_array_equal(constants.stored((0, SHORT), tensors, sums), balanced(array, sums))
    program = ir.Program("p", (ir.Value("w", (5, 7), "float32", "constant", "ab", 0),), ())
    error = constants.rounded(program, 0)
    assert error == rounding_of(array, SHORT) > 0
    array[:] = 1.0
    assert constants.rounded(program, 0) == error, "each constant is looked at once"
