"""Folding on plain programs: what goes into weights, padding and operands, and what must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_programs import Small, chain, fused, kinds

from tvm_mxplan.byoc.onednn.rewrites.fusion import fuse
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.dims import Symbol

IMAGE = (2, 5, 6, 6)
OUT = (2, 7, 6, 6)
VECTOR = (1, 7, 1, 1)


def test_scale_and_shift_become_weights_and_bias():
    b = Small(OUT, IMAGE)
    y = b.binary(b.conv(b.inputs[0], 7), b.numbers(*VECTOR), "mul")
    after = fused(b, b.binary(y, b.numbers(*VECTOR), "add"))
    assert kinds(after) == ["convolution"]
    assert {operand.role for operand in after.steps[0].operands} == {"src", "weights", "bias", "dst"}
    assert after.steps[0].post_ops == ()


@pytest.mark.parametrize("algorithm", ["mul", "add", "sub", "div"])
def test_each_operation_alone(algorithm):
    b = Small(OUT, IMAGE)
    after = fused(b, b.binary(b.conv(b.inputs[0], 7), b.numbers(*VECTOR), algorithm))
    assert kinds(after) == ["convolution"]
    assert after.steps[0].post_ops == ()


def test_a_long_chain_of_scales_and_shifts():
    b = Small(OUT, IMAGE)
    y = b.conv(b.inputs[0], 7)
    for algorithm in ("add", "mul", "sub", "div", "mul", "add"):
        y = b.binary(y, b.numbers(*VECTOR), algorithm)
    y = b.eltwise(b.eltwise(y, "linear", 2.0, 0.0), "linear", 1.0, -0.5)
    after = fused(b, y)
    assert kinds(after) == ["convolution"]
    assert after.steps[0].post_ops == ()


@pytest.mark.parametrize("groups", [1, 2])
def test_deconvolution_whose_weights_are_a_permuted_view(groups):
    b = Small((1, 6, 4, 4), (1, 4, 4, 4))
    weights = b.numbers(4, 6 // groups, 1, 1)
    if groups > 1:
        weights = b.permute(b.reshape(weights, (2, 2, 3, 1, 1)), (0, 2, 1, 3, 4))
    else:
        weights = b.permute(weights, (1, 0, 2, 3))
    attrs = ir.Deconvolution((1, 1), (0, 0, 0, 0), (1, 1), groups)
    y = b.step("deconvolution", attrs, (1, 6, 4, 4), [("src", b.inputs[0]), ("weights", weights)])
    after = fused(b, b.binary(y, b.numbers(1, 6, 1, 1), "mul"))
    assert kinds(after) == ["deconvolution"]
    assert after.steps[0].post_ops == ()


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_matmul_takes_a_bias_along_its_last_axis(rank):
    leading = (2, 3, 5)[-(rank - 1) :]
    b = Small((*leading, 7), (*leading, 4))
    after = fused(b, b.binary(b.matmul(b.inputs[0], 7), b.numbers(*(1,) * (rank - 1), 7), "add"))
    assert [operand.role for operand in after.steps[0].operands].count("bias") == 1
    assert after.steps[0].post_ops == ()


def test_a_number_in_front_goes_into_the_weights():
    b = Small((3, 7), (3, 4))
    after = fused(b, b.matmul(b.eltwise(b.inputs[0], "linear", 0.25), 7))
    assert kinds(after) == ["matmul"]


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.5), (2.0, 0.5)])
def test_a_shift_in_front_stays(alpha, beta):
    b = Small((3, 7), (3, 4))
    after = fused(b, b.matmul(b.eltwise(b.inputs[0], "linear", alpha, beta), 7))
    assert kinds(after) == ["eltwise", "matmul"]


def test_layer_norm_takes_scale_and_shift():
    b = Small((6, 5), (6, 5))
    y = b.step("layer_norm", ir.LayerNormalization(1e-5), (6, 5), [("src", b.inputs[0])])
    y = b.binary(b.binary(y, b.numbers(1, 5), "mul"), b.numbers(1, 5), "add")
    after = fused(b, y)
    assert kinds(after) == ["layer_normalization"]
    assert [operand.role for operand in after.steps[0].operands] == ["src", "scale", "shift", "dst"]


def test_layer_norm_takes_no_scale_after_a_shift():
    b = Small((6, 5), (6, 5))
    y = b.step("layer_norm", ir.LayerNormalization(1e-5), (6, 5), [("src", b.inputs[0])])
    after = fused(b, b.binary(b.binary(y, b.numbers(1, 5), "add"), b.numbers(1, 5), "mul"))
    assert kinds(after) == ["layer_normalization", "binary"]


def test_affine_chain_is_one_scale_and_one_shift():
    b = Small(IMAGE, IMAGE)
    y = b.inputs[0]
    for algorithm in ("mul", "add", "mul", "add"):
        y = b.binary(y, b.numbers(1, 5, 1, 1), algorithm)
    after = fused(b, y)
    assert kinds(after) == ["binary"]
    assert chain(after.steps[0]) == ["add"]


def test_pad_becomes_padding():
    b = Small((2, 7, 8, 6), IMAGE)
    padded = b.pad(b.inputs[0], (0, 0, 1, 0), (0, 0, 3, 2))
    after = fused(b, b.conv(padded, 7, kernel=3))
    assert kinds(after) == ["convolution"]
    assert after.steps[0].attrs.padding == (1, 0, 3, 2)


def test_pad_becomes_padding_where_the_batch_has_a_name():
    """Only the extents of the image have to be numbers."""
    n = Symbol("n")
    b = ProgramBuilder("p")
    x, out = b.port("input", "x", (n, 5, 6, 6), "float32"), b.port("output", "y", (n, 7, 6, 8), "float32")
    padded = b.step("pad", ir.Pad((0, 0, 1, 2), 0.0), (n, 5, 8, 10), [("src", x)])
    weights = b.constant(np.ones((7, 5, 3, 3), "float32"))
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    y = b.step("convolution", attrs, (n, 7, 6, 8), [("src", padded), ("weights", weights)])
    b.write_output(y, out)
    (step,) = fuse(b.finish(), list(b.constants)).program.steps
    assert step.attrs.padding == (1, 2, 1, 2)


@pytest.mark.parametrize(
    ("begin", "end", "value"),
    [((0, 0, 1, 1), (0, 0, 1, 1), 0.5), ((0, 1, 0, 0), (0, 0, 0, 0), 0.0), ((1, 0, 0, 0), (0, 0, 0, 0), 0.0)],
)
def test_other_pads_stay(begin, end, value):
    batch, _, *size = (b + n + e for b, n, e in zip(begin, IMAGE, end, strict=True))
    b = Small((batch, 7, *size), IMAGE)
    after = fused(b, b.conv(b.pad(b.inputs[0], begin, end, value), 7))
    assert kinds(after) == ["pad", "convolution"]


def test_division_by_zero_stays():
    b = Small(OUT, IMAGE)
    zeros = b.constant(np.array([1, 2, 0, 1, 1, 1, 1], "float32").reshape(VECTOR))
    y = b.eltwise(b.binary(b.conv(b.inputs[0], 7), zeros, "div"), "clip_v2", -9.0, 9.0)
    after = fused(b, y)
    assert chain(after.steps[0]) == ["div", "clip_v2"]


@pytest.mark.parametrize("shape", [(2, 7, 6, 6), (1, 1, 6, 6), (2, 7, 1, 1)])
def test_other_shapes_are_no_weights(shape):
    b = Small(OUT, IMAGE)
    after = fused(b, b.binary(b.conv(b.inputs[0], 7), b.numbers(*shape), "mul"))
    assert after.steps[0].post_ops or len(after.steps) == 2


def test_a_scale_that_is_an_input_is_no_weight():
    b = Small(OUT, IMAGE, VECTOR)
    after = fused(b, b.binary(b.conv(b.inputs[0], 7), b.inputs[1], "mul"))
    assert chain(after.steps[0]) == ["mul"]


@pytest.mark.parametrize("algorithm", ["mul", "add"])
@pytest.mark.parametrize("root", ["convolution", "layer_norm"])
def test_a_function_behind_a_number_stays_behind_it(root, algorithm):
    """A scale or shift that has something fused behind it already goes into no weights."""
    shape = OUT if root == "convolution" else (6, 5)
    b = Small(shape, IMAGE if root == "convolution" else shape)
    if root == "convolution":
        y = b.conv(b.inputs[0], 7)
    else:
        y = b.step(root, ir.LayerNormalization(1e-5), shape, [("src", b.inputs[0])])
    y = b.binary(y, b.numbers(*(VECTOR if root == "convolution" else (1, 5))), algorithm)
    b.steps[-1] = replace(b.steps[-1], post_ops=(ir.EltwisePostOp("relu", 0.0, 0.0),))
    assert [chain(step) for step in fused(b, y).steps] == [[], ["relu"]]


def test_weights_that_are_an_input_are_not_scaled():
    b = Small(OUT, IMAGE, (7, 5, 1, 1))
    y = b.conv(b.inputs[0], 7)
    operands = [
        o if o.role != "weights" else ir.Operand("weights", b.inputs[1]) for o in b.steps[-1].operands
    ]
    b.steps[-1] = ir.Step(b.steps[-1].name, b.steps[-1].attrs, tuple(operands))
    (first, *_) = fused(b, b.binary(y, b.numbers(*VECTOR), "mul")).steps
    assert first.operand("weights") == 1 and first.post_ops == (
        ir.BinaryPostOp("mul", first.post_ops[0].value),
    )


@pytest.mark.parametrize("algorithm", ["mul", "add"])
def test_a_bias_that_is_an_input_stays_and_counts(algorithm):
    b = Small(OUT, IMAGE, (7,))
    y = b.conv(b.inputs[0], 7)
    step = b.steps[-1]
    b.steps[-1] = ir.Step(step.name, step.attrs, (*step.operands, ir.Operand("bias", b.inputs[1])))
    (first, *_) = fused(b, b.binary(y, b.numbers(*VECTOR), algorithm)).steps
    assert first.operand("bias") == 1


def test_weights_of_two_convolutions_are_scaled_for_one():
    b = Small(OUT, IMAGE)
    weights = b.numbers(7, 5, 1, 1)
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    first, second = (
        b.step("convolution", attrs, OUT, [("src", b.inputs[0]), ("weights", weights)]) for _ in range(2)
    )
    after = fused(b, b.binary(b.binary(first, b.numbers(*VECTOR), "mul"), second))
    assert kinds(after) == ["convolution", "convolution"]
    assert len(after.of_kind("constant")) == 2


def test_unused_constants_are_dropped():
    b = Small(OUT, IMAGE)
    after = fused(b, b.binary(b.conv(b.inputs[0], 7), b.numbers(*VECTOR), "mul"))
    assert len(after.of_kind("constant")) == 1


@pytest.mark.parametrize("shape", [(5,), (3, 5)])
def test_low_ranks(shape):
    b = Small(shape, shape)
    y = b.binary(b.inputs[0], b.numbers(*shape), "mul")
    after = fused(b, b.binary(y, b.numbers(*shape), "add"))
    assert kinds(after) == ["binary"]


# --- digits -------------------------------------------------------------------------------------------------


def _vector(b: Small, number: float) -> int:
    return b.constant(np.full((1, 5, 1, 1), number, "float32"))


def test_what_cancels_is_not_merged():
    """(x - 1e6) / 3 + 0.5 for x near 1e6."""
    b = Small(IMAGE, IMAGE)
    y = b.binary(b.inputs[0], _vector(b, 1e6), "sub")
    y = b.binary(b.binary(y, _vector(b, 3.0), "div"), _vector(b, 0.5), "add")
    after = fused(b, y)
    assert kinds(after) == ["binary"]
    assert after.steps[0].attrs.algorithm == "sub"
    assert chain(after.steps[0]) == ["div", "add"]


def test_what_follows_a_difference_is_merged():
    b = Small(IMAGE, IMAGE)
    y = b.binary(b.inputs[0], _vector(b, 1e6), "sub")
    for algorithm, number in (("mul", 3.0), ("add", 0.5), ("mul", 2.0), ("add", 0.25)):
        y = b.binary(y, _vector(b, number), algorithm)
    after = fused(b, y)
    assert chain(after.steps[0]) == ["mul", "add"]
    assert after.steps[0].attrs.algorithm == "add"


@pytest.mark.parametrize("number", [1e-39, np.inf, np.nan])
def test_weights_that_float32_does_not_hold_are_not_made(number):
    b = Small(OUT, IMAGE)
    vector = b.constant(np.full(VECTOR, number, "float32"))
    y = b.binary(b.conv(b.inputs[0], 7), vector, "mul" if number < 1 else "add")
    b.write_output(y, b.output)
    after, *_ = fuse(b.finish(), list(b.constants))
    assert len(after.steps[0].post_ops) == 1
    assert "bias" not in {operand.role for operand in after.steps[0].operands}


def test_a_shift_that_cancels_goes_behind_a_convolution():
    """Its sums have errors of the shift's size already."""
    b = Small(OUT, IMAGE)
    y = b.binary(b.conv(b.inputs[0], 7), b.constant(np.full(VECTOR, 1e3, "float32")), "sub")
    after = fused(b, b.binary(b.binary(y, b.numbers(*VECTOR), "mul"), b.numbers(*VECTOR), "add"))
    assert kinds(after) == ["convolution"]
    assert after.steps[0].post_ops == ()


