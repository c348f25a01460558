"""Convolutions of each channel of lines by itself, which run as those of images of one row."""

from __future__ import annotations

import numpy as np
import pytest
from program_builder import Builder, check, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir

LAYOUTS = ["acb", "aBc8b"]


def convolved(x: np.ndarray, w: np.ndarray, attrs: ir.Convolution) -> np.ndarray:
    """In float64, of ``w`` [C, 1, 1, k]."""
    (stride,), (dilation,) = attrs.strides, attrs.dilation
    padded = np.pad(x.astype("float64"), [(0, 0), (0, 0), attrs.padding])
    taps, reach = w.shape[-1], (w.shape[-1] - 1) * dilation
    count = (padded.shape[2] - reach - 1) // stride + 1
    windows = [padded[:, :, t * dilation :][:, :, : (count - 1) * stride + 1 : stride] for t in range(taps)]
    return np.asarray(sum(part * w[:, 0, 0, t, None] for t, part in enumerate(windows)))


CASES = {
    "causal": (2, 64, 15, 4, ir.Convolution((1,), (3, 0), (1,), 64)),
    "same": (1, 40, 50, 9, ir.Convolution((1,), (4, 4), (1,), 40)),
    "strides": (2, 24, 33, 5, ir.Convolution((2,), (2, 2), (1,), 24)),
    "dilated": (1, 16, 40, 3, ir.Convolution((1,), (4, 4), (4,), 16)),
    "odd channels": (2, 37, 20, 3, ir.Convolution((1,), (1, 1), (1,), 37)),
    "longer than the line": (1, 32, 5, 7, ir.Convolution((1,), (3, 3), (1,), 32)),
}


@pytest.mark.parametrize("behind", ["", "relu", "channel", "whole", "all"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CASES)
def test_numbers(name: str, layout: str, behind: str, threads: int) -> None:
    samples, channels, length, taps, attrs = CASES[name]
    x, w, bias = (
        random(samples, channels, length),
        random(channels, 1, 1, taps, seed=1),
        random(channels, seed=2),
    )
    expected = convolved(x, w, attrs) + bias[:, None]
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    dst = b.local(expected.shape, layout)
    post_ops: list[ir.PostOp] = []
    inputs = [x]
    if behind in ("channel", "all"):
        factor = random(1, channels, 1, seed=3)
        post_ops.append(ir.BinaryPostOp("mul", b.constant(factor)))
        expected = expected * factor
    if behind in ("relu", "all"):
        post_ops.append(ir.EltwisePostOp("relu", 0.0, 0.0))
        expected = np.maximum(expected, 0)
    if behind in ("whole", "all"):
        other = random(*expected.shape, seed=4)
        post_ops.append(ir.BinaryPostOp("add", b.reorder(b.input(other.shape), layout)))
        inputs.append(other)
        expected = expected + other
    weights = b.constant(w)
    b.step(attrs, post_ops, src=src, weights=weights, bias=b.constant(bias), dst=dst)
    b.finish(dst)
    check(b.run(*inputs), expected.astype("float32"), taps)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_kernels_are_those_for_channels_by_themselves(layout: str) -> None:
    """oneDNN's own choice for lines is a product for each channel."""
    b = Builder()
    src, dst = b.input((2, 64, 30), layout), b.output((2, 64, 30), layout)
    weights = b.constant(random(64, 1, 1, 3))
    b.step(ir.Convolution((1,), (1, 1), (1,), 64), [], src=src, weights=weights, dst=dst)
    (step,) = library.describe(b.build()).steps
    assert "dw" in step.implementation, step.implementation
