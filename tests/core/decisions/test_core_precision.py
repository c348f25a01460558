"""Decisions about precision, and the names of precisions."""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.core.decisions.precision import ELEMENT_TYPES, PRECISIONS, SHORT_NAMES, PrecisionDecision


def test_names_and_element_types_are_inverse() -> None:
    assert {**ELEMENT_TYPES} == {"f32": "float32", "bf16": "bfloat16"}
    assert PRECISIONS == ("f32", "bf16")
    assert SHORT_NAMES == {"float32": "f32", "bfloat16": "bf16"}


def test_nothing_is_weighed_by_default() -> None:
    decision = PrecisionDecision("f32")
    assert (decision.cost_us, decision.float32_us, decision.casts) == (-1.0, -1.0, 0)
    assert (decision.counts, decision.kept, decision.why_not) == ({}, {}, "")


def test_a_line_says_what_was_weighed() -> None:
    counts = {"bfloat16": 12, "float32": 3, "int8": 1}
    words = "12 step(s) in bf16, 3 step(s) in f32, 1 step(s) in int8, 2 cast(s)"
    weighed = PrecisionDecision("bf16", counts, 2, 1234.4, 2500.0)
    assert str(weighed) == f"precision bf16: {words}; about 1,234 us, 2,500 in f32"
    assert str(PrecisionDecision("bf16", counts, 2)) == f"precision bf16: {words}"
    bound = PrecisionDecision("auto", counts, 2, 1234.4, 2500.0, 0.00912, 0.01)
    text = f"precision auto: {words}; about 1,234 us, 2,500 in f32; adds an error of 9.1e-03"
    assert str(bound) == f"{text} where 1.0e-02 may be added in all"
    assert str(replace(bound, max_error=-1.0)) == text
    assert "adds an error of 0.0e+00 where 0.0e+00 may" in str(replace(bound, error=0.0, max_error=0.0))
    free = PrecisionDecision("bf16", {}, 0, 0.0, 1.0)
    assert str(free) == "precision bf16: , 0 cast(s); about 0 us, 1 in f32"
    no = PrecisionDecision("bf16", counts, 2, 1234.4, 2500.0, why_not="no such instructions")
    assert str(no) == "precision bf16: everything in f32, no such instructions"