def _average(begin: int, end: int, kernel: int = 3, stride: int = 1, algorithm: str = "avg_include_padding"):
    """The program of an average over an image of 6 x 6 behind a pad of its columns, then of its rows."""
    found = []
    for axis in (3, 2):
        low, high = [0, 0, 0, 0], [0, 0, 0, 0]
        low[axis], high[axis] = begin, end
        size = [6, 6]
        size[axis - 2] = (6 + begin + end - kernel) // stride + 1
        window, strides = [1, 1], [1, 1]
        window[axis - 2], strides[axis - 2] = kernel, stride
        b = Small((2, 5, *size), IMAGE)
        attrs = ir.Pooling(algorithm, tuple(window), tuple(strides), (0, 0), (1, 1))
        padded = b.pad(b.inputs[0], tuple(low), tuple(high))
        after = fused(b, b.step("pooling", attrs, (2, 5, *size), [("src", padded)]))
        found.append(kinds(after))
        if found[-1] == ["pooling"]:
            assert after.steps[0].attrs.padding == tuple(low[2:])
    return found


@pytest.mark.parametrize(
    ("begin", "end", "kernel", "stride", "merged"),
    [
        (1, 1, 3, 1, True),
        (2, 2, 3, 1, True),
        (0, 2, 3, 1, True),
        (3, 0, 3, 1, False),
        (0, 3, 3, 1, False),
        (1, 3, 3, 1, False),
        (0, 4, 4, 3, False),
        (1, 4, 4, 3, True),
        (0, 2, 2, 3, False),
        (1, 3, 4, 3, True),
        (2, 2, 4, 2, True),
    ],
)
def test_zeros_in_front_of_an_average_become_padding_where_each_window_meets_the_image(
    begin, end, kernel, stride, merged
):
    starts = range(0, 6 + begin + end - kernel + 1, stride)
    assert merged == (begin < kernel and all(start < begin + 6 for start in starts))
    assert _average(begin, end, kernel, stride) == [["pooling"] if merged else ["pad", "pooling"]] * 2


