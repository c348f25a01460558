"""Costs of a budget of memory, as plain data and in words."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from tvm_mxplan.core.decisions.precision import (
    AS_STATED,
    AUTO,
    ELEMENT_TYPES,
    HALF,
    PRECISIONS,
    SHORT_NAMES,
    WISHES,
    PrecisionDecision,
)
from tvm_mxplan.core.decisions.recomputation import Recomputation

GIVEN = Recomputation(1 << 20, 2 << 20, 1 << 20, {"relu": 3, "add": 1}, 200.0, 250.0, 40.0, 50.0, exact=False)


@pytest.mark.parametrize(
    ("before", "after", "factor"),
    [(200.0, 250.0, 1.25), (200.0, 200.0, 1.0), (0.0, 5.0, 1.0), (0.5, 1.0, 2.0)],
)
def test_the_factor_of_a_step(before: float, after: float, factor: float) -> None:
    """Of a step that takes no time nothing is said."""
    assert replace(GIVEN, us_before=before, us_after=after).factor == factor


def test_plain_data_and_back() -> None:
    assert Recomputation.from_json(asdict(GIVEN)) == GIVEN
    assert Recomputation.from_json(None) is None


def test_in_words() -> None:
    assert str(GIVEN).splitlines() == [
        "memory budget of 1,048,576 bytes: 4 operators run again (1 x add, 3 x relu)",
        "  arena 2,097,152 to 1,048,576 bytes, estimated time times 1.25",
        "  50 us by the estimates of the choice; at least 40 us are needed",
    ]
    assert str(replace(GIVEN, exact=True)).endswith("; the least where each runs again once")


def test_precisions_by_name() -> None:
    assert PRECISIONS == ("f32", "bf16")
    assert dict(ELEMENT_TYPES) == {"f32": "float32", "bf16": "bfloat16"}
    assert SHORT_NAMES == {"float32": "f32", "bfloat16": "bf16"}
    assert WISHES == (AS_STATED, "f32", "bf16", HALF, AUTO) == ("model", "f32", "bf16", "f16", "auto")


def test_what_nothing_was_weighed_for() -> None:
    plain = PrecisionDecision("f32")
    assert (plain.casts, plain.cost_us, plain.float32_us, plain.error, plain.max_error) == (0, -1, -1, -1, -1)
    assert dict(plain.counts) == {}
    assert plain.why_not == ""
