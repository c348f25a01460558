"""Long sums in stages: bounded numbers of terms, whole windows, and nothing for short ones."""

from __future__ import annotations

import math

import pytest

from tvm_mxplan.byoc.onednn.long_sums import Windows, fits, stages, terms_at_once, window_stages

LIMIT = terms_at_once()


@pytest.mark.parametrize("terms", [1, 7, LIMIT, LIMIT + 1, 10007, 2 * 10007, 2**20, 3**13, 999983, 10**9 + 7])
def test_stages_hold_all_terms(terms):
    parts = stages(terms, LIMIT)
    assert max(parts) <= LIMIT
    assert terms <= math.prod(parts) <= terms * (1 + 2 / min(parts)) ** len(parts)
    assert fits(terms, LIMIT) == (math.prod(parts) == terms)


def test_short_sums_stay_whole():
    assert stages(LIMIT, LIMIT) == [LIMIT]
    windows = Windows((7, 7), (2, 2), (3, 3), (5, 5))
    assert window_stages(windows, (10, 10)) == [windows]


def test_a_large_window_is_one_axis_after_the_other():
    parts = window_stages(Windows((33, 65), (2, 3), (5, 0), (40, 12)), (101, 98))
    assert parts == [
        Windows((1, 65), (1, 3), (0, 0), (101, 12)),
        Windows((33, 1), (2, 1), (5, 0), (40, 12)),
    ]


def test_a_window_of_all_is_in_parts_of_an_axis():
    parts = window_stages(Windows((1, 2048), (1, 2048), (0, 0), (1, 1)), (1, 2048))
    assert math.prod(part.kernel[1] for part in parts) == 2048
    assert [part.extents[1] for part in parts] == [2048 // parts[0].kernel[1], 1]
    assert all(part.kernel == part.strides for part in parts)


def test_an_axis_of_no_divisors_is_one_stage():
    (part,) = window_stages(Windows((10007,), (10007,), (0,), (1,)), (10007,))
    assert part.kernel == (10007,)
