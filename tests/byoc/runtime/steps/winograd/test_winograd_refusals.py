"""Winograd's convolutions that are refused, each with its reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from blocks import BLOCK
from program_builder import Builder, output_shape
from winograd_cases import Case, attributes

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda s: replace(s, attrs=replace(s.attrs, strides=(2, 2))), "stride 1"),
        (lambda s: replace(s, attrs=replace(s.attrs, dilation=(2, 2))), "without dilation"),
        (lambda s: replace(s, post_ops=(ir.EltwisePostOp("mish", 1.0, 0.0),)), "no post-op mish"),
        (lambda s: replace(s, attrs=replace(s.attrs, algorithm="fft")), "algorithm fft is not known"),
    ],
)
def test_refused_steps(change, reason):
    program = Case("winograd_f4", (1, 16, 8, 8), 16).convolve().builder.build()
    before, step, after = program.steps
    step = change(step)
    shape = output_shape((1, 16, 8, 8), (16, 16, 3, 3), step.attrs)
    program = program.with_value(step.dst, shape=shape).with_value(after.dst, shape=shape)
    info = library.describe(replace(program, steps=(before, step, after))).steps[1]
    assert reason in info.error


@pytest.mark.parametrize(
    "algorithm, src, size, groups, reason",
    [
        ("winograd_f4", (1, 16, 8, 8), 5, 1, "tiles of 4x4 takes filters of 3x3, not of 5x5"),
        ("winograd_f2", (1, 16, 8, 8), 7, 1, "tiles of 2x2 takes filters of 3x3 and 5x5, not of 7x7"),
        ("winograd_f2", (1, 16, 8, 8), 3, 16, "no depthwise convolutions"),
    ],
)
def test_refused_filters(algorithm, src, size, groups, reason):
    assert reason in Case(algorithm, src, 16, size=size, groups=groups).convolve().info().error


@pytest.mark.parametrize("layout", ["abcd", "aBcd4b"])
def test_refused_layouts(layout):
    info = Case("winograd_f4", (1, 16, 8, 8), 16, layouts=(layout, "acdb")).convolve().info()
    assert f"src as acdb, aBcd8b or aBcd16b, not as {layout}" in info.error


def test_blocks_that_vectors_do_not_fit():
    """A vector of AVX-512 has 16 channels; blocks of 8 are for the others."""
    info = Case("winograd_f4", (1, 16, 8, 8), 16, layouts=("aBcd8b", "acdb")).convolve().info()
    refused = "src in blocks that fill a vector of 16 channels, not as aBcd8b"
    assert refused in info.error if BLOCK == 16 else not info.error


def test_it_picks_no_layout():
    b = Builder()
    src, w = b.input((1, 16, 8, 8), "any"), b.constant(np.zeros((16, 16, 3, 3), "float32"))
    b.step(attributes("winograd_f4"), src=src, weights=w, dst=b.output((1, 16, 8, 8), "any"))
    assert "src as acdb, aBcd8b or aBcd16b, and picks none" in library.describe(b.build()).steps[0].error


@pytest.mark.parametrize(
    ("layout", "dtype", "constant", "reason"),
    [
        ("any", "float32", False, "picks no layout for weights"),
        ("ABcd16b16a", "float32", True, "constant weights in a layout without blocks"),
        ("abcd", "bfloat16", False, "weights that are no constant in float32"),
    ],
)
def test_refused_weights(layout, dtype, constant, reason):
    b = Builder()
    images = [b.input((1, 16, 8, 8), "acdb", dtype), b.output((1, 16, 8, 8), "acdb", dtype)]
    shape = (16, 16, 3, 3)
    w = (
        b.constant(np.zeros((1, 1, 3, 3, 16, 16), "float32"), layout, shape)
        if constant
        else b.input(shape, layout, dtype)
    )
    b.step(attributes("winograd_f4"), src=images[0], weights=w, dst=images[1])
    assert reason in library.describe(b.build()).steps[0].error
