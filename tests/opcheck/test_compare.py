"""What counts as a difference: rounding does not, infinities and missing numbers have rules."""

from __future__ import annotations

import numpy as np

from tvm_mxplan.opcheck.compare import differ
from tvm_mxplan.opcheck.estimate import Estimate


def found(actual, value, error=0.0, dtype="float32"):
    finding, worst = differ("v", np.array(actual, dtype), Estimate(np.array(value, "float64"), error))
    return finding, worst


def test_what_rounding_explains_is_no_difference():
    third = np.float32(1 / 3)
    assert found([third], [1 / 3]) == (None, 0.0)
    nearly = np.nextafter(third, np.float32(1))
    assert found([nearly], [1 / 3])[0] is not None
    finding, worst = found([nearly], [1 / 3], error=np.array([1e-7]))
    assert finding is None
    assert 0 < worst < 1


def test_the_worst_element_is_named():
    finding, worst = found([[1, 2], [3, 4.5]], [[1, 2.25], [3, 4]], error=0.1)
    assert abs(worst - 0.5 / 0.1) < 1e-4
    assert (finding.count, finding.total, finding.index) == (2, 4, (1, 1))
    assert (finding.actual, finding.expected) == (4.5, 4.0)
    assert abs(finding.allowed - 0.1) < 1e-6
    assert "2 of 4 elements of v differ; the worst, at [1, 1], is 4.5, expected 4 within" in str(finding)


def test_no_number_where_there_should_be_one():
    for wrong in (np.nan, np.inf):
        finding, _ = found([1, wrong], [1, 2], error=np.array([0.1, 0.1]))
        assert (finding.kind, finding.index) == ("not finite", (1,))


def test_infinities_are_met_and_a_reference_that_is_no_number_says_nothing():
    assert found([np.inf, 1], [1e300, np.nan])[0] is None
    assert found([1, 1], [np.inf, 1])[0].index == (0,)
    assert found([-np.inf], [np.inf])[0] is not None


def test_a_shorter_type_is_allowed_its_own_rounding():
    """2049 is halfway between two neighbours in float16: a little error may take it to either."""
    error = np.array([1e-3])
    assert found([2048], [2049], error, "float16")[0] is None
    assert found([2050], [2049], error, "float16")[0] is None
    assert found([2052], [2049], error, "float16")[0] is not None
    assert found([2050], [2049], error, "float32")[0] is not None


def test_nothing_to_compare():
    assert found(np.zeros((0, 3)), np.zeros((0, 3))) == (None, 0.0)
