"""Tuning records as values and as lines."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tvm_mxplan.tuning.records import (
    PlanResult,
    Record,
    Records,
    UnusableRecords,
    header_line,
    parse,
    record_line,
)

MACHINE = {"CPU": "a", "threads": 2, "schema": [1, 2]}
STEP = Record("step", "d1", "convolution 1x3x8x8", 12.5, 8, 1000.25)
RESULT = PlanResult((("a", 40.0), ("b", 41.5)), True, (("layouts/x", "eJw="),))
PLAN = Record("plan", "d2", "plans", 40.0, 30, 1001.0, RESULT)


def text(*records: Record) -> str:
    return header_line(MACHINE) + "".join(map(record_line, records))


def test_what_is_written_is_read():
    records, damaged = parse(text(STEP, PLAN), MACHINE)
    assert (list(records), damaged) == ([STEP, PLAN], 0)
    assert records.find("plan", "d2") == PLAN
    assert records.find("step", "d2") is None


@pytest.mark.parametrize(
    "other, kept",
    [
        (replace(STEP, repeats=9, value=99.0), True),
        (replace(STEP, repeats=7, value=1.0, when=2000.0), False),
        (replace(STEP, value=13.0, when=2000.0), True),
        (replace(STEP, value=13.0, when=10.0), False),
    ],
)
def test_merge_keeps_the_better_supported(other, kept):
    expected = [other if kept else STEP]
    records = Records([STEP])
    records.merge([other])
    assert list(records) == expected
    assert list(Records([other, STEP])) == expected


def test_complete_comparisons_are_better_supported():
    part = replace(PLAN, repeats=99, plan=replace(RESULT, complete=False))
    for records in (Records([PLAN, part]), Records([part, PLAN])):
        assert list(records) == [PLAN]


@pytest.mark.parametrize("change", [{"threads": 4}, {"CPU": "b"}, {"isa": "new"}])
def test_another_machine_is_refused_by_what_differs(change):
    with pytest.raises(UnusableRecords, match=f"measured with {next(iter(change))} "):
        parse(text(STEP), {**MACHINE, **change})


@pytest.mark.parametrize("data", ["", "{}\n", "[1]\n", "no json\n", record_line(STEP)])
def test_other_files_are_refused(data):
    with pytest.raises(UnusableRecords, match="not their header"):
        parse(data, MACHINE)


def test_another_version_is_refused():
    header = {**json.loads(header_line(MACHINE)), "mxplan_tuning": 99}
    with pytest.raises(UnusableRecords, match="version 99"):
        parse(json.dumps(header) + "\n", MACHINE)


def test_damaged_lines_are_left_out_and_counted():
    good, plan = record_line(STEP), record_line(PLAN)
    damaged = [
        plan[:40] + "\n",
        plan.replace("41.5", "14.5"),
        "{}\n",
        "null\n",
        record_line(replace(STEP, digest="d3", kind="spell")),
        record_line(replace(STEP, digest="d4", repeats=0)),
        record_line(replace(STEP, digest="d5", value=float("nan"))),
        record_line(replace(STEP, digest="d6", kind="plan")),
    ]
    records, count = parse(header_line(MACHINE) + "".join(damaged) + good, MACHINE)
    assert (list(records), count) == ([STEP], len(damaged))
