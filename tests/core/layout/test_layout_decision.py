"""A choice of layouts tells how far it may be from the best one."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.layout.layout_decision import LayoutDecision


@pytest.mark.parametrize(
    ("cost", "bound", "gap"),
    [
        (100.0, 100.0, 0.0),
        (100.0, 99.99999, 0.0),
        (100.0, 90.0, 0.1),
        (8.0, 6.0, 0.25),
        (0.5, 0.4, 0.2),
        (0.0, 0.0, 0.0),
    ],
)
def test_the_gap_is_a_share_of_the_cost(cost: float, bound: float, gap: float) -> None:
    decision = LayoutDecision("cost", 0.5, cost, bound)
    assert decision.gap == pytest.approx(gap)
    assert ("proved optimal" in str(decision)) == (gap == 0)


def test_it_says_who_decided_and_how_long_it_took() -> None:
    assert str(LayoutDecision("plain", 0.125)) == "layouts by policy plain in 0.12 s"
    unweighed = LayoutDecision("plain", 0.125)
    assert (unweighed.cost_us, unweighed.lower_bound_us, unweighed.forced, unweighed.replayed) == (
        -1,
        -1,
        (),
        False,
    )
    assert "us" in str(LayoutDecision("cost", 0.0, 0.0, 0.0))
    text = str(LayoutDecision("cost", 1.5, 1234.5, 1111.05, ("conv_1", "conv_2"), replayed=True))
    assert text == (
        "layouts by policy cost replayed in 1.50 s, forced for conv_1, conv_2: about 1,234 us, "
        "at most 10 % above the optimum"
    )
