"""Large windows in stages: one axis after the other, whole axes in parts, and nothing for small ones."""

from __future__ import annotations

import math

from tvm_mxplan.byoc.onednn.families.large_windows import Windows, window_stages


def test_small_windows_stay_whole():
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
    assert all(part.kernel == part.strides and part.padding == (0, 0) for part in parts)


def test_an_axis_of_no_divisors_is_one_stage():
    (part,) = window_stages(Windows((10007,), (10007,), (0,), (1,)), (10007,))
    assert part.kernel == (10007,)


def test_windows_of_as_many_terms_as_one_stage_takes_stay_whole():
    for kernel, count in (((32, 32), 1), ((32, 33), 2), ((1, 1024), 1), ((1, 1025), 2)):
        found = window_stages(Windows(kernel, kernel, (0, 0), (1, 1)), kernel)
        assert len(found) == count, kernel
        assert found[-1].extents == (1, 1)
        assert math.prod(math.prod(part.kernel) for part in found) == math.prod(kernel)


def test_only_axes_that_one_window_covers_are_in_parts():
    """Padding in front, another extent behind, or a part of the image: one stage for the axis."""
    for before, source, extent in ((1, 2048, 1), (0, 4096, 2), (0, 2050, 1)):
        windows = Windows((1, 2048), (1, 2048), (0, before), (1, extent))
        assert window_stages(windows, (1, source)) == [windows]
