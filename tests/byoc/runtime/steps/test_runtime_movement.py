"""Steps that move data in the runtime against numpy, in the layouts that matter."""

from __future__ import annotations

import numpy as np
import pytest
from blocks import BLOCK, BLOCKED, LAYOUTS
from program_builder import (
    Builder,
    call,
    check,
    convolution,
    random,
)

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir


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
