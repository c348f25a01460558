"""The host library's grid_sample against scipy, against TVM's kernel, and against images padded by numpy."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from host_networks import between_convolutions
from host_steps import ran
from scipy.ndimage import map_coordinates
from tvm import relax

import tvm_mxplan
from tvm_mxplan import opcheck
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.references.images.grid_sample import grid_sample
from tvm_mxplan.opcheck.references.operands import Operands

RNG = np.random.default_rng(17)
ALGORITHMS = ("nearest", "linear", "cubic")
PADDINGS = ("zeros", "border", "reflection")
PLANE, VOLUME = ((2, 3, 5, 7), (11, 30)), ((2, 3, 4, 5, 6), (3, 7, 16))
EXTENDED = {
    ("border", True): "edge",
    ("border", False): "edge",
    ("reflection", True): "reflect",
    ("reflection", False): "symmetric",
}
"""numpy's names of what stands around an image, by padding and align_corners."""


def coordinates(places: np.ndarray, extents: tuple[int, ...], corners: bool) -> np.ndarray:
    """A grid for places in indices [axis, samples, ...], of which the last axis comes first."""
    lengths = np.array(extents, float).reshape(-1, *[1] * (places.ndim - 1))
    grid = 2 * places / (lengths - 1) - 1 if corners else (2 * places + 1) / lengths - 1
    return np.ascontiguousarray(np.moveaxis(grid[::-1], 0, 1), np.float32)


def places_in(shape: tuple[int, ...], points: tuple[int, ...], beyond: float) -> np.ndarray:
    """Places anywhere in images, and so far beyond, that no two roundings of one differ."""
    drawn = [RNG.uniform(-beyond, extent - 1 + beyond, (shape[0], *points)) for extent in shape[2:]]
    return np.floor(np.array(drawn)) + RNG.uniform(0.05, 0.45, (len(drawn), shape[0], *points))


