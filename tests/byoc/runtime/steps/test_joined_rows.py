"""Concatenations of short rows by our own stage: bytes, layouts, threads, and what is left to oneDNN."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from program_builder import Array, Builder
from single_steps import without

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir

NAME = "joined_rows"
ORDERS = {"abcd": (0, 1, 2, 3), "acdb": (0, 2, 3, 1), "bacd": (1, 0, 2, 3)}
"""The axes as layouts store them."""
TYPES = (np.float32, ml_dtypes.bfloat16, np.uint8, np.int8)


def numbers(shape: tuple[int, ...], dtype: type, seed: int) -> Array:
    """Numbers of every size that the type holds."""
    drawn = np.random.default_rng([seed, *shape]).integers(-128, 128, shape)
    return drawn.astype(np.int8).view(np.uint8) if dtype is np.uint8 else drawn.astype(dtype)


def joined(
    shapes: list[tuple[int, ...]], layout: str, axis: int = 1, dtype: type = np.float32
) -> tuple[Array, Array, str]:
    """The result of the step, what it should be, and the implementation; tensors as they are stored."""
    arrays = [numbers(shape, dtype, at) for at, shape in enumerate(shapes)]
    expected = np.concatenate(arrays, axis)
    b, name = Builder(), np.dtype(dtype).name
    pieces = [b.input(array.shape, layout, name) for array in arrays]
    b.step(ir.Concat(axis), src=pieces, dst=b.output(expected.shape, layout, name))
    stored = [np.ascontiguousarray(array.transpose(ORDERS[layout])) for array in (*arrays, expected)]
    (info,) = library.describe(b.build()).steps
    assert info.error == ""
    result = np.zeros_like(stored[-1])
    library.trial(b.build(), [])(*stored[:-1], result)
    return result, stored[-1], info.implementation


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", [(64, 64), (3, 17, 67), (128, 1), (5,), (192, 33, 64, 7)])
def test_channels_last(channels, dtype, threads):
    actual, expected, implementation = joined([(2, n, 9, 31) for n in channels], "acdb", dtype=dtype)
    assert implementation == NAME
    np.testing.assert_array_equal(actual, expected)


def test_many_threads_share_rows(threads):
    """More bytes than one thread takes."""
    actual, expected, implementation = joined([(1, 64, 64, 65), (1, 61, 64, 65)], "acdb")
    assert implementation == NAME
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("layout", ORDERS)
def test_every_axis_of_every_order(layout, axis):
    whole = (2, 3, 5, 4)
    shapes = [tuple(n if at == axis else whole[at] for at in range(4)) for n in (2, 1, 6)]
    actual, expected, implementation = joined(shapes, layout, axis)
    assert implementation == NAME
    np.testing.assert_array_equal(actual, expected)


def test_axes_of_one_element_stand_anywhere():
    actual, expected, implementation = joined([(1, 7, 1, 1), (1, 9, 1, 1)], "acdb")
    assert implementation == NAME
    np.testing.assert_array_equal(actual, expected)


def test_long_rows_are_left_to_the_library():
    actual, expected, implementation = joined([(2, 16, 40, 40), (2, 8, 40, 40)], "abcd")
    assert implementation != NAME
    np.testing.assert_array_equal(actual, expected)


def test_blocks_are_left_to_the_library():
    b = Builder()
    pieces = [b.input((2, 16, 4, 4), "aBcd16b") for _ in range(2)]
    b.step(ir.Concat(1), src=pieces, dst=b.output((2, 32, 4, 4), "aBcd16b"))
    (info,) = library.describe(b.build()).steps
    assert not info.error and info.implementation != NAME


def test_a_refused_one_does_not_run():
    b = Builder()
    pieces = [b.input((1, 8, 6, 6), "acdb") for _ in range(2)]
    b.step(ir.Concat(1), src=pieces, dst=b.output((1, 16, 6, 6), "acdb"))
    (info,) = library.describe(b.build()).steps
    assert info.implementation == NAME
    with without(info):
        (again,) = library.describe(b.build()).steps
        assert again.implementation != NAME and not again.error
