"""``Measurements``: what is known is not measured, what is measured is kept, and budgets hold."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.tuning.meter import STEPS_SHARE, Measurements, describe
from tvm_mxplan.tuning.records import Records


def question(channels: int) -> ir.Program:
    shape = (1, channels, 8, 8)
    before = ir.Value("", shape, "float32", "input", "abcd", 0)
    after = ir.Value("", shape, "float32", "local", "acdb")
    step = ir.Step("", ir.Reorder(), (ir.Operand("src", 0), ir.Operand("dst", 1)))
    return ir.Program("", (before, after), (step,))


def never():
    pytest.fail("measured")


@pytest.fixture
def kept() -> list:
    return []


def test_each_question_is_measured_once_and_kept(kept):
    meter = Measurements(Records(), kept.append, 10.0)
    assert meter.microseconds("reorder", question(3), lambda: (5.0, 7)) == 5.0
    assert meter.microseconds("reorder", question(3), never) == 5.0
    assert meter.microseconds("step", question(3), lambda: (6.0, 7)) == 6.0
    assert [(r.kind, r.value, r.repeats) for r in kept] == [("reorder", 5.0, 7), ("step", 6.0, 7)]
    assert (dict(meter.measured), dict(meter.known)) == ({"groups": 1, "operators": 1}, {})


def test_records_answer_another_time(kept):
    Measurements(Records(), kept.append, 10.0).microseconds("reorder", question(3), lambda: (5.0, 7))
    meter = Measurements(Records(kept), never, 10.0)
    assert meter.microseconds("reorder", question(3), never) == 5.0
    assert dict(meter.known) == {"groups": 1}


def test_trials_are_a_limit(kept):
    meter = Measurements(Records(), kept.append, 10.0, trials=2)
    found = [meter.microseconds("reorder", question(n), lambda: (5.0, 7)) for n in (1, 2, 3, 4)]
    assert found == [5.0, 5.0, None, None]
    assert (dict(meter.measured), dict(meter.modelled)) == ({"groups": 2}, {"groups": 2})


def test_steps_leave_seconds_to_whole_plans(kept):
    meter = Measurements(Records(), kept.append, 10.0)
    meter.spent = 10.0 * STEPS_SHARE
    assert meter.microseconds("step", question(3), never) is None
    assert meter.left()
    meter.spent = 10.0
    assert not meter.left()


def test_without_seconds_nothing_is_measured():
    assert Measurements(Records(), never, 0.0).microseconds("step", question(3), never) is None


def test_time_inside_counts():
    meter = Measurements(Records(), never, 10.0)
    with meter.spending():
        sum(range(100_000))
    assert 0 < meter.spent < 10.0


def test_threads_make_another_question(kept):
    both = Measurements(Records(), kept.append, 10.0)
    one = Measurements(Records(), kept.append, 10.0, threads=1)
    for meter in (both, one):
        meter.microseconds("step", question(3), lambda: (5.0, 7))
    assert len({record.digest for record in kept}) == 2


def test_progress_is_told(kept):
    events = []
    meter = Measurements(Records(), kept.append, 10.0, progress=events.append)
    meter.microseconds("reorder", question(3), lambda: (5.0, 7))
    (event,) = events
    assert (event.stage, event.value, event.unit, event.measured) == ("groups", 5.0, "us", 1)
    assert event.text == describe(question(3)) == "reorder 1x3x8x8 abcd -> 1x3x8x8 acdb"
