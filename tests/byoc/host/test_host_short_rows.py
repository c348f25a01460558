"""Rows of few elements, which kernels hold in registers: gathered, backwards, repeated, resized.

Kernels read and write whole registers there, beyond a row where other rows of the same tensor follow; what
is around a result has to stay, and what is behind a source must not count.
"""

from __future__ import annotations

import numpy as np
import pytest
from host_steps import ran

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.references.images.resize import resize
from tvm_mxplan.opcheck.references.operands import Operands

RNG = np.random.default_rng(13)
TYPES = ("float32", "float64", "int8", "int16", "int64", "bool")
EXTENTS = (1, 3, 7, 8, 14, 16, 17, 31, 32, 33, 70)


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    drawn = RNG.integers(-100, 100, shape)
    return drawn > 0 if dtype == "bool" else drawn.astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("count", [1, 5, 14, 16, 40, 300])
def test_elements_of_short_rows_are_gathered(extent: int, count: int, dtype: str) -> None:
    for rows in (1, 2, 5, 67):
        x, places = numbers((rows, extent), dtype), RNG.integers(-extent, extent, count)
        found = ran(ir.Gather(1), [("src", x), ("indices", places)], (rows, count), dtype)
        assert np.array_equal(found, x.take(places, 1))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("extent", EXTENTS)
def test_short_rows_backwards(extent: int, dtype: str) -> None:
    for rows in (1, 2, 67):
        x = numbers((rows, extent), dtype)
        attrs = ir.StridedSlice((0, extent - 1), (1, -1))
        assert np.array_equal(ran(attrs, [("src", x)], x.shape, dtype), x[:, ::-1])
        if extent > 3:
            part = ir.StridedSlice((0, extent - 2), (1, -1))
            found = ran(part, [("src", x)], (rows, extent - 2), dtype)
            assert np.array_equal(found, x[:, extent - 2 : 0 : -1])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("extent", EXTENTS)
def test_a_short_row_again_and_again(extent: int, dtype: str) -> None:
    x = numbers((1, 1, extent), dtype)
    for shape in ((1, 1, extent), (3, 67, extent)):
        steps = tuple(int(one == whole) for one, whole in zip(x.shape, shape, strict=True))
        found = ran(ir.StridedSlice((0, 0, 0), steps), [("src", x)], shape, dtype)
        assert np.array_equal(found, np.broadcast_to(x, shape))


@pytest.mark.parametrize("algorithm", ["linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners"])
@pytest.mark.parametrize(
    ("width", "wide"), [(1, 20), (7, 14), (14, 28), (16, 16), (31, 45), (32, 70), (33, 70), (14, 5)]
)
def test_narrow_images_are_resized(algorithm: str, coordinates: str, width: int, wide: int) -> None:
    x = RNG.standard_normal((2, 3, 5, width)).astype("float32")
    attrs = ir.Resize(algorithm, coordinates, "floor", -0.75, False)
    shape = (2, 3, 9, wide)
    expected = resize(attrs, Operands({"src": [x]}, shape)).value
    assert np.allclose(ran(attrs, [("src", x)], shape), expected, rtol=1e-5, atol=1e-5)
