"""Winograd's convolutions of images in bfloat16: transforms and products are those of float32, to the bit."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from program_builder import Array, Builder, convolution, grouped, output_shape, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.layout.layout_arrays import pack, unpack
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.testing.reference import relative_l2

MISSING = OneDNN().lacks("bfloat16")
"""The reason that nothing runs in bfloat16, '' if something does."""
SHORT = np.dtype(ml_dtypes.bfloat16)
RELU = ir.EltwisePostOp("relu", 0.0, 0.0)
ALGORITHMS = ("winograd_f2", "winograd_f4")
SHAPES = [
    # source, outputs, padding, groups
    ((1, 3, 5, 5), 17, (0, 0, 0, 0), 1),
    ((3, 17, 7, 10), 67, (1, 1, 1, 1), 1),
    ((2, 67, 13, 9), 3, (1, 0, 2, 1), 1),
    ((1, 5, 1, 1), 7, (1, 1, 1, 1), 1),
    ((2, 64, 30, 29), 64, (1, 1, 1, 1), 1),
    ((1, 200, 19, 21), 190, (1, 1, 1, 1), 1),
    ((2, 64, 9, 9), 96, (1, 1, 1, 1), 4),
]
needs_bfloat16 = pytest.mark.skipif(bool(MISSING), reason=MISSING)


class Case:
    """One convolution with bias, a tensor that is added and a relu; numbers are such as bfloat16 holds."""

    def __init__(
        self, algorithm: str, src: tuple[int, ...], outputs: int, padding: tuple[int, ...], groups: int = 1,
        layout: str = "acdb", size: int = 3,
    ) -> None:  # fmt: skip
        self.attrs = ir.Convolution((1, 1), padding, (1, 1), groups, algorithm)  # type: ignore[arg-type]
        inputs = src[1] // groups
        self.x = random(*src).astype(SHORT)
        self.w = (random(outputs, inputs, size, size) / np.float32(size * inputs**0.5)).astype(SHORT)
        self.shape = output_shape(src, self.w.shape, self.attrs)
        self.added, self.bias = random(*self.shape, seed=2).astype(SHORT), random(outputs, seed=1)
        self.layout = layout

    def program(self, dtype: str) -> ir.Program:
        b = Builder()
        x, added = b.input(self.x.shape, self.layout, dtype), b.input(self.shape, self.layout, dtype)
        weights = b.constant(grouped(self.w.astype(dtype), self.attrs.groups))
        bias = b.constant(self.bias)
        dst = b.output(self.shape, self.layout, dtype)
        post_ops = (ir.BinaryPostOp("add", added), RELU)
        b.step(self.attrs, post_ops, src=x, weights=weights, bias=bias, dst=dst)
        return b.build()

    def result(self, dtype: str) -> Array:
        program, layout = self.program(dtype), parse_layout(self.layout)
        (info,) = library.describe(program).steps
        assert (info.implementation, info.error) == (self.attrs.algorithm, "")
        numbers = np.dtype(dtype)
        stored = [pack(array.astype(numbers), layout) for array in (self.x, self.added)]
        out = np.full(layout.physical_shape(self.shape), np.nan, numbers)
        constants = [grouped(self.w.astype(numbers), self.attrs.groups), self.bias]
        library.trial(program, constants)(*stored, out)
        return unpack(out, layout, self.shape)

    def exact(self) -> Array:
        wide = convolution(self.x.astype(float), self.w.astype(float), self.attrs, self.bias.astype(float))
        return np.maximum(wide + self.added.astype(float), 0)


@needs_bfloat16
@pytest.mark.parametrize("src, outputs, padding, groups", SHAPES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_as_in_float32_rounded_once(algorithm, src, outputs, padding, groups, threads):
    case = Case(algorithm, src, outputs, padding, groups)
    short = case.result("bfloat16")
    np.testing.assert_array_equal(short, case.result("float32").astype(SHORT))
    assert relative_l2(short.astype(float), case.exact()) < 2**-9


@needs_bfloat16
@pytest.mark.parametrize("src, outputs, padding, groups", SHAPES[:5])
def test_in_blocks(src, outputs, padding, groups):
    case = Case("winograd_f4", src, outputs, padding, groups, "aBcd16b")
    np.testing.assert_array_equal(case.result("bfloat16"), case.result("float32").astype(SHORT))


@needs_bfloat16
def test_filters_of_five():
    case = Case("winograd_f2", (2, 19, 11, 12), 35, (2, 2, 2, 2), size=5)
    np.testing.assert_array_equal(case.result("bfloat16"), case.result("float32").astype(SHORT))


@needs_bfloat16
@pytest.mark.parametrize("role", ["weights", "dst"])
def test_one_type_throughout(role):
    program = Case("winograd_f4", (1, 16, 8, 8), 16, (1, 1, 1, 1)).program("bfloat16")
    number = program.steps[0].operand(role)
    values = list(program.values)
    values[number] = replace(values[number], dtype="float32")
    (info,) = library.describe(ir.Program("p", tuple(values), program.steps)).steps
    assert f"{role} is not in src's" in info.error


@needs_bfloat16
def test_an_operand_for_each_channel_is_float32():
    b = Builder()
    scale = b.input((1, 16, 1, 1), "abcd", "bfloat16")
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1, "winograd_f4")
    x, y = b.input((1, 16, 8, 8), "acdb", "bfloat16"), b.output((1, 16, 8, 8), "acdb", "bfloat16")
    weights = b.constant(random(16, 16, 3, 3).astype(SHORT))
    b.step(attrs, [ir.BinaryPostOp("mul", scale)], src=x, weights=weights, dst=y)
    (info,) = library.describe(b.build()).steps
    assert "for each channel in float32" in info.error
