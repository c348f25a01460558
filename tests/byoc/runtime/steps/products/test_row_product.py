"""Inner products of one sample by the runtime's own kernel, against float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Builder, call, check, random
from scipy.special import ndtr

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir

RELU, MISH = ir.EltwisePostOp("relu", 0.0, 0.0), ir.EltwisePostOp("mish", 0.0, 0.0)
KERNEL = "row_product"


def run(
    sample: tuple[int, ...], columns: int, layout: str = "", bias: bool = True, *post_ops: ir.PostOp
) -> str:
    """The implementation of an inner product that was held against numpy."""
    x, w = random(*sample), random(columns, *sample[1:]) / np.float32(np.prod(sample[1:]) ** 0.5)
    shift = random(columns, seed=1)
    b = Builder()
    src = b.input(sample) if not layout else b.reorder(b.input(sample), layout)
    dst = b.output((sample[0], columns))
    operands = {"bias": b.constant(shift)} if bias else {}
    b.step(ir.InnerProduct(), post_ops, src=src, weights=b.constant(w), dst=dst, **operands)
    y = x.reshape(len(x), -1).astype("float64") @ w.reshape(columns, -1).T.astype("float64")
    expected = y + shift if bias else y
    for post_op in post_ops:
        assert isinstance(post_op, ir.EltwisePostOp)
        expected = np.maximum(expected, 0) if post_op.algorithm == "relu" else np.tanh(expected)
    check(b.run(x), expected.astype("float32"), w[0].size)
    return library.describe(b.build()).steps[-1].implementation


@pytest.mark.parametrize("depth, columns", [(1, 1), (3, 7), (33, 5), (100, 67), (1024, 1000), (4097, 258)])
@pytest.mark.parametrize("bias", [False, True])
def test_shapes(depth: int, columns: int, bias: bool, threads: int) -> None:
    assert run((1, depth), columns, "", bias, RELU) == KERNEL
    assert run((1, depth), columns, "", bias) == KERNEL


@pytest.mark.parametrize("depth, columns", [(1, 1), (33, 5), (1024, 1000)])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_matrix_products_of_one_row(depth: int, columns: int, transposed: bool, bias: bool) -> None:
    """Weights that stand transposed are read as they are, others are packed so."""
    x, shift = random(1, depth), random(1, columns, seed=1)
    w = random(depth, columns) / np.float32(depth**0.5)
    b = Builder()
    constant = b.constant(np.ascontiguousarray(w.T) if transposed else w)
    weights = b.view(constant, (depth, columns), "ba") if transposed else constant
    operands = {"bias": b.constant(shift)} if bias else {}
    src, dst = b.input((1, depth)), b.output((1, columns))
    b.step(ir.MatMul(), (RELU,), src=src, weights=weights, dst=dst, **operands)
    expected = np.maximum(x.astype("float64") @ w + (shift if bias else 0), 0)
    check(b.run(x), expected.astype("float32"), depth)
    assert library.describe(b.build()).steps[-1].implementation == KERNEL


@pytest.mark.parametrize("layout", ["abcd", "acdb", "aBcd16b"])
def test_filters_follow_the_order_of_the_sample(layout: str) -> None:
    assert run((1, 32, 6, 5), 35, layout, True, RELU) == KERNEL


def test_what_it_does_not_take_goes_to_onednn() -> None:
    assert run((2, 64), 35) != KERNEL
    b = Builder()
    src, dst = b.input((1, 64)), b.output((1, 35))
    b.step(ir.InnerProduct(), [MISH], src=src, weights=b.constant(random(35, 64)), dst=dst)
    assert library.describe(b.build()).steps[-1].implementation != KERNEL


@pytest.mark.parametrize("columns", [1, 5, 16, 35, 67, 770])
@pytest.mark.parametrize("operand", ["constant", "input"])
@pytest.mark.parametrize("algorithm", ["add", "mul", "sub", "min", "max"])
def test_operands_beside_the_product(algorithm: str, operand: str, columns: int, threads: int) -> None:
    x, w, other = random(1, 48), random(columns, 48), random(1, columns, seed=2)
    b = Builder()
    src, dst = b.input((1, 48)), b.output((1, columns))
    there = b.constant(other) if operand == "constant" else b.input((1, columns))
    post_ops = [ir.EltwisePostOp("tanh", 0.0, 0.0), ir.BinaryPostOp(algorithm, there)]
    b.step(ir.InnerProduct(), post_ops, src=src, weights=b.constant(w), dst=dst)
    assert library.describe(b.build()).steps[-1].implementation == KERNEL
    inputs = [x] if operand == "constant" else [x, other]
    functions = {"add": np.add, "mul": np.multiply, "sub": np.subtract, "min": np.minimum, "max": np.maximum}
    expected = functions[algorithm](np.tanh(x.astype("float64") @ w.T), other)
    check(b.run(*inputs), expected.astype("float32"), 48)


@pytest.mark.parametrize("columns", [1, 15, 35, 770])
def test_a_sum_with_what_is_there(columns: int, threads: int) -> None:
    x, w, before = random(1, 96), random(columns, 96), random(1, columns, seed=2)
    b = Builder()
    src, kept, out = b.input((1, 96)), b.local((1, columns)), b.output((1, columns))
    b.step(ir.Reorder(), src=b.input((1, columns)), dst=kept)
    there = b.view(kept, (1, columns), "ab")
    post_ops = [ir.EltwisePostOp("gelu_tanh", 0.0, 0.0), ir.SumPostOp(0.5)]
    b.step(ir.InnerProduct(), post_ops, src=src, weights=b.constant(w), dst=there)
    b.step(ir.Reorder(), src=there, dst=out)
    assert library.describe(b.build()).steps[1].implementation == KERNEL
    y = x.astype("float64") @ w.T
    gelu = 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y**3)))
    check(b.run(x, before), (gelu + 0.5 * before).astype("float32"), 96)


SHORT, WIDE = "bfloat16", "float32"


@pytest.mark.parametrize("depth, columns", [(1, 1), (3, 7), (33, 5), (128, 16), (129, 67), (768, 770)])
@pytest.mark.parametrize("types", list(itertools.product((SHORT, WIDE), repeat=3)), ids="-".join)
def test_types(types: tuple[str, str, str], depth: int, columns: int, threads: int) -> None:
    """Sums are in float32; the result is rounded once, behind its post-ops."""
    src, weights, dst = map(numpy_type, types)
    x = random(1, depth).astype(src)
    w = (random(columns, depth, seed=1) / np.float32(depth**0.5)).astype(weights)
    shift, other = random(columns, seed=2), random(1, columns, seed=3)
    b = Builder()
    post_ops = [ir.EltwisePostOp("tanh", 0.0, 0.0), ir.BinaryPostOp("add", b.constant(other))]
    given = {"src": b.input((1, depth), "", types[0]), "bias": b.constant(shift)}
    b.step(
        ir.InnerProduct(),
        post_ops,
        **given,
        weights=b.constant(w),
        dst=b.output((1, columns), "", types[2]),
    )
    assert library.describe(b.build()).steps[-1].implementation == KERNEL
    found = b.run_stored(x, shape=(1, columns)).astype("float64")
    expected = np.tanh(x.astype("float64") @ w.astype("float64").T + shift) + other
    rounding = 2.0**-8 if dst != np.float32 else 0.0
    assert np.all(np.abs(found - expected) <= rounding * np.abs(expected) + 2e-6)


@pytest.mark.parametrize("function", ["gelu_erf", "gelu_tanh"])
def test_gelu_at_every_size(function: str) -> None:
    """Products with 1 leave numbers as they are; relative errors, down to where numbers end."""
    ends = [1e-30, -1e-30, 1e4, -1e4, 3e38, -3e38, np.inf, np.nan]
    x = np.concatenate([np.linspace(-13, 13, 1301), ends]).astype("float32")
    w = np.ascontiguousarray(x.reshape(-1, 1))
    b = Builder()
    dst = b.output((1, len(x)))
    b.step(
        ir.InnerProduct(),
        [ir.EltwisePostOp(function, 0.0, 0.0)],
        src=b.input((1, 1)),
        weights=b.constant(w),
        dst=dst,
    )
    assert library.describe(b.build()).steps[-1].implementation == KERNEL
    found = np.zeros((1, len(x)), "float32")
    call(b.module(), "region", np.ones((1, 1), "float32"), found)
    y = x.astype("float64")
    inner = 0.7978845608028654 * (y + 0.044715 * y**3)
    tails = {"gelu_erf": ndtr(y), "gelu_tanh": 1 / (1 + np.exp(-np.clip(2 * inner, -700, 700)))}
    expected = y * tails[function]
    assert np.array_equal(found[0][-2:], [np.inf, np.nan], equal_nan=True)
    apart = np.abs(found[0][:-2] - expected[:-2])
    assert np.all(apart <= 2e-5 * np.abs(expected[:-2]) + 1e-37)
    if function == "gelu_erf":
        assert np.all(found[0][y < -14] == 0), "nothing is left that later products would be slow by"


FUNCTIONS = {
    "tanh": (0.0, 0.0, np.tanh),
    "logistic": (0.0, 0.0, lambda x: 1 / (1 + np.exp(-x))),
    "swish": (1.0, 0.0, lambda x: x / (1 + np.exp(-x))),
    "hardsigmoid": (1 / 6, 0.5, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hardswish": (1 / 6, 0.5, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "clip": (-0.5, 0.75, lambda x: np.clip(x, -0.5, 0.75)),
    "elu": (1.0, 0.0, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
}
"""Parameters and the function in float64."""


POINTWISE = ir.Convolution(strides=(1, 1), dilation=(1, 1), padding=(0,) * 4, groups=1)


def pixel(channels: int, outputs: int, function: str = "", *, layout: str = "", samples: int = 1) -> str:
    """The implementation of a convolution of one pixel that was held against numpy."""
    x, w = random(samples, channels, 1, 1), random(outputs, channels, 1, 1) / np.float32(channels**0.5)
    shift = random(outputs, seed=1)
    alpha, beta, apply = FUNCTIONS.get(function, (0.0, 0.0, lambda y: y))
    b = Builder()
    src = b.input(x.shape) if not layout else b.reorder(b.input(x.shape), layout)
    dst = b.output((samples, outputs, 1, 1))
    post_ops = [ir.EltwisePostOp(function, alpha, beta)] if function else []
    b.step(POINTWISE, post_ops, src=src, weights=b.constant(w), bias=b.constant(shift), dst=dst)
    y = x.astype("float64").reshape(samples, channels) @ w.reshape(outputs, channels).T + shift
    check(b.run(x), apply(y).astype("float32").reshape(samples, outputs, 1, 1), channels)
    return library.describe(b.build()).steps[-1].implementation


@pytest.mark.parametrize("channels, outputs", [(1, 1), (3, 67), (64, 16), (240, 63)])
@pytest.mark.parametrize("function", ["", *FUNCTIONS])
def test_convolutions_of_one_pixel(channels: int, outputs: int, function: str, threads: int) -> None:
    assert pixel(channels, outputs, function) == KERNEL


@pytest.mark.parametrize("layout", ["abcd", "acdb", "aBcd16b"])
def test_pixels_in_any_layout(layout: str) -> None:
    assert pixel(35, 21, "swish", layout=layout) == KERNEL


def test_convolutions_of_more_are_left_to_onednn() -> None:
    assert pixel(16, 16, samples=2) != KERNEL


def test_a_pixel_beside_the_image_is_no_pixel_of_it() -> None:
    """A window that begins in the padding, and a stride that ends it there, see nothing but zeros."""
    b = Builder()
    dst, bias = b.output((1, 8, 1, 1)), random(8, seed=1)
    attrs = ir.Convolution(strides=(3, 3), dilation=(1, 1), padding=(1,) * 4, groups=1)
    operands = {"weights": b.constant(random(8, 4, 1, 1)), "bias": b.constant(bias)}
    b.step(attrs, src=b.input((1, 4, 1, 1)), dst=dst, **operands)
    check(b.run(random(1, 4, 1, 1)), bias.reshape(1, 8, 1, 1))
    assert library.describe(b.build()).steps[-1].implementation != KERNEL


def test_a_refused_row_product_leaves_the_pixel_to_onednn() -> None:
    b = Builder()
    src, dst = b.input((1, 24, 1, 1)), b.output((1, 40, 1, 1))
    b.step(POINTWISE, src=src, weights=b.constant(random(40, 24, 1, 1)), dst=dst)
    (info,) = library.describe(b.build()).steps
    assert info.implementation == KERNEL
    library.refuse(info.descriptor, KERNEL, "wrong rows")
    try:
        (other,) = library.describe(b.build()).steps
    finally:
        library.forget_refusals()
    assert other.error == "" and other.implementation != KERNEL


def test_a_nan_of_the_sample_reaches_every_result() -> None:
    b = Builder()
    dst = b.output((1, 6))
    b.step(ir.InnerProduct(), [RELU], src=b.input((1, 40)), weights=b.constant(random(6, 40)), dst=dst)
    x, y = random(1, 40), np.zeros((1, 6), "float32")
    x[0, 39] = np.nan
    call(b.module(), "region", x, y)
    assert np.isnan(y).all()


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["AVX2", "SSE41"])
def test_other_instruction_sets(isa: str) -> None:
    run_again(__file__, isa, "shapes or order or pixel")