@pytest.mark.parametrize("corners", [True, False], ids=["corners", "edges"])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("algorithm", ["nearest", "linear"])
@pytest.mark.parametrize("shape, points", [PLANE, VOLUME], ids=["plane", "volume"])
def test_as_scipy_does(
    shape: tuple[int, ...], points: tuple[int, ...], algorithm: str, padding: str, corners: bool
) -> None:
    x, places = RNG.standard_normal(shape, np.float32), places_in(shape, points, 6.0)
    grid = coordinates(places, shape[2:], corners)
    rule = ir.GridSample(algorithm, padding, corners)
    found = ran(rule, [("src", x), ("grid", grid)], (*shape[:2], *points))
    mode = {"zeros": "grid-constant", "border": "nearest"}.get(padding, "mirror" if corners else "reflect")
    order = ("nearest", "linear").index(algorithm)
    expected = [
        [map_coordinates(plane, places[:, sample], None, order, mode) for plane in x[sample].astype(float)]
        for sample in range(shape[0])
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("padding, corners", EXTENDED)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_beyond_an_image_is_what_numpy_pads_it_with(algorithm: str, padding: str, corners: bool) -> None:
    shape, points = PLANE
    x, places = RNG.standard_normal(shape, np.float32), places_in(shape, points, 9.0)
    around = ((0, 0), (0, 0), (13, 13), (13, 13))
    wide = np.pad(x, around, EXTENDED[padding, corners])  # type: ignore[call-overload]
    grid = coordinates(places, shape[2:], corners)
    wide_grid = coordinates(places + 13.0, wide.shape[2:], corners)
    results = [
        ran(
            ir.GridSample(algorithm, mode, corners),
            [("src", image), ("grid", at)],
            (*shape[:2], *points),
        )
        for image, at, mode in ((x, grid, padding), (wide, wide_grid, "zeros"))
    ]
    np.testing.assert_allclose(*results, rtol=1e-5, atol=5e-5)


def module(method: str, padding: str, corners: bool, turned: bool) -> tvm.IRModule:
    """A number of images; ``turned``: coordinates stand together, as PyTorch has them."""
    builder = relax.BlockBuilder()
    batch = tvm.tirx.Var("batch", "int64")
    x = relax.Var("x", relax.TensorType((batch, 5, 6, 7), "float32"))
    grid = relax.Var("grid", relax.TensorType((batch, 9, 8, 2) if turned else (batch, 2, 9, 8), "float32"))
    with builder.function("main", [x, grid]):
        with builder.dataflow():
            at = builder.emit(relax.op.permute_dims(grid, [0, 3, 1, 2])) if turned else grid
            sampled = relax.op.image.grid_sample(
                x, at, method=method, padding_mode=padding, align_corners=corners
            )
            result = builder.emit_output(sampled)
        builder.emit_func_output(result)
    return builder.get()


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize(
    "method, padding, corners",
    [("bicubic", "zeros", True), ("bicubic", "border", False), ("nearest", "zeros", True)],
)
def test_as_tvm_does(method: str, padding: str, corners: bool, turned: bool) -> None:
    x = RNG.standard_normal((3, 5, 6, 7), np.float32)
    grid = coordinates(places_in(x.shape, (9, 8), 3.0), (6, 7), corners)
    grid = np.ascontiguousarray(np.moveaxis(grid, 1, -1)) if turned else grid
    made = module(method, padding, corners, turned)
    ours = tvm_mxplan.compile(made, "host, llvm", options={"cache": "disabled"})
    assert [step.kind for region in ours.report.regions for step in region.steps] == ["grid_sample"]
    theirs = tvm_mxplan.compile(made, "llvm", options={"cache": "disabled"})
    np.testing.assert_allclose(ours(x, grid)[0].numpy(), theirs(x, grid)[0].numpy(), rtol=2e-5, atol=2e-5)
    opcheck.check(ours, x, grid).raise_first()


@pytest.mark.parametrize("layout", ["abcd", "acdb", "aBcd8b", "aBcd5b"])
@pytest.mark.parametrize("grid_layout", ["abcd", "acdb"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_in_layouts(algorithm: str, layout: str, grid_layout: str) -> None:
    x = RNG.standard_normal((2, 19, 6, 9), np.float32)
    grid = RNG.uniform(-1.3, 1.3, (2, 2, 31, 17)).astype("float32")
    rule, shape = ir.GridSample(algorithm, "zeros", False), (2, 19, 31, 17)
    found = ran(rule, [("src", x), ("grid", grid)], shape, layouts=[layout, grid_layout, layout])
    given = {"src": [x.astype("float64")], "grid": [grid.astype("float64")]}
    exact = grid_sample(rule, Operands(given, shape))
    assert (np.abs(found - exact.value) <= exact.error + 1e-12).all()


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_places_that_are_no_place(algorithm: str, padding: str) -> None:
    """NaN is the beginning of an axis; infinity is somewhere, or nowhere."""
    x = RNG.standard_normal((1, 2, 4, 5), np.float32)
    grid = np.zeros((1, 2, 1, 4), np.float32)
    grid[0, 0, 0] = [np.nan, -1, np.inf, -np.inf]
    rule = ir.GridSample(algorithm, padding, True)
    found = ran(rule, [("src", x), ("grid", grid)], (1, 2, 1, 4))
    np.testing.assert_array_equal(found[..., 0], found[..., 1])
    assert np.isfinite(found).all() and found[..., 1].all()
    if padding == "zeros":
        assert not found[..., 2:].any()


def test_a_pixel_outside_counts_nothing_whatever_stands_beside_it() -> None:
    x = np.full((1, 1, 3, 3), np.inf, np.float32)
    x[0, 0, 1, 1] = 1.0
    grid = np.array([[[[-3.0, 0.0]], [[-3.0, 0.0]]]], np.float32)
    found = ran(ir.GridSample("linear", "zeros", True), [("src", x), ("grid", grid)], (1, 1, 1, 2))
    assert found[0, 0, 0, 0] == 0.0


def test_one_region_with_the_layers_around_it() -> None:
    places = np.ascontiguousarray(RNG.uniform(-1.1, 1.1, (2, 2, 14, 14)), np.float32)
    made = between_convolutions(lambda x: relax.op.image.grid_sample(x, relax.const(places)))
    ex = tvm_mxplan.compile(made, options={"cache": "disabled", "prefer": {"grid_sample": "host"}})
    (region,) = ex.report.regions
    assert "grid_sample" in [step.kind for step in region.steps]
    x = RNG.standard_normal(ex.signature.inputs[0].shape, np.float32)
    opcheck.check(ex, x).raise_first()
