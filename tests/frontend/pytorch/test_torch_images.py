"""Images resized, windows and pixels, against formulas that stand in PyTorch's documents, by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from converters_run import run

from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.frontend.torch import converters

_random = np.random.default_rng(3)
IMAGE = _random.standard_normal((2, 3, 5, 7)).astype("float32")


def along(image: np.ndarray, axis: int, weights: np.ndarray) -> np.ndarray:
    """An axis times a matrix [result, size]."""
    return np.moveaxis(np.tensordot(weights, image, (1, axis)), 0, axis)


def weights(size: int, result: int, step: float, kind: str, corners: bool = False) -> np.ndarray:
    """The weight of each element in each of the result, one by one."""
    matrix = np.zeros((result, size))
    for row in range(result):
        if kind == "nearest":
            matrix[row, min(int(np.floor(np.float32(row) * np.float32(step))), size - 1)] = 1
            continue
        centre = row * step if corners else (row + 0.5) * step - 0.5
        low = int(np.floor(centre))
        for place in range(low - 1, low + 3):
            away = abs(centre - place)
            if kind == "linear":
                weight = max(1 - away, 0)
            else:
                a = -0.75
                near, far = (
                    (a + 2) * away**3 - (a + 3) * away**2 + 1,
                    a * (away**3 - 5 * away**2 + 8 * away - 4),
                )
                weight = near if away <= 1 else far if away < 2 else 0
            matrix[row, min(max(place, 0), size - 1)] += weight
    return matrix


def smoothed(size: int, result: int, step: float, cubic: bool) -> np.ndarray:
    """The same with a filter as wide as the step, whose weights sum to one."""
    matrix, wide = np.zeros((result, size)), max(step, 1)
    for row in range(result):
        for place in range(size):
            away = abs((place + 0.5) - (row + 0.5) * step) / wide
            near, far = 1.5 * away**3 - 2.5 * away**2 + 1, -0.5 * (away**3 - 5 * away**2 + 8 * away - 4)
            by_cubes = near if away <= 1 else far if away < 2 else 0
            matrix[row, place] = by_cubes if cubic else max(1 - away, 0)
    return matrix / matrix.sum(1, keepdims=True)


KINDS = {"nearest2d": "nearest", "bilinear2d": "linear", "bicubic2d": "cubic"}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("factors", "shape"),
    [
        (None, (8, 11)),
        (None, (3, 4)),
        (None, (10, 21)),
        ((1.7, 2.3), (8, 16)),
        ((2.0, 2.0), (10, 14)),
        ((0.6, 0.5), (3, 3)),
    ],
)
def test_resized(name, factors, shape):
    expected: Any = IMAGE
    for at, (size, result) in enumerate(zip((5, 7), shape, strict=True)):
        step = 1 / factors[at] if factors else np.float32(size) / np.float32(result)
        expected = along(expected, at + 2, weights(size, result, float(step), KINDS[name]))
    operands = {"input": IMAGE, "output_size": None if factors else list(shape), "scale_factors": factors}
    actual = run(f"upsample_{name}.vec", {**operands, "align_corners": False}, ((2, 3, *shape), "float32"))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["bilinear2d", "bicubic2d"])
def test_resized_from_corner_to_corner(name):
    expected = IMAGE
    for axis, (size, result) in {2: (5, 9), 3: (7, 4)}.items():
        matrix = weights(size, result, (size - 1) / (result - 1), KINDS[name], corners=True)
        expected = along(expected, axis, matrix)
    operands = {"input": IMAGE, "output_size": [9, 4], "scale_factors": None, "align_corners": True}
    actual = run(f"upsample_{name}.vec", operands, ((2, 3, 9, 4), "float32"))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(("name", "kind"), [("linear1d", "linear"), ("nearest1d", "nearest")])
def test_rows_resized(name, kind):
    expected = along(IMAGE[0], 2, weights(7, 10, 7 / 10, kind))
    operands = {"input": IMAGE[0].copy(), "scale_factors": None, "align_corners": False}
    actual = run(f"upsample_{name}.vec", operands, ((3, 5, 10), "float32"))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(("name", "kind"), [("trilinear3d", "linear"), ("nearest3d", "nearest")])
def test_volumes_resized(name, kind):
    expected, volume = IMAGE[None], IMAGE[None].copy()
    for axis, (size, result) in {2: (3, 5), 3: (5, 4), 4: (7, 14)}.items():
        expected = along(expected, axis, weights(size, result, size / result, kind))
    operands = {"input": volume, "scale_factors": None, "align_corners": False}
    actual = run(f"upsample_{name}.vec", operands, ((1, 2, 5, 4, 14), "float32"))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("cubic", [False, True])
@pytest.mark.parametrize(("shape", "factor"), [((3, 9), None), ((2, 3), 0.45)])
def test_resized_with_antialiasing(cubic, shape, factor):
    expected = IMAGE
    for axis, size, result in ((2, 5, shape[0]), (3, 7, shape[1])):
        expected = along(
            expected, axis, smoothed(size, result, 1 / factor if factor else size / result, cubic)
        )
    operands = {"self": IMAGE, "align_corners": False, "scales_h": factor, "scales_w": factor}
    name = f"_upsample_{'bicubic' if cubic else 'bilinear'}2d_aa.default"
    actual = run(name, operands, ((2, 3, *shape), "float32"))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-6)


def test_antialiasing_of_integers_is_refused():
    operands = {"self": IMAGE.astype("int32"), "align_corners": False}
    with pytest.raises(UnsupportedError, match="antialiasing of int32"):
        run("_upsample_bilinear2d_aa.default", operands, ((2, 3, 3, 3), "int32"))


def windows(
    stride: int, pad: int, step: int, size: int, counts: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """The largest of each window, and its place in the image, by a walk over all."""
    largest, places = np.empty((2, 3, *counts), "float32"), np.empty((2, 3, *counts), "int64")
    for at in np.ndindex(2, 3, *counts):
        best = -np.inf
        for down, right in np.ndindex(size, size):
            row, column = at[2] * stride - pad + down * step, at[3] * stride - pad + right * step
            if 0 <= row < 5 and 0 <= column < 7 and IMAGE[at[0], at[1], row, column] > best:
                best = IMAGE[at[0], at[1], row, column]
                places[at] = row * 7 + column
        largest[at] = best
    return largest, places


@pytest.mark.parametrize(
    ("stride", "pad", "step", "counts"), [(2, 1, 1, (3, 4)), (1, 0, 2, (1, 3)), (3, 1, 1, (2, 3))]
)
def test_the_largest_of_windows_and_where_it_stands(stride, pad, step, counts):
    operands = {"self": IMAGE, "kernel_size": [3], "stride": [stride], "padding": [pad], "dilation": [step]}
    operands["ceil_mode"] = False
    largest, places = windows(stride, pad, step, 3, counts)
    name = "max_pool2d_with_indices.default"
    np.testing.assert_array_equal(run(name, operands, (largest.shape, "float32")), largest)
    second = {f"aten.{name}": lambda emitter, node: converters.TABLE[node.operator](emitter, node)[1]}
    np.testing.assert_array_equal(run(name, operands, (places.shape, "int64"), second), places)


def test_windows_without_a_stride_and_a_batch():
    operands = {"self": IMAGE, "kernel_size": [1, 2, 2], "stride": [], "padding": [0], "dilation": [1]}
    actual = run("max_pool3d.default", {**operands, "ceil_mode": False}, ((2, 3, 2, 3), "float32"))
    expected = IMAGE[:, :, :4, :6].reshape(2, 3, 2, 2, 3, 2).max((3, 5))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("counts", [(2, 3), (5, 4), (1, 7)])
def test_the_largest_of_parts(counts):
    expected = np.empty((2, 3, *counts), "float32")
    for row, column in np.ndindex(*counts):
        parts = [
            slice(at * size // count, -(-(at + 1) * size // count))
            for at, size, count in ((row, 5, counts[0]), (column, 7, counts[1]))
        ]
        expected[:, :, row, column] = IMAGE[:, :, parts[0], parts[1]].max((2, 3))
    operands = {"self": IMAGE, "output_size": list(counts)}
    np.testing.assert_array_equal(
        run("adaptive_max_pool2d.default", operands, (expected.shape, "float32")), expected
    )


def test_pixels_made_of_channels():
    image = _random.standard_normal((2, 8, 3, 5)).astype("float32")
    expected = image.reshape(2, 2, 2, 2, 3, 5).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 10)
    actual = run("pixel_shuffle.default", {"self": image, "upscale_factor": 2}, ((2, 2, 6, 10), "float32"))
    np.testing.assert_array_equal(actual, expected)
