"""A sample has both ends, whole lines, every remainder, and no more than was asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tvm_mxplan.verify.sample import positions, slices


def test_all_where_they_are_few() -> None:
    np.testing.assert_array_equal(positions([2, 3, 5], 30), np.arange(30))
    np.testing.assert_array_equal(slices(17, 17), np.arange(17))


@pytest.mark.parametrize("extents", [[1, 60, 70], [3, 50, 41], [2, 12, 14, 40], [1, 5000]])
def test_corners_and_lines(extents: list[int]) -> None:
    most = 900
    at = positions(extents, most)
    assert most * 0.8 < len(at) <= most
    assert (np.diff(at) > 0).all() and at[0] == 0 and at[-1] == math.prod(extents) - 1
    places = np.array(np.unravel_index(at, extents)).T
    for axis, extent in enumerate(extents):
        if sum(extents) * 3 < most:
            for end in (0, 1):  # a line along the axis through each end of the others
                others = [end * (other - 1) for other in extents]
                on_line = [
                    p for p in places if all(p[o] == others[o] for o in range(len(extents)) if o != axis)
                ]
                assert len(on_line) == extent
        for block in (4, 6, 8, 16):
            assert set(places[:, axis] % block) == set(range(min(block, extent)))


def test_slices_have_both_ends() -> None:
    found = slices(1000, 40)
    assert len(found) <= 40 and set(range(10)) | set(range(990, 1000)) <= set(found.tolist())
    assert (np.diff(found) > 0).all()
