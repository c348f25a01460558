"""Gradients of convolutions as steps, and convolutions by weights that only a call brings."""

from __future__ import annotations

import numpy as np
import pytest
from program_builder import Builder, check, random

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.references.convolution import backward_weights, convolution
from tvm_mxplan.opcheck.references.operands import Operands

LAYOUTS = ("abcd", "acdb", "aBcd16b")
GEOMETRIES = {
    "whole": ((1, 1), (1, 1, 1, 1), (1, 1), (11, 9)),
    # The last row and column are read by no window.
    "strides": ((2, 3), (1, 0, 0, 1), (1, 1), (12, 11)),
    "dilation": ((1, 2), (2, 1, 1, 2), (2, 1), (11, 9)),
}


def results(attrs: ir.Convolution, extents: tuple[int, int]) -> tuple[int, ...]:
    return tuple(
        (extents[i] + attrs.padding[i] + attrs.padding[2 + i] - 2 * attrs.dilation[i] - 1) // attrs.strides[i]
        + 1
        for i in range(2)
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_gradient_of_weights(name: str, groups: int, layout: str) -> None:
    strides, padding, dilation, extents = GEOMETRIES[name]
    inputs, outputs = (32, 64) if groups > 1 and layout == "aBcd16b" else (6, 34)
    window = ir.Convolution(strides, padding, dilation, groups)
    attrs = ir.ConvolutionBackwardWeights(strides, padding, dilation, groups)
    x = random(2, inputs, *extents)
    gradient = random(2, outputs, *results(window, extents), seed=1)
    shape = (outputs // groups, inputs // groups, 3, 3)
    shape = shape if groups == 1 else (groups, *shape)
    given = {"src": [x.astype("float64")], "gradient": [gradient.astype("float64")]}
    expected = backward_weights(attrs, Operands(given, shape)).value
    b = Builder()
    src, grad = b.reorder(b.input(x.shape), layout), b.reorder(b.input(gradient.shape), layout)
    b.step(attrs, src=src, gradient=grad, dst=b.output(shape))
    check(b.run(x, gradient), expected.astype("float32"), gradient.size // outputs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("groups", [1, 2])
def test_weights_of_a_call_are_packed_in_the_step(groups: int, layout: str) -> None:
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), groups)
    x, w = random(2, 32, 7, 9), random(groups, 64 // groups, 32 // groups, 3, 3, seed=1)
    w = w if groups > 1 else w[0]
    given = {"src": [x.astype("float64")], "weights": [w.astype("float64")]}
    expected = convolution(attrs, Operands(given, (2, 64, 7, 9))).value.astype("float32")
    b = Builder()
    src, dst = b.reorder(b.input(x.shape), layout), b.local(expected.shape, layout)
    b.step(attrs, src=src, weights=b.input(w.shape), dst=dst)
    b.finish(dst)
    check(b.run(x, w), expected, 32 * 9 // groups)
    # A second call with other weights packs them again.
    assert np.abs(b.run(x, np.zeros_like(w))).max() == 0
