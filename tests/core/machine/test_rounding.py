"""Preferred numbers: two significant digits, steps of about a tenth."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tvm_mxplan.core.machine.rounding import preferred


def test_steps_are_about_a_tenth_and_every_number_is_near_its_step() -> None:
    numbers = np.exp(np.random.default_rng(0).uniform(-12, 12, 2000))
    for number in numbers:
        near = preferred(float(number))
        assert near == preferred(near)
        assert 0.93 < near / number < 1.075


def test_steps_grow_with_the_number() -> None:
    steps = [preferred(number) for number in np.geomspace(0.9, 110.0, 500)]
    assert steps == sorted(steps)
    kept = sorted(set(steps))
    ratios = [high / low for low, high in pairwise(kept)]
    assert min(ratios) > 1.04 and max(ratios) < 1.16
    assert len([number for number in kept if 1.0 <= number < 10.0]) == 24


@pytest.mark.parametrize(
    ("number", "near"), [(1.0, 1.0), (9.6, 10.0), (9.4, 9.1), (480.0, 470.0), (0.0235, 0.024)]
)
def test_some(number: float, near: float) -> None:
    assert preferred(number) == near
