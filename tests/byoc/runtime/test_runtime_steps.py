"""The C++ runtime against numpy: every kind of step, in the layouts that matter, with post-ops."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest
from blocks import BLOCK, BLOCKED
from program_builder import (
    Builder,
    call,
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

LAYOUTS = ["abcd", "acdb", BLOCKED]
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


ELTWISES = {
    "relu": (0.1, 0.0, lambda x: np.where(x > 0, x, np.float32(0.1) * x)),
    "tanh": (0.0, 0.0, np.tanh),
    "elu": (0.5, 0.0, lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    "square": (0.0, 0.0, np.square),
    "abs": (0.0, 0.0, np.abs),
    "linear": (2.0, -1.0, lambda x: 2 * x - 1),
    "soft_relu": (1.0, 0.0, lambda x: np.log1p(np.exp(x))),
    "hardsigmoid": (0.2, 0.5, lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    "logistic": (0.0, 0.0, lambda x: 1 / (1 + np.exp(-x))),
    "mish": (0.0, 0.0, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "exp": (0.0, 0.0, np.exp),
    "gelu_tanh": (0.0, 0.0, lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))),
    "swish": (1.5, 0.0, lambda x: x / (1 + np.exp(-1.5 * x))),
    "clip": (-0.5, 0.5, lambda x: np.clip(x, -0.5, 0.5)),
    "clip_v2": (0.0, 0.7, lambda x: np.clip(x, 0.0, 0.7)),
    "hardswish": (1 / 6, 0.5, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "pow": (2.0, 3.0, lambda x: 2 * x**3),
    "round": (0.0, 0.0, np.round),
}


@pytest.mark.parametrize("algorithm", ELTWISES)
def test_eltwise(algorithm):
    alpha, beta, reference = ELTWISES[algorithm]
    x = random(2, 17, 5, 3)
    b = Builder()
    src = b.reorder(b.input(x.shape), BLOCKED)
    dst = b.view(src, x.shape, BLOCKED)  # in place
    b.step(ir.Eltwise(algorithm, alpha, beta), src=src, dst=dst)
    b.finish(dst)
    check(b.run(x), reference(x).astype("float32"), 64)


@pytest.mark.parametrize("algorithm", ["sqrt", "log"])
def test_eltwise_of_positive_numbers(algorithm):
    x = np.abs(random(3, 17)) + np.float32(0.1)
    b = Builder()
    b.step(ir.Eltwise(algorithm, 0.0, 0.0), src=b.input(x.shape), dst=b.output(x.shape))
    check(b.run(x), getattr(np, algorithm)(x), 16)


@pytest.mark.parametrize("shape", [(2, 17, 5, 3), (1, 17, 1, 1), (1, 1, 1, 1), (2, 1, 5, 3)])
@pytest.mark.parametrize("algorithm", ["add", "sub", "mul", "div", "min", "max"])
def test_binary(algorithm, shape):
    functions = {"min": "minimum", "max": "maximum", "add": "add", "sub": "subtract", "mul": "multiply"}
    x, y = random(2, 17, 5, 3), random(*shape, seed=1)
    if algorithm == "div":
        y = np.abs(y) + np.float32(0.5)
    b = Builder()
    src, src1 = b.input(x.shape), b.input(y.shape)
    b.step(ir.Binary(algorithm), src=src, src1=src1, dst=b.output(x.shape))
    check(b.run(x, y), getattr(np, functions.get(algorithm, "divide"))(x, y))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [32, 19])
def test_binary_with_a_vector_of_channels(channels, layout):
    x, y = random(2, channels, 5, 3), random(1, channels, 1, 1, seed=1)
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    dst = b.local(x.shape, layout)
    b.step(ir.Binary("mul"), src=src, src1=b.constant(y), dst=dst)
    b.finish(dst)
    check(b.run(x), x * y)
    assert not library.describe(b.build()).steps[1].is_reference


def test_binary_with_broadcast_src_is_refused():
    b = Builder()
    src, src1 = b.input((1, 3, 1, 1)), b.input((2, 3, 4, 4))
    b.step(ir.Binary("add"), src=src, src1=src1, dst=b.output((2, 3, 4, 4)))
    (step,) = library.describe(b.build()).steps
    assert "src would have to be broadcast" in step.error


@pytest.mark.parametrize("layout", LAYOUTS)
def test_prelu(layout):
    x, slope = random(2, 19, 5, 3), random(1, 19, 1, 1)
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    dst = b.local(x.shape, layout)
    b.step(ir.PReLU(), src=src, weights=b.constant(slope), dst=dst)
    b.finish(dst)
    check(b.run(x), np.where(x > 0, x, x * slope))


@pytest.mark.parametrize("axes", [(2, 3), (1,), (0, 1, 2, 3)])
@pytest.mark.parametrize("algorithm", ["mean", "sum", "max", "min", "mul"])
def test_reduction(algorithm, axes):
    x = random(2, 17, 5, 3)
    expected = getattr(np, {"mul": "prod"}.get(algorithm, algorithm))(x, axis=axes, keepdims=True)
    b = Builder()
    b.step(ir.Reduction(algorithm), src=b.input(x.shape), dst=b.output(expected.shape))
    check(b.run(x), expected, 100)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_concat(layout):
    arrays = [random(2, channels, 5, 3) for channels in (16, 3, 17)]
    b = Builder()
    pieces = [b.reorder(b.input(array.shape), layout) for array in arrays]
    dst = b.local((2, 36, 5, 3), layout)
    b.step(ir.Concat(1), src=pieces, dst=dst)
    b.finish(dst)
    check(b.run(*arrays), np.concatenate(arrays, 1))


@pytest.mark.parametrize("in_place", [1, 2])
def test_concat_without_copies(in_place):
    """At batch 1 in aBcd16b pieces of whole blocks are contiguous: they are written where they belong."""
    arrays = [random(1, channels, 5, 3) for channels in (16, 32)]
    b = Builder()
    layout = BLOCKED
    inputs = [b.input(array.shape) for array in arrays]
    dst = b.local((1, 48, 5, 3), layout)
    pieces = [
        b.view(dst, array.shape, layout, offset) if i < in_place else b.local(array.shape, layout)
        for i, (array, offset) in enumerate(zip(arrays, (0, 16 * 15 * 4), strict=True))
    ]
    for src, piece in zip(inputs, pieces, strict=True):
        b.step(ir.Eltwise("relu", 0.0, 0.0), src=b.reorder(src, layout), dst=piece)
    joined = b.view(dst, (1, 48, 5, 3), layout)
    b.step(ir.Concat(1), src=pieces, dst=joined)
    b.finish(joined)
    check(b.run(*arrays), np.maximum(np.concatenate(arrays, 1), 0))
    concat = library.describe(b.build()).steps[-2]
    assert concat.error == ""
    assert (concat.implementation == "") == (in_place == 2)


def test_concat_piece_in_the_wrong_place_is_an_error():
    b = Builder()
    dst = b.local((1, 32, 4, 4), BLOCKED)
    pieces = [b.view(dst, (1, 16, 4, 4), BLOCKED, 1024 - 1024 * i) for i in range(2)]
    b.step(ir.Concat(1), src=pieces, dst=dst)
    (step,) = library.describe(b.build()).steps
    assert "does not stand where dst wants it" in step.error


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("groups", [2, 3, 8])
def test_shuffle(groups, layout):
    x = random(2, 48, 5, 3)
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    dst = b.local(x.shape, layout)
    b.step(ir.Shuffle(1, groups), src=src, dst=dst)
    b.finish(dst)
    expected = x.reshape(2, groups, 48 // groups, 5, 3).swapaxes(1, 2).reshape(x.shape)
    check(b.run(x), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("algorithm", ["nearest", "linear"])
def test_resampling_to_twice_the_size(algorithm, layout):
    x = random(1, 17, 4, 5)
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    dst = b.local((1, 17, 8, 10), layout)
    b.step(ir.Resampling(algorithm), src=src, dst=dst)
    b.finish(dst)
    expected = x
    for axis in (2, 3):
        size = x.shape[axis]
        place = (np.arange(2 * size) + 0.5) / 2 - 0.5
        if algorithm == "nearest":
            expected = expected.take(np.floor(place + 0.5).astype(int), axis)
        else:
            low = np.floor(place).astype(int)
            weight = (place - low).reshape([-1 if i == axis else 1 for i in range(4)])
            left = expected.take(np.clip(low, 0, size - 1), axis)
            right = expected.take(np.clip(low + 1, 0, size - 1), axis)
            expected = left * (1 - weight) + right * weight
    check(b.run(x), expected.astype("float32"))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("value", [0.0, -1.5])
def test_pad(value, layout):
    """The tails of a blocked layout stay zero: the convolution behind the pad would show it."""
    x, w = random(1, 19, 5, 4), random(16, 19, 1, 1)
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    padded = b.local((1, 19, 8, 7), layout)
    b.step(ir.Pad((0, 0, 1, 2), value), src=src, dst=padded)
    dst = b.local((1, 16, 8, 7), layout)
    b.step(attrs, src=padded, weights=b.constant(w), dst=dst)
    b.finish(dst)
    expected = np.pad(x, [(0, 0), (0, 0), (1, 2), (2, 1)], constant_values=value)
    check(b.run(x), convolution(expected, w, attrs), 19)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_slice(layout):
    x = random(2, 35, 8, 7)
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    dst = b.local((2, 19, 5, 4), layout)
    b.step(ir.Slice((0, 16, 2, 3)), src=src, dst=dst)
    b.finish(dst)
    check(b.run(x), x[:, 16:, 2:7, 3:])


@pytest.mark.parametrize("layout", ["abcd", "acdb", "bacd", "dcba", "aBcd16b", "aBcd8b", "ABcd16b16a"])
def test_reorder_there_and_back(layout):
    x = random(3, 17, 5, 4)
    b = Builder()
    b.finish(b.reorder(b.reorder(b.input(x.shape), layout), "acdb"))
    check(b.run(x), x)


TAILS = {
    "exp": (ir.Eltwise("exp", 0.0, 0.0), {}),
    "linear": (ir.Eltwise("linear", 1.0, 3.0), {}),
    "division": (ir.Binary("div"), {"src1": np.abs(random(1, 19, 1, 1)) + 1}),
    "addition": (ir.Binary("add"), {"src1": random(1, 19, 1, 1)}),
    "batch normalization": (
        ir.BatchNormalization(1e-5, False),
        {role: np.ones(19, "float32") for role in ("mean", "variance", "scale", "shift")},
    ),
    "resampling": (ir.Resampling("linear"), {}),
    "lrn": (ir.LRN(5, 1.0, 0.75, 1.0), {}),
    "softmax": (ir.Softmax("softmax", 1), {}),
    "prelu": (ir.PReLU(), {"weights": random(1, 19, 1, 1)}),
    "pooling": (ir.Pooling("avg_include_padding", (3, 3), (1, 1), (1, 1), (1, 1)), {}),
    "reorder": (ir.Reorder(), {}),
    "pad": (ir.Pad((0, 0, 0, 0), 7.0), {}),
    "convolution": (
        ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1),
        {"weights": random(19, 19, 1, 1), "bias": random(19)},
    ),
}


@pytest.mark.parametrize("name", TAILS)
def test_tails_of_blocked_layouts_are_written_as_zero(name):
    attrs, constants = TAILS[name]
    blocks, tail = -(-19 // BLOCK), 19 % BLOCK
    x = np.zeros((1, blocks, 4, 4, BLOCK), "float32")
    x[:, :-1] = random(1, blocks - 1, 4, 4, BLOCK)
    x[:, -1, ..., :tail] = random(1, 4, 4, tail)
    b = Builder()
    src = b.input((1, 19, 4, 4), BLOCKED)
    ids = {role: b.constant(data) for role, data in constants.items()}
    b.step(attrs, src=src, **ids, dst=b.output((1, 19, 4, 4), BLOCKED))
    y = np.full_like(x, np.nan)
    call(b.module(), b.name, x, y)
    assert np.isfinite(y[:, :-1]).all()
    np.testing.assert_array_equal(y[:, -1, ..., tail:], 0)
