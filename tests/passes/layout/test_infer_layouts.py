"""``InferLayouts`` on whole networks: how many reorders are left, and where they stand.

Larger networks are asked the same in tests/models/test_models.py, where they are compiled for other
questions too.
"""

from __future__ import annotations

import pytest
from reorders import assert_at_most_one_and_none_in_the_middle, is_in_the_middle

import tvm_mxplan
from tvm_mxplan.testing import zoo


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mobilenet_v2", "shufflenet"])
def test_at_most_one_reorder_and_none_in_the_middle(name: str) -> None:
    assert_at_most_one_and_none_in_the_middle(tvm_mxplan.compile(zoo.load(name)).report)


@pytest.mark.slow
def test_policies_differ_in_their_reorders() -> None:
    """The measure of the test above: naive reorders around every convolution, cost nearly never."""
    naive = tvm_mxplan.compile(zoo.load("squeezenet"), options={"layouts": "naive"}).report
    assert len(naive.regions[0].reorders) >= 40
    assert sum(is_in_the_middle(reorder, naive) for reorder in naive.regions[0].reorders) >= 40
