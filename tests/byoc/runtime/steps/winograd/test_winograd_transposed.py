"""Transposed convolutions, and so gradients of data, by Winograd's algorithm: filters are turned around."""

from __future__ import annotations

import numpy as np
import pytest
from blocks import BLOCKED
from program_builder import Builder, convolution, grouped, pad_spatial, random
from winograd_cases import RELU, ROUNDING, attributes, filters

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.testing.reference import relative_l2


def deconvolution(
    algorithm: ir.ConvolutionAlgorithm, padding: tuple[int, ...], groups: int = 1
) -> ir.Deconvolution:
    return ir.Deconvolution((1, 1), padding, (1, 1), groups, algorithm)


def check(
    attrs: ir.Deconvolution,
    src: tuple[int, ...],
    outputs: int,
    size: int = 3,
    layout: str = "",
    images: str = "acdb",
) -> None:
    """Held against a convolution, in the middle of a region; ``layout``: of filters that are an input."""
    b, inputs = Builder("turned"), src[1] // attrs.groups
    w, x = filters(outputs, inputs, size), random(*src)
    around = [size - 1 - count for count in attrs.padding]  # less than none: edges are left out
    seen = pad_spatial(x, [max(0, count) for count in around])
    rows, columns = (
        slice(max(0, -around[axis]), seen.shape[2 + axis] - max(0, -around[2 + axis])) for axis in (0, 1)
    )
    same = attributes("direct", (0, 0, 0, 0), attrs.groups)
    expected = np.maximum(convolution(seen[:, :, rows, columns], w[..., ::-1, ::-1], same), 0)
    weights = grouped(w, attrs.groups)
    dst = b.local(expected.shape, images)
    source = b.reorder(b.input(src), images)
    held = b.reorder(b.input(weights.shape), layout) if layout else b.constant(weights)
    b.step(attrs, [RELU], src=source, weights=held, dst=dst)
    b.finish(dst)
    info = next(info for info in library.describe(b.build()).steps if "winograd" in info.implementation)
    assert (info.implementation, info.error) == (attrs.algorithm, "")
    found = b.run(x, weights) if layout else b.run(x)
    assert relative_l2(found, expected) <= info.relative_error + ROUNDING


@pytest.mark.parametrize("layout", ["", "abcd", "bacd", "ABcd16b16a", "BAcd16a16b", "Acdb16a"])
@pytest.mark.parametrize("algorithm", ["winograd_f2", "winograd_f4"])
@pytest.mark.parametrize(
    "src, outputs, padding",
    [
        ((2, 32, 9, 10), 48, (1, 1, 1, 1)),
        ((1, 17, 7, 5), 19, (0, 0, 0, 0)),
        ((3, 20, 6, 9), 33, (2, 0, 1, 2)),
        ((1, 5, 1, 1), 7, (0, 1, 0, 1)),
        ((1, 180, 9, 9), 200, (1, 1, 1, 1)),
    ],
)
def test_shapes_and_layouts(src, outputs, padding, algorithm, layout, threads):
    check(deconvolution(algorithm, padding), src, outputs, layout=layout)


@pytest.mark.parametrize("padding", [(3, 3, 3, 3), (4, 2, 3, 5)])
def test_padding_beyond_the_window_leaves_edges_out(padding):
    check(deconvolution("winograd_f4", padding), (2, 19, 11, 12), 17, layout="abcd")


@pytest.mark.parametrize("layout", ["", "abcde", "acbde", "aBCde16b16c"])
@pytest.mark.parametrize("size", [3, 5])
def test_groups_and_larger_filters(size, layout):
    check(deconvolution("winograd_f2", (1, 2, 1, 2), 2), (2, 64, 9, 10), 96, size, layout)


@pytest.mark.parametrize("layout", ["", "BAcd16a16b"])
def test_blocks(layout):
    check(deconvolution("winograd_f4", (1, 1, 1, 1)), (2, 35, 9, 10), 40, layout=layout, images=BLOCKED)


@pytest.mark.parametrize(
    ("attrs", "shape", "reason"),
    [
        (ir.Deconvolution((2, 2), (1,) * 4, (1, 1), 1, "winograd_f4"), (15, 15), "stride 1"),
        (ir.Deconvolution((1, 1), (1,) * 4, (2, 2), 1, "winograd_f4"), (10, 10), "without dilation"),
        (ir.Deconvolution((1, 1), (1,) * 4, (1, 1), 1, "fft"), (8, 8), "algorithm fft is not known"),  # type: ignore[arg-type]
    ],
)
def test_refusals(attrs, shape, reason):
    b = Builder()
    src, w = b.input((1, 16, 8, 8), "acdb"), b.input((16, 16, 3, 3))
    b.step(attrs, src=src, weights=w, dst=b.output((1, 16, *shape), "acdb"))
    assert reason in library.describe(b.build()).steps[0].error
