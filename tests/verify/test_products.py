"""Sums of products at chosen positions against opcheck's float64, which goes tap by tap instead."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.references import REFERENCES
from tvm_mxplan.opcheck.references.operands import Operands
from tvm_mxplan.verify import products

CONVOLUTIONS = {
    "strides and uneven padding": (
        ir.Convolution((2, 3), (1, 0, 2, 1), (1, 1), 1),
        (2, 5, 11, 13),
        (7, 5, 3, 4),
    ),
    "dilation": (ir.Convolution((1, 1), (2, 2, 2, 2), (2, 3), 1), (1, 3, 12, 14), (4, 3, 3, 3)),
    "groups": (ir.Convolution((1, 2), (1, 1, 1, 1), (1, 1), 3), (2, 9, 7, 8), (3, 5, 3, 3, 3)),
    "depthwise": (ir.Convolution((2, 1), (1, 1, 1, 1), (1, 1), 6), (2, 6, 9, 7), (6, 1, 1, 3, 3)),
    "one axis": (ir.Convolution((2,), (1, 1), (1,), 1), (3, 4, 17), (5, 4, 5)),
    "three axes": (
        ir.Convolution((1, 2, 1), (0, 1, 1, 0, 1, 1), (1, 1, 1), 1),
        (1, 3, 5, 6, 7),
        (4, 3, 2, 3, 3),
    ),
}
DECONVOLUTIONS = {
    "strides and padding": (ir.Deconvolution((2, 3), (1, 0, 1, 0), (1, 1), 1), (2, 5, 4, 6), (7, 5, 4, 3)),
    "dilation": (ir.Deconvolution((2, 1), (1, 2, 1, 2), (2, 2), 1), (1, 3, 5, 6), (4, 3, 3, 3)),
    "groups": (ir.Deconvolution((2, 2), (0, 1, 0, 1), (1, 1), 3), (1, 6, 5, 4), (3, 4, 2, 3, 3)),
}


def integers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


def result_extents(
    attrs: ir.Convolution | ir.Deconvolution, src: tuple[int, ...], kernel: tuple[int, ...]
) -> list[int]:
    axes = len(kernel)
    found = []
    for at, (size, taps) in enumerate(zip(src[2:], kernel, strict=True)):
        reach = (taps - 1) * attrs.dilation[at] + 1
        pads = attrs.padding[at] + attrs.padding[at + axes]
        if isinstance(attrs, ir.Convolution):
            found.append((size + pads - reach) // attrs.strides[at] + 1)
        else:
            found.append((size - 1) * attrs.strides[at] + reach - pads)
    return found


@pytest.mark.parametrize(
    "attrs, src, weights",
    [*CONVOLUTIONS.values(), *DECONVOLUTIONS.values()],
    ids=[*CONVOLUTIONS, *DECONVOLUTIONS],
)
@pytest.mark.parametrize("some", [False, True])
def test_convolutions_of_either_kind(attrs, src, weights, some) -> None:
    outputs = weights[0] * weights[1] if attrs.groups > 1 else weights[0]
    out = result_extents(attrs, src, weights[2 + (attrs.groups > 1) :])
    arrays = {"src": integers(src, 1), "weights": integers(weights, 2)}
    wide = {role: [array.astype(np.float64)] for role, array in arrays.items()}
    shape = (src[0], outputs, *out)
    exact = REFERENCES[type(attrs)](attrs, Operands(wide, shape)).value
    rows = np.moveaxis(exact, 1, -1).reshape(-1, outputs)
    at = np.arange(len(rows))
    at = at[:: max(1, len(at) // 7)] if some else at
    found = products.convolution(attrs, arrays, out, at)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, rows[at])


def test_matrix_products() -> None:
    arrays = {"src": integers((3, 2, 9, 31), 1), "weights": integers((3, 1, 31, 5), 2)}
    at = np.array([0, 4, 8])
    expected = np.matmul(arrays["src"].astype(np.float64), arrays["weights"])[..., at, :]
    np.testing.assert_array_equal(products.matmul(arrays, at), expected)
    arrays = {"src": integers((5, 3, 4, 2), 1), "weights": integers((7, 3, 4, 2), 2)}
    expected = np.einsum("ncij,ocij->no", arrays["src"].astype(np.float64), arrays["weights"])
    np.testing.assert_array_equal(products.inner_product(arrays, np.array([1, 4])), expected[[1, 4]])
