"""Arrays in physical layouts: element by element where they should be, and zeros in the padding."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.layout.layout_arrays import crop, pack, unpack, unpack_padded

CASES = [
    ("abcd", (2, 17, 3, 5)),
    ("acdb", (2, 17, 3, 5)),
    ("bcda", (2, 17, 3, 5)),
    ("aBcd16b", (2, 17, 3, 5)),
    ("aBcd8b", (1, 16, 3, 5)),
    ("ABcd16b16a", (17, 35, 3, 1)),
    ("ABcd4b16a4b", (17, 35, 3, 1)),
    ("ba", (3, 5)),
    ("aBc16b", (2, 3, 7)),
]


@pytest.mark.parametrize(("tag", "shape"), CASES)
def test_there_and_back(tag: str, shape: tuple[int, ...]) -> None:
    layout = parse_layout(tag)
    array = np.random.default_rng(0).standard_normal(shape).astype("float32")
    packed = pack(array, layout)
    assert packed.shape == layout.physical_shape(shape)
    assert packed.flags.c_contiguous
    assert packed.dtype == array.dtype
    back = unpack(packed, layout, shape)
    np.testing.assert_array_equal(back, array)
    assert back.flags.c_contiguous
    padded = unpack_padded(packed, layout, shape)
    assert padded.shape == layout.padded_shape(shape)
    np.testing.assert_array_equal(crop(padded, shape), array)
    assert np.count_nonzero(padded) == np.count_nonzero(array)


def test_channels_in_blocks_stand_where_the_name_says() -> None:
    """Channel 16 h + l of an image is number l of block h."""
    array = np.arange(2 * 17 * 3 * 5, dtype="float32").reshape(2, 17, 3, 5) + 1
    packed = pack(array, parse_layout("aBcd16b"))
    assert packed.shape == (2, 2, 3, 5, 16)
    for channel in range(17):
        np.testing.assert_array_equal(packed[:, channel // 16, :, :, channel % 16], array[:, channel])
    assert not packed[:, 1, :, :, 1:].any()


def test_channels_last_is_a_transpose() -> None:
    array = np.random.default_rng(1).standard_normal((2, 3, 4, 5))
    np.testing.assert_array_equal(pack(array, parse_layout("acdb")), array.transpose(0, 2, 3, 1))


def test_another_shape_is_refused() -> None:
    layout = parse_layout("aBcd16b")
    for wrong in ((2, 1, 3, 5, 16), (2, 2, 3, 5, 8), (2, 17, 3, 5)):
        with pytest.raises(
            ValueError, match=r"layout aBcd16b of \(2, 17, 3, 5\) has the shape \(2, 2, 3, 5, 16\)"
        ):
            unpack(np.zeros(wrong), layout, (2, 17, 3, 5))
