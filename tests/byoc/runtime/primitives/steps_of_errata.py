"""Steps that errata are about, the smallest that show each, by its name."""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np
from program_builder import Array, Builder, random
from single_steps import RELU

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.program import program as ir

BLOCKS = f"aBcd{OneDNN().block}b"


def deconvolution(channels: int, *, bias: bool, relu: bool, stride: int = 2, kernel: int = 4) -> Builder:
    b = Builder()
    extent = 3 * stride + kernel - 2
    src, dst = b.input((1, channels, 4, 4), "acdb"), b.output((1, 64, extent, extent), "acdb")
    weights = random(64, channels, kernel, kernel) / np.float32(prod((channels, kernel, kernel)) ** 0.5)
    operands = {"bias": b.constant(random(64))} if bias else {}
    attrs = ir.Deconvolution((stride, stride), (1, 1, 1, 1), (1, 1), 1)
    b.step(attrs, [RELU] if relu else [], src=src, weights=b.constant(weights), **operands, dst=dst)
    return b


def strided_deconvolution() -> Builder:
    return deconvolution(80, bias=True, relu=True)


def blocked_deconvolution(*, added: bool = False) -> Builder:
    """A data gradient in blocks, with a ReLU behind it, or a sum with another tensor."""
    b = Builder()
    src, dst = b.input((2, 32, 5, 6), BLOCKS), b.output((2, 48, 5, 6), BLOCKS)
    weights = b.constant(random(48, 32, 1, 1) / np.float32(32**0.5))
    post_ops: list[ir.PostOp] = [RELU]
    if added:
        post_ops = [ir.BinaryPostOp("add", b.input((2, 48, 5, 6), BLOCKS))]
    attrs = ir.Deconvolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    b.step(attrs, post_ops, src=src, weights=weights, dst=dst)
    return b


def three_outputs() -> Builder:
    b = Builder()
    src, dst = b.input((1, 16, 8, 8), "acdb"), b.output((1, 3, 8, 8), "acdb")
    weights = b.constant(random(3, 16, 3, 3) / np.float32(12))
    b.step(ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1), src=src, weights=weights, dst=dst)
    return b


def depthwise_with_a_sum() -> Builder:
    b = Builder()
    src, added = b.input((1, 5, 6, 7), "acdb"), b.input((1, 5, 6, 7), "acdb")
    held = b.view(b.output((1, 5, 6, 7), "acdb"), (1, 5, 6, 7), "acdb")
    b.step(ir.Reorder(), src=added, dst=held)
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 5)
    weights = b.constant(random(5, 1, 1, 3, 3))
    dst = b.view(held, (1, 5, 6, 7), "acdb")
    b.step(attrs, [ir.SumPostOp(1.0), RELU], src=src, weights=weights, dst=dst)
    return b


def depthwise_with_a_division() -> Builder:
    b = Builder()
    src, dst = b.input((1, 35, 6, 5), "aBcd8b"), b.output((1, 35, 6, 5), "aBcd8b")
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 35)
    post_ops = [ir.BinaryPostOp("div", b.constant(2 + np.abs(random(1, 35, 1, 1))))]
    b.step(attrs, post_ops, src=src, weights=b.constant(random(35, 1, 1, 3, 3)), dst=dst)
    return b


def resampling_with_a_binary() -> Builder:
    b = Builder()
    src, dst = b.input((1, 3, 2, 5), "acdb"), b.output((1, 3, 4, 7), "acdb")
    post_ops = [ir.BinaryPostOp("add", b.constant(random(1, 3, 1, 1)))]
    b.step(ir.Resampling("linear"), post_ops, src=src, dst=dst)
    return b


def log_softmax() -> Builder:
    b = Builder()
    b.step(ir.Softmax("log_softmax", 1), src=b.input((3, 7)), dst=b.output((3, 7)))
    return b


def conversion(
    types: tuple[str, str] = ("float32", "uint8"),
    shape: tuple[int, ...] = (2, 19, 8, 8),
    layouts: tuple[str, str] = ("abcd", "acdb"),
) -> Builder:
    b = Builder()
    ends = dict(zip(("src", "dst"), types, strict=True))
    src, dst = b.input(shape, layouts[0], types[0]), b.output(shape, layouts[1], types[1])
    operands = {}
    for role, dtype in ends.items():
        if dtype != "float32":
            operands[f"{role}_scale"] = b.constant(np.array([0.25], "float32"))
            operands[f"{role}_zero_point"] = b.constant(np.array([7], "int32"))
    b.step(ir.Quantization(0), src=src, dst=dst, **operands)
    return b


def scales(b: Builder) -> dict[str, int]:
    return {role: b.constant(np.array([2.0**-9], "float32")) for role in ("src_scale", "weights_scale")}


def small_bytes(*shape: int) -> Array:
    """Weights whose products do not saturate in pairs."""
    return np.random.default_rng(1).integers(-64, 64, shape).astype("int8")


def convolution_of_bytes() -> Builder:
    b = Builder()
    src, dst = b.input((1, 35, 9, 11), "acdb", "uint8"), b.output((1, 17, 9, 11), "acdb")
    weights = np.random.default_rng(1).integers(-128, 128, (17, 35, 3, 3)).astype("int8")
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
    b.step(attrs, src=src, weights=b.constant(weights), **scales(b), dst=dst)
    return b


