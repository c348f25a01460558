"""Differences that count: rounding does not, infinities and missing numbers have rules."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.compare import Verdict, differ, judge
from tvm_mxplan.opcheck.estimate import Estimate, as_stored
from tvm_mxplan.opcheck.physical import read


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


def test_what_is_no_number_is_stored_as_integers_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stored = as_stored(np.array([np.nan, 1.5, -2.5]), np.dtype("int8"))
    assert stored.dtype == np.int8 and list(stored[1:]) == [2, -2]


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


def test_an_element_that_nothing_bounds_says_nothing_and_the_others_do():
    error = np.array([np.inf, 1e-3])
    assert found([np.nan, 2], [1000, 2], error)[0] is None
    assert found([7, 2], [1000, 2], error)[0] is None
    assert found([1000, 3], [1000, 2], error)[0].index == (1,)


def test_a_shorter_type_is_allowed_its_own_rounding():
    """2049 is halfway between two neighbours in float16: a little error may take it to either."""
    error = np.array([1e-3])
    assert found([2048], [2049], error, "float16")[0] is None
    assert found([2050], [2049], error, "float16")[0] is None
    assert found([2052], [2049], error, "float16")[0] is not None
    assert found([2050], [2049], error, "float32")[0] is not None


def reordered(**spoilt) -> Verdict:
    """The verdict on a reorder of 17 channels to blocks of 16; its result is right but for what is spoilt."""
    shape = (1, 17, 2, 3)
    layouts = {"x": "abcd", "y": "aBcd16b"}
    values = tuple(ir.Value(name, shape, "float32", "local", layout) for name, layout in layouts.items())
    step = ir.Step("r", ir.Reorder(), (ir.Operand("src", 0), ir.Operand("dst", 1)))
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    y = np.zeros((1, 2, 2, 3, 16), "float32")
    for channel in range(17):
        y[:, channel // 16, ..., channel % 16] = x[:, channel]
    y[0, 1, 1, 2, 1:4] = spoilt.get("tail", 0.0)
    y[0, 1, 1, 2, 0] *= spoilt.get("factor", 1.0)
    raw = (array.view(np.uint8).ravel() for array in (x, y))
    src, dst = (read(array, value) for array, value in zip(raw, values, strict=True))
    reads = {0: replace(src, dirty=spoilt.get("dirty", 0))}
    dst = replace(dst, address=spoilt.get("address", 0))
    return judge(ir.Program("p", values, (step,)), step, reads, {1: dst}, None)


def test_a_right_result_has_no_findings():
    verdict = reordered()
    assert (verdict.findings, verdict.worst, verdict.finite) == ((), 0.0, True)


@pytest.mark.parametrize("tail", [1.0, 1e-30, -0.0, np.nan])
def test_a_dirty_tail_of_a_result_is_found(tail):
    """The next step may rely on zeros there; the elements themselves are right."""
    (finding,) = reordered(tail=tail).findings
    assert (finding.kind, finding.value, finding.count) == ("tail", "y", 3)


def test_what_a_step_reads_and_where_it_writes_are_judged():
    (finding,) = reordered(dirty=2).findings
    assert (finding.kind, finding.value, finding.count) == ("tail", "x", 2)
    for address, found in ((64, ()), (4096, ()), (32, ("alignment",)), (1, ("alignment",))):
        findings = reordered(address=address).findings
        assert tuple(one.kind for one in findings) == found
        assert all((one.value, one.address) == ("y", address) for one in findings)


def test_wrong_values_come_before_what_else_is_wrong():
    verdict = reordered(factor=2.0, tail=1.0, address=4)
    assert [finding.kind for finding in verdict.findings] == ["values", "tail", "alignment"]
    assert verdict.findings[0].index == (0, 16, 1, 2)
    assert not reordered(factor=np.inf).finite


def test_nothing_to_compare():
    assert found(np.zeros((0, 3)), np.zeros((0, 3))) == (None, 0.0)