@pytest.mark.parametrize("algorithm", ["max", "avg_exclude_padding"])
def test_zeros_count_for_averages_that_count_them_alone(algorithm):
    assert _average(1, 1, algorithm=algorithm) == [["pad", "pooling"]] * 2


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("kind", ["convolution", "deconvolution"])
@pytest.mark.parametrize("place", ["behind", "in front"])
@pytest.mark.parametrize("tiny", ["one number", "an output"])
def test_what_counts_of_weights_is_the_largest_of_each_output(kind, groups, place, tiny):
    """A number that float32 no longer holds may stand beside larger ones of the same output."""
    b = Small((1, 6, 4, 4), (1, 4, 4, 4))
    array = b.random.uniform(0.5, 1.5, (6, 4 // groups, 1, 1)).astype("float32")
    array[(1, 0) if tiny == "one number" else 1] = 1e-30
    stored = array.reshape(groups, 6 // groups, *array.shape[1:]) if groups > 1 else array
    attrs = (ir.Convolution if kind == "convolution" else ir.Deconvolution)(
        (1, 1), (0, 0, 0, 0), (1, 1), groups
    )
    src = b.inputs[0]
    if place == "in front":
        src = b.eltwise(src, "linear", 1e-9)
    y = b.step(kind, attrs, (1, 6, 4, 4), [("src", src), ("weights", b.constant(stored))])
    if place == "behind":
        y = b.eltwise(y, "linear", 1e-9)
    after = fused(b, y)
    folded = len(after.steps) == 1 and after.steps[0].post_ops == ()
    assert folded == (tiny == "one number")