def deconvolution_of_bytes(stride: int = 4, kernel: int = 2, behind: int = 0) -> Builder:
    b = Builder()
    extent = 5 * stride + kernel + behind
    src, dst = b.input((1, 32, 6, 6), "acdb", "int8"), b.output((1, 32, extent, extent), "acdb")
    weights = b.constant(
        np.random.default_rng(1).integers(-128, 128, (32, 32, kernel, kernel)).astype("int8")
    )
    attrs = ir.Deconvolution((stride, stride), (0, 0, 0, 0), (1, 1), 1)
    b.step(attrs, src=src, weights=weights, bias=b.constant(random(32)), **scales(b), dst=dst)
    return b


def deconvolution_with_rows_behind() -> Builder:
    """The last row and the last column are reached by no window."""
    b = Builder()
    src, dst = b.input((1, 32, 6, 6), "acdb", "uint8"), b.output((1, 16, 19, 19), "acdb")
    weights = b.constant(small_bytes(16, 32, 4, 4))
    point = b.constant(np.array([3], "int32"))
    b.step(
        ir.Deconvolution((3, 3), (1, 1, 1, 1), (1, 1), 1),
        src=src,
        weights=weights,
        **scales(b),
        src_zero_point=point,
        dst=dst,
    )
    return b


def depthwise_of_bytes_with_a_binary() -> Builder:
    b = Builder()
    src, dst = b.input((1, 35, 9, 11), "acdb", "uint8"), b.output((1, 35, 9, 11), "acdb")
    weights = b.constant(small_bytes(35, 1, 1, 3, 3))
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 35)
    post_ops = [ir.BinaryPostOp("add", b.constant(random(1, 35, 1, 1)))]
    b.step(attrs, post_ops, src=src, weights=weights, **scales(b), dst=dst)
    return b


def pixel_of_bytes_with_a_zero_point() -> Builder:
    b = Builder()
    src, dst = b.input((1, 192, 1, 1), "acdb", "int8"), b.output((1, 17, 1, 1), "acdb")
    weights = b.constant(small_bytes(17, 192, 1, 1))
    point = b.constant(np.array([5], "int32"))
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    b.step(attrs, src=src, weights=weights, **scales(b), src_zero_point=point, dst=dst)
    return b


def product_of_bytes() -> Builder:
    b = Builder()
    src, dst = b.input((40, 64), "ab", "uint8"), b.output((40, 48), "ab")
    weights = b.constant(np.random.default_rng(1).integers(-128, 128, (64, 48)).astype("int8"))
    b.step(ir.MatMul(), src=src, weights=weights, **scales(b), dst=dst)
    return b


def division_in_bfloat16() -> Builder:
    b = Builder()
    src, dst = b.input((2, 1, 14, 14), "abcd", "bfloat16"), b.output((2, 24, 12, 12), "aBcd16b", "bfloat16")
    divisor = b.input((2, 24, 12, 12), "aBcd16b", "bfloat16")
    weights = b.constant(random(24, 1, 3, 3).astype(ml_dtypes.bfloat16))
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    b.step(attrs, [ir.BinaryPostOp("div", divisor)], src=src, weights=weights, dst=dst)
    return b


def odd_channels_in_bfloat16() -> Builder:
    b = Builder()
    src, dst = b.input((1, 515, 3, 4), "acdb", "bfloat16"), b.output((1, 17, 3, 4), "acdb")
    weights = random(17, 515, 7, 7) / np.float32(prod((515, 7, 7)) ** 0.5)
    attrs = ir.Convolution((1, 1), (3, 3, 3, 3), (1, 1), 1)
    b.step(attrs, src=src, weights=b.constant(weights.astype(ml_dtypes.bfloat16)), dst=dst)
    return b


ERRATA = {
    "deconvolution-epilogue": strided_deconvolution,
    "deconvolution-wrapped-epilogue": blocked_deconvolution,
    "few-outputs-lanes": three_outputs,
    "depthwise-sum-tail": depthwise_with_a_sum,
    "depthwise-division-padding": depthwise_with_a_division,
    "resampling-binary": resampling_with_a_binary,
    "log-softmax-sse41": log_softmax,
    "conversion-zero-point": conversion,
    "bfloat16-division-padding": division_in_bfloat16,
    "bfloat16-odd-channels": odd_channels_in_bfloat16,
    "deconvolution-gaps": deconvolution_of_bytes,
    "deconvolution-gaps-vectors": deconvolution_with_rows_behind,
    "depthwise-bytes-binary": depthwise_of_bytes_with_a_binary,
    "gemm-zero-point": pixel_of_bytes_with_a_zero_point,
    "byte-pairs-avx512": convolution_of_bytes,
    "byte-pairs-avx2": convolution_of_bytes,
    "byte-pairs-sse41": convolution_of_bytes,
    "byte-pairs-gemm": product_of_bytes,
    "byte-pairs-gemm-inside": deconvolution_of_bytes,
}
