"""The C++ runtime against numpy: every kind of step, in the layouts that matter, with post-ops."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest
from blocks import LAYOUTS
from program_builder import (
    Builder,
    check,
    convolution,
    grouped,
    output_shape,
    pad_spatial,
    random,
    windows,
)

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir

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


@pytest.mark.parametrize("rank", [3, 5])
def test_convolution_ranks(rank):
    axes = rank - 2
    attrs = ir.Convolution((2,) * axes, (1,) * axes + (0,) * axes, (1,) * axes, 1)
    shape, weights = (2, 16, *[9] * axes), (17, 16, *[3] * axes)
    x, w = random(*shape), random(*weights)
    b = Builder()
    dst = b.output(output_shape(shape, weights, attrs))
    b.step(attrs, src=b.input(shape), weights=b.constant(w), dst=dst)
    check(b.run(x), convolution(x, w, attrs), w[0].size)


def test_convolution_with_weights_that_are_an_input():
    x, w = random(1, 16, 8, 8), random(17, 16, 3, 3)
    b = Builder()
    src, weights = b.input(x.shape), b.input(w.shape)
    b.step(DENSE, src=src, weights=weights, dst=b.output((1, 17, 8, 8)))
    check(b.run(x, w), convolution(x, w, DENSE), w[0].size)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_post_op_chain(layout):
    """Bias, scale for each channel, in-place sum, another tensor, clip."""
    x, w = random(2, 16, 7, 7), random(35, 16, 3, 3)
    other, added, scale = random(2, 35, 7, 7, seed=1), random(2, 35, 7, 7, seed=2), random(1, 35, 1, 1)
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    residual = b.reorder(b.input(added.shape), layout)
    second = b.reorder(b.input(other.shape), layout)
    dst = b.view(residual, added.shape, layout)
    post_ops = [
        ir.BinaryPostOp("mul", b.constant(scale)),
        ir.SumPostOp(1.0),
        ir.BinaryPostOp("add", second),
        ir.EltwisePostOp("clip_v2", -3.0, 6.0),
    ]
    b.step(DENSE, post_ops, src=src, weights=b.constant(w), bias=b.constant(random(35)), dst=dst)
    b.finish(dst)
    expected = np.clip(convolution(x, w, DENSE, random(35)) * scale + added + other, -3, 6)
    check(b.run(x, added, other), expected, w[0].size)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("layout", ["abcd", "acdb"])
def test_deconvolution(layout, groups):
    """Against scattering by hand; the last row comes from output padding."""
    x, w = random(1, 16, 5, 6), random(groups, 12 // groups, 16 // groups, 3, 3)
    attrs = ir.Deconvolution((2, 2), (1, 1, 0, 0), (1, 1), groups)
    full = np.zeros((1, 12, 2 * 5 + 2, 2 * 6 + 2))
    for g in range(groups):
        part = x[:, g * 16 // groups : (g + 1) * 16 // groups]
        for i, j in np.ndindex(3, 3):
            out = np.einsum("nihw,oi->nohw", part, w[g, :, :, i, j])
            full[:, g * 12 // groups : (g + 1) * 12 // groups, i : i + 10 : 2, j : j + 12 : 2] += out
    expected = full[:, :, 1:-1, 1:-1].astype("float32")
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    dst = b.local(expected.shape, layout)
    b.step(attrs, src=src, weights=b.constant(w if groups > 1 else w[0]), dst=dst)
    b.finish(dst)
    check(b.run(x), expected, 16 * 9)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_matmul(batch, transposed):
    x, w, bias = random(*batch, 7, 17), random(*batch, 17, 5), random(*[1] * len(batch), 1, 5)
    b = Builder()
    if transposed:
        letters = "abcd"[: w.ndim]
        layout = letters[:-2] + letters[-1] + letters[-2]
        weights = b.constant(np.swapaxes(w, -1, -2).copy(), layout, shape=w.shape)
    else:
        weights = b.constant(w)
    dst = b.output((*batch, 7, 5))
    b.step(
        ir.MatMul(),
        [ir.EltwisePostOp("gelu_erf", 0.0, 0.0)],
        src=b.input(x.shape),
        weights=weights,
        bias=b.constant(bias),
        dst=dst,
    )
    z = (x @ w + bias).astype("float64")
    check(b.run(x), (z * 0.5 * (1 + np.vectorize(erf)(z / np.sqrt(2)))).astype("float32"), 17)


def test_matmul_of_two_inputs_broadcasts_batches():
    x, y = random(4, 7, 17), random(1, 17, 5)
    b = Builder()
    src, weights = b.input(x.shape), b.input(y.shape)
    b.step(ir.MatMul(), src=src, weights=weights, dst=b.output((4, 7, 5)))
    check(b.run(x, y), x @ y, 17)


def test_inner_product():
    x, w, bias = random(3, 67), random(17, 67), random(17)
    b = Builder()
    dst = b.output((3, 17))
    b.step(ir.InnerProduct(), src=b.input(x.shape), weights=b.constant(w), bias=b.constant(bias), dst=dst)
    check(b.run(x), x @ w.T + bias, 67)


POOLINGS = {
    "max": ir.Pooling("max", (3, 3), (2, 2), (1, 1), (1, 1)),
    "dilated max": ir.Pooling("max", (2, 2), (1, 1), (0, 0), (2, 2)),
    "average": ir.Pooling("avg_include_padding", (3, 3), (2, 2), (1, 1), (1, 1)),
    "average of what is there": ir.Pooling("avg_exclude_padding", (3, 2), (2, 2), (1, 0), (1, 1)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("name", POOLINGS)
def test_pooling(name, ceil, layout):
    attrs = POOLINGS[name]
    x = random(2, 19, 12, 11)
    begin = attrs.padding
    reach = [(k - 1) * d + 1 for k, d in zip(attrs.kernel, attrs.dilation, strict=True)]
    slack = [s - 1 if ceil else 0 for s in attrs.strides]
    out = [(x.shape[2 + i] + 2 * begin[i] - reach[i] + slack[i]) // attrs.strides[i] + 1 for i in range(2)]
    end = [max(0, (out[i] - 1) * attrs.strides[i] + reach[i] - x.shape[2 + i] - begin[i]) for i in range(2)]
    empty = -np.inf if attrs.algorithm == "max" else 0.0
    view = windows(pad_spatial(x, (*begin, *end), empty), attrs.kernel, attrs.strides, attrs.dilation)
    view = view[:, :, : out[0], : out[1]]
    if attrs.algorithm == "max":
        expected = view.max((-1, -2))
    elif attrs.algorithm == "avg_include_padding":
        expected = view.mean((-1, -2))
    else:
        ones = windows(
            pad_spatial(np.ones_like(x), (*begin, *end)), attrs.kernel, attrs.strides, attrs.dilation
        )
        expected = view.sum((-1, -2)) / ones[:, :, : out[0], : out[1]].sum((-1, -2))
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    dst = b.local(expected.shape, layout)
    b.step(attrs, src=src, dst=dst)
    b.finish(dst)
    check(b.run(x), expected, 9)


@pytest.mark.parametrize("algorithm", ["avg_exclude_padding", "avg_include_padding", "max"])
@pytest.mark.parametrize(("points", "name"), [((23,), "abc"), ((5, 7), "abcd"), ((7, 5), "acdb")])
def test_a_pool_to_one_point_is_no_reference_code(points, name, algorithm):
    """Whatever its result is called: one point is as well plain as it is channels last.

    No other test has so many channels: oneDNN's cache would answer with what it made under another name.
    """
    channels = 4000 + sum(map(ord, name + algorithm))
    rank = len(points)
    last = {3: "acb", 4: "acdb"}[2 + rank]
    x = random(2, channels, *points)
    b = Builder()
    dst = b.local((2, channels, *(1,) * rank), name)
    attrs = ir.Pooling(algorithm, points, points, (0,) * rank, (1,) * rank)
    b.step(attrs, src=b.reorder(b.input(x.shape), last), dst=dst)
    b.finish(dst)
    pool = library.describe(b.build()).steps[1]
    assert pool.error == "" and not pool.is_reference, pool.implementation
    axes = tuple(range(2, 2 + rank))
    expected = x.max(axes, keepdims=True) if algorithm == "max" else x.mean(axes, keepdims=True)
    check(b.run(x), expected, 35)


@pytest.mark.parametrize("algorithm", ["nearest", "linear"])
@pytest.mark.parametrize(("point", "image"), [("abcd", "acdb"), ("acdb", "abcd")])
def test_an_image_of_one_point_is_no_reference_code(point, image, algorithm):
    """As a pool to one point, from the other side."""
    channels = 5000 + sum(map(ord, point + algorithm))
    x = random(2, channels, 1, 1)
    b = Builder()
    dst = b.local((2, channels, 3, 5), image)
    b.step(ir.Resampling(algorithm), src=b.reorder(b.input(x.shape), point), dst=dst)
    b.finish(dst)
    found = library.describe(b.build()).steps[1]
    assert found.error == "" and not found.is_reference, found.implementation
    check(b.run(x), np.broadcast_to(x, (2, channels, 3, 5)), 1)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_batch_normalization(layout, relu):
    x, mean, scale, shift = random(2, 19, 5, 7), random(19), random(19, seed=1), random(19, seed=2)
    variance = np.abs(random(19, seed=3)) + 0.5
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    dst = b.local(x.shape, layout)
    operands = {"mean": mean, "variance": variance, "scale": scale, "shift": shift}
    ids = {role: b.constant(data) for role, data in operands.items()}
    b.step(ir.BatchNormalization(1e-5, relu), src=src, **ids, dst=dst)
    b.finish(dst)
    column = (1, 19, 1, 1)
    expected = (x - mean.reshape(column)) / np.sqrt(variance.reshape(column) + 1e-5)
    expected = expected * scale.reshape(column) + shift.reshape(column)
    check(b.run(x), (np.maximum(expected, 0) if relu else expected).astype("float32"))


@pytest.mark.parametrize("affine", [False, True])
def test_layer_normalization(affine):
    x, scale, shift = random(3, 5, 67), random(67), random(67, seed=1)
    b = Builder()
    ids = {"scale": b.constant(scale), "shift": b.constant(shift)} if affine else {}
    b.step(ir.LayerNormalization(1e-5), src=b.input(x.shape), **ids, dst=b.output(x.shape))
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    check(b.run(x), expected * scale + shift if affine else expected, 67)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lrn(layout):
    x = random(1, 32, 4, 5)
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    dst = b.local(x.shape, layout)
    b.step(ir.LRN(5, 0.3, 0.75, 2.0), src=src, dst=dst)
    b.finish(dst)
    squares = np.pad(x**2, [(0, 0), (2, 2), (0, 0), (0, 0)])
    total = sum(squares[:, i : i + 32] for i in range(5))
    check(b.run(x), x / (2.0 + 0.3 / 5 * total) ** 0.75, 5)


@pytest.mark.parametrize("algorithm", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax(axis, algorithm):
    x = random(3, 17, 5)
    b = Builder()
    b.step(ir.Softmax(algorithm, axis), src=b.input(x.shape), dst=b.output(x.shape))
    z = x - x.max(axis, keepdims=True)
    log = z - np.log(np.exp(z).sum(axis, keepdims=True))
    check(b.run(x), log if algorithm == "log_softmax" else np.exp(log), 17)
