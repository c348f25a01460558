"""Stages of long sums: bounded numbers of terms that together are all of them."""

from __future__ import annotations

import math

import pytest

from tvm_mxplan.core.long_sums import fits, stages, terms_at_once

LIMIT = terms_at_once()


@pytest.mark.parametrize("terms", [1, 7, LIMIT, LIMIT + 1, 10007, 2 * 10007, 2**20, 3**13, 999983, 10**9 + 7])
def test_stages_hold_all_terms(terms):
    parts = stages(terms, LIMIT)
    assert max(parts) <= LIMIT
    assert terms <= math.prod(parts) <= terms * (1 + 2 / min(parts)) ** len(parts)
    assert fits(terms, LIMIT) == (math.prod(parts) == terms)


def test_a_stage_errs_by_a_bounded_share():
    """n units of roundoff of float32 are at most a part in 16384."""
    assert terms_at_once() * 2.0**-24 == 2.0**-14
    assert terms_at_once(16) == 16 * 1024


def test_short_sums_stay_whole():
    assert stages(LIMIT, LIMIT) == [LIMIT]
    assert terms_at_once(4) == 4 * LIMIT


@pytest.mark.parametrize(
    ("terms", "limit"), [(2048, 1024), (6000, 1024), (1025, 1024), (2**20, 1024), (3**13, 1024), (91, 20)]
)
def test_stages_are_divisors_where_there_are_any(terms, limit):
    """Of about the same size: nothing has to be filled."""
    parts = stages(terms, limit)
    assert math.prod(parts) == terms and fits(terms, limit)
    assert min(parts) > 1
