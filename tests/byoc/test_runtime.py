"""The C++ runtime against numpy: every kind of step, layouts, aliasing, and calls from many threads."""

from __future__ import annotations

import numpy as np
import pytest
from program_builder import (
    Builder,
    check,
    convolution,
    grouped,
    output_shape,
    random,
)
from tvm_mxplan.byoc.onednn import library

from tvm_mxplan.core import program as ir

LAYOUTS = ["abcd", "acdb", "aBcd16b"]
DENSE = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)


def test_versions():
    assert library.version().startswith("3.")
    assert library.isa()


CONVOLUTIONS = {
    "odd 3 to 17": ((2, 3, 13, 11), (17, 3, 3, 3), DENSE),
    "odd 17 to 67": ((1, 17, 9, 9), (67, 17, 1, 1), ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)),
    "strides": ((2, 32, 15, 15), (48, 32, 3, 3), ir.Convolution((2, 2), (1, 1, 1, 1), (1, 1), 1)),
    "asymmetric": ((1, 16, 10, 12), (32, 16, 3, 5), ir.Convolution((2, 1), (0, 2, 1, 3), (1, 1), 1)),
    "dilated": ((1, 16, 14, 14), (16, 16, 3, 3), ir.Convolution((1, 1), (2, 2, 2, 2), (2, 2), 1)),
    "groups": ((2, 64, 8, 8), (32, 32, 3, 3), ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 2)),
    "odd groups": ((1, 51, 8, 8), (51, 17, 3, 3), ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 3)),
    "depthwise": ((2, 35, 9, 9), (35, 1, 3, 3), ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 35)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name, layout):
    shape, weights, attrs = CONVOLUTIONS[name]
    x, w, bias = random(*shape), random(*weights), random(weights[0])
    b = Builder()
    src = b.reorder(b.input(shape), layout)
    dst = b.local(output_shape(shape, weights, attrs), layout)
    b.step(
        attrs,
        [ir.EltwisePostOp("relu", 0.0, 0.0)],
        src=src,
        weights=b.constant(grouped(w, attrs.groups)),
        bias=b.constant(bias),
        dst=dst,
    )
    b.finish(dst)
    check(b.run(x), np.maximum(convolution(x, w, attrs, bias), 0), w[0].size)
