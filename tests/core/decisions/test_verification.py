"""Results of verifying kernels: there and back as JSON, and the lines that a report has of them."""

from __future__ import annotations

import json

import pytest

from tvm_mxplan.core.decisions.verification import Checked, Refusal, Verification

REFUSAL = Refusal("conv_1", "convolution 1x17x5x5", "conv:17", "brgconv", "0.3 off in 12 of 425 elements")
FULL = Verification(
    3, 12, (REFUSAL,), ("lstm: no reference", "crop: too large"), 0.125, ("the file was made anew",)
)


@pytest.mark.parametrize("one", [FULL, Verification(0, 7)])
def test_there_and_back(one: Verification) -> None:
    assert Verification.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_nothing_verified_is_nothing() -> None:
    assert Verification.from_json(None) is None


def test_what_is_not_said() -> None:
    one = Verification(1, 2)
    assert (one.refused, one.unchecked, one.seconds, one.notes) == ((), (), 0.0, ())
    assert Checked("agreed").reason == ""


def test_a_report_has_a_line_for_each() -> None:
    assert str(FULL).splitlines() == [
        "kernels verified: 3 checked in 0.12 s, 12 remembered, 1 refused",
        "  conv_1: brgconv refused for convolution 1x17x5x5: 0.3 off in 12 of 425 elements",
        "  not checked: lstm: no reference",
        "  not checked: crop: too large",
        "  the file was made anew",
    ]
    assert str(Verification(0, 4)) == "kernels verified: 0 checked in 0.00 s, 4 remembered, 0 refused"


def test_a_refusal_says_where_it_was_where_that_is_known() -> None:
    assert REFUSAL.reason == "wrong on this machine: 0.3 off in 12 of 425 elements"
    earlier = Refusal("", *list(vars(REFUSAL).values())[1:])
    assert str(earlier) == "brgconv refused for convolution 1x17x5x5: 0.3 off in 12 of 425 elements"
