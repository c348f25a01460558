"""Conversions on plain programs: which steps read integers, and which products take conversions in.

``fused`` runs each program before and after, so all of these compute what they did.  Weights are small enough
for sums of two products in 16 bits, which is what processors without instructions of their own make.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_programs import Small, chain, fused, kinds

from tvm_mxplan.byoc.onednn.rewrites.fusion import fuse
from tvm_mxplan.byoc.onednn.rewrites.integer_products import IntegerProducts
from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.byoc.rewrites.quantized.lower import lower
from tvm_mxplan.core.program import program as ir

IMAGE = (2, 5, 6, 7)
U8 = (0.0237, 121, "uint8")
S8 = (0.0311, -7, "int8")
Numbers = tuple[float, int, str]
ROUNDED = ["linear", "round", "clip", "linear"]


class Quantized(Small):
    """Shorthands for conversions."""

    def scales(self, side: str, numbers: Numbers) -> list[tuple[str, int]]:
        scale, zero, _ = numbers
        found = [(f"{side}_scale", self.constant(np.array([scale], "float32")))]
        if zero:
            found.append((f"{side}_zero_point", self.constant(np.array([zero], "int32"))))
        return found

    def whole(self, src: int, numbers: Numbers = U8) -> int:
        operands = [("src", src), *self.scales("dst", numbers)]
        return self.step("quantize", ir.Quantization(0), self.shape(src), operands, numbers[2])

    def real(self, src: int, numbers: Numbers = U8) -> int:
        operands = [("src", src), *self.scales("src", numbers)]
        return self.step("dequantize", ir.Quantization(0), self.shape(src), operands, "float32")

    def rounded(self, src: int, numbers: Numbers = U8) -> int:
        return self.real(self.whole(src, numbers), numbers)

    def weights(
        self, *shape: int, axis: int = 0, zero: int = 0, each: bool = True, zeros: tuple[int, ...] = ()
    ) -> int:
        integers = self.constant(self.random.integers(-63, 64, shape).astype("int8"))
        count = shape[axis] if each else 1
        row = self.random.uniform(0.004, 0.01, count).astype("float32")
        operands = [("src", integers), ("src_scale", self.constant(row))]
        if zero or zeros:
            points = np.array(zeros or [zero] * count, "int32")
            operands.append(("src_zero_point", self.constant(points)))
        return self.step("weights", ir.Quantization(axis), shape, operands, "float32")

    def product(self, src: int, channels: int, **weights: Any) -> int:
        inputs = self.shape(src)[1]
        attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
        shape = (self.shape(src)[0], channels, *self.shape(src)[2:])
        operands = [("src", src), ("weights", self.weights(channels, inputs, 1, 1, **weights))]
        return self.step("convolution", attrs, shape, operands)


def types(program: ir.Program) -> list[tuple[str, str]]:
    """Kinds of steps and the types that they write."""
    return [(step.kind, program.values[step.dst].dtype) for step in program.steps]


def test_a_product_between_conversions_is_one_step():
    b = Quantized((2, 7, 6, 7), IMAGE)
    after = fused(b, b.rounded(b.product(b.rounded(b.inputs[0]), 7), S8))
    assert types(after) == [("quantization", "uint8"), ("convolution", "float32")]
    product = after.steps[1]
    roles = {operand.role: after.values[operand.value] for operand in product.operands}
    assert roles["src"].dtype == "uint8" and roles["weights"].dtype == "int8"
    assert roles["weights_scale"].shape == (7,) and "dst_scale" not in roles
    assert chain(product) == ROUNDED[1:]  # the first line is in the weights' scales


def test_the_next_product_reads_what_the_first_writes():
    b = Quantized((2, 3, 6, 7), IMAGE)
    middle = b.rounded(b.eltwise(b.product(b.rounded(b.inputs[0]), 7), "relu"), S8)
    after = fused(b, b.product(middle, 3))
    assert types(after) == [("quantization", "uint8"), ("convolution", "int8"), ("convolution", "float32")]
    assert chain(after.steps[1]) == ["relu"]


def test_what_reads_real_numbers_too_gets_them_once():
    b = Quantized((2, 5, 6, 7), IMAGE)
    x = b.rounded(b.inputs[0])
    y = b.binary(b.eltwise(x, "tanh"), b.eltwise(x, "exp"))
    after = fused(b, b.binary(y, b.product(x, 5)))
    assert kinds(after).count("quantization") == 2


def test_a_maximum_slice_and_concatenation_move_integers():
    b = Quantized((2, 8, 6, 7), IMAGE)
    x = b.rounded(b.inputs[0])
    pooled = b.step("pooling", ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1)), IMAGE, [("src", x)])
    part = b.step("slice", ir.Slice((0, 1, 0, 0)), (2, 3, 6, 7), [("src", x)])
    whole = b.step("concat", ir.Concat(1), (2, 8, 6, 7), [("src", pooled), ("src", part)])
    after = fused(b, whole)
    assert types(after) == [
        ("quantization", "uint8"),
        ("pooling", "uint8"),
        ("slice", "uint8"),
        ("concat", "uint8"),
        ("quantization", "float32"),
    ]


def test_what_moves_other_numbers_is_left_alone():
    """Real numbers, and integers with a scale for each channel."""
    b = Quantized((2, 5, 6, 7), IMAGE, IMAGE)
    row = b.constant(np.linspace(0.02, 0.03, 5, dtype="float32"))
    whole = b.step("q", ir.Quantization(1), IMAGE, [("src", b.inputs[0]), ("dst_scale", row)], "int8")
    each = b.step("d", ir.Quantization(1), IMAGE, [("src", whole), ("src_scale", row)], "float32")
    maximum = ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1))
    pooled = [b.step("pooling", maximum, IMAGE, [("src", one)]) for one in (each, b.inputs[1])]
    after = fused(b, b.binary(b.product(b.rounded(pooled[0]), 5), pooled[1]))
    assert [pair for pair in types(after) if pair[0] == "pooling"] == [("pooling", "float32")] * 2


def test_pieces_of_another_scale_are_converted_where_the_result_is_whole():
    b = Quantized((2, 10, 6, 7), IMAGE, IMAGE)
    left, right = b.rounded(b.inputs[0], U8), b.rounded(b.inputs[1], S8)
    joined = b.step("concat", ir.Concat(1), (2, 10, 6, 7), [("src", left), ("src", right)])
    after = fused(b, b.rounded(joined, S8))
    assert types(after)[2:] == [("quantization", "int8"), ("concat", "int8"), ("quantization", "float32")]


def test_pieces_of_several_scales_stay_real_where_the_result_is():
    b = Quantized((2, 10, 6, 7), IMAGE, IMAGE)
    left, right = b.rounded(b.inputs[0], U8), b.rounded(b.inputs[1], S8)
    after = fused(b, b.step("concat", ir.Concat(1), (2, 10, 6, 7), [("src", left), ("src", right)]))
    assert ("concat", "float32") in types(after)


def test_a_residual_is_added_as_integers():
    b = Quantized((2, 5, 6, 7), IMAGE)
    x = b.rounded(b.inputs[0])
    y = b.rounded(b.product(x, 5), S8)
    after = fused(b, b.rounded(b.eltwise(b.binary(y, x), "relu"), U8))
    assert types(after) == [("quantization", "uint8"), ("convolution", "float32")]
    # Its own rounding, the integers in their scale, relu, and the rounding of the sum.
    assert chain(after.steps[1]) == [*ROUNDED[1:], "add", "linear", "relu", *ROUNDED]
    (added,) = [op for op in after.steps[1].post_ops if isinstance(op, ir.BinaryPostOp)]
    assert after.values[added.value].dtype == "uint8"


def test_integers_with_a_scale_for_each_channel_are_added_as_real_numbers():
    b = Quantized((2, 5, 6, 7), IMAGE, IMAGE)
    row = b.constant(np.linspace(0.02, 0.03, 5, dtype="float32"))
    whole = b.step("q", ir.Quantization(1), IMAGE, [("src", b.inputs[1]), ("dst_scale", row)], "int8")
    each = b.step("d", ir.Quantization(1), IMAGE, [("src", whole), ("src_scale", row)], "float32")
    after = fused(b, b.binary(b.product(b.rounded(b.inputs[0]), 5), each))
    (product,) = [step for step in after.steps if step.kind == "convolution"]
    added = [op.value for op in product.post_ops if isinstance(op, ir.BinaryPostOp)]
    assert [after.values[value].dtype for value in added] == ["float32"]


def test_weights_that_do_not_fit_are_real_constants():
    b = Quantized((2, 7, 6, 7), IMAGE)
    after = fused(b, b.product(b.rounded(b.inputs[0]), 7, zero=90, each=False))
    (product,) = [step for step in after.steps if step.kind == "convolution"]
    weights = after.values[product.operand("weights")]
    assert (weights.kind, weights.dtype) == ("constant", "float32") and not product.is_quantized


def test_weights_are_centred_where_one_of_their_zero_points_is_none():
    b = Quantized((2, 3, 6, 7), IMAGE)
    b.write_output(b.product(b.rounded(b.inputs[0]), 3, zeros=(0, 9, 0)), b.output)
    before, constants = b.finish(), list(b.constants)
    (stored,) = [array for array in constants if array.dtype == "int8"]
    after, kept, _ = fuse(before, constants)
    (product,) = [step for step in after.steps if step.kind == "convolution"]
    weights = after.values[product.operand("weights")]
    assert product.is_quantized and (weights.kind, weights.dtype) == ("constant", "int8")
    np.testing.assert_array_equal(kept[weights.index], stored - np.array([0, 9, 0]).reshape(3, 1, 1, 1))


def test_a_product_reads_a_view_of_integers():
    b = Quantized((2, 7, 42, 1), IMAGE)
    x = b.rounded(b.inputs[0])
    shared = b.eltwise(x, "tanh")  # so that the conversion stays where it is
    seen = b.reshape(x, (2, 5, 42, 1))
    after = fused(b, b.binary(b.product(seen, 7), b.product(b.reshape(shared, (2, 5, 42, 1)), 7)))
    products = [step for step in after.steps if step.kind == "convolution"]
    views = [after.values[step.operand("src")] for step in products if step.is_quantized]
    assert len(views) == 1 and views[0].alias_of >= 0
    assert (views[0].dtype, views[0].shape, views[0].kind) == ("uint8", (2, 5, 42, 1), "local")
    assert all((value.index == -1) == (value.kind == "local") for value in after.values)


def test_scales_along_the_inputs_of_a_product_leave_it_real():
    b = Quantized((2, 7, 6, 7), IMAGE)
    after = fused(b, b.product(b.rounded(b.inputs[0]), 7, axis=1))
    assert not any(step.is_quantized for step in after.steps)


def test_transposed_weights_keep_a_scale_for_each_column():
    b = Quantized((4, 7), (4, 6))
    weights = b.permute(b.weights(7, 6), (1, 0))
    x = b.rounded(b.inputs[0])
    after = fused(b, b.step("matmul", ir.MatMul(), (4, 7), [("src", x), ("weights", weights)]))
    product = after.steps[-1]
    assert product.is_quantized and after.values[product.operand("weights_scale")].shape == (7,)


def test_a_view_is_taken_of_the_integers():
    b = Quantized((7, 6, 2, 5), IMAGE)
    x = b.permute(b.eltwise(b.inputs[0], "tanh"), (3, 2, 0, 1))
    after = fused(b, b.rounded(x, S8))
    assert [dtype for _, dtype in types(after)] == ["float32", "int8", "float32"]
    assert after.values[after.steps[1].dst].shape == IMAGE


def test_a_product_of_real_numbers_rounds_in_registers():
    b = Quantized((2, 7, 6, 7), IMAGE)
    after = fused(b, b.eltwise(b.rounded(b.conv(b.inputs[0], 7)), "relu"))
    assert kinds(after) == ["convolution"] and chain(after.steps[0]) == [*ROUNDED, "relu"]


def test_a_conversion_and_its_inverse_are_nothing():
    b = Quantized(IMAGE, IMAGE)
    x = b.rounded(b.inputs[0])
    after = fused(b, b.rounded(b.rounded(x)))
    assert types(after) == [("quantization", "uint8"), ("quantization", "float32")]


def test_without_instructions_products_are_real():
    b = Quantized((2, 7, 6, 7), IMAGE)
    b.write_output(b.product(b.rounded(b.inputs[0]), 7), b.output)
    after = fuse(b.finish(), list(b.constants), IntegerProducts.NONE).program
    assert types(after) == [
        ("quantization", "uint8"),
        ("quantization", "float32"),
        ("convolution", "float32"),
    ]


@pytest.mark.parametrize("function", ["tanh", "elu", "mish"])
def test_kernels_of_our_own_get_the_functions_that_they_have(function):
    b = Quantized((2, 7, 6, 7), IMAGE)
    y = b.eltwise(b.product(b.rounded(b.inputs[0]), 7), function)
    b.write_output(y, b.output)
    for integers, taken in ((IntegerProducts.ALL, True), (IntegerProducts.OWN, function != "mish")):
        after = fuse(b.finish(), list(b.constants), integers).program
        (made,) = (step for step in after.steps if step.kind == "convolution")
        assert made.is_quantized and bool(made.post_ops) == taken


def test_steps_that_are_gone_are_passed_over():
    b = Quantized((2, 7, 6, 7), IMAGE)
    b.eltwise(b.inputs[0], "tanh")
    b.write_output(b.product(b.rounded(b.inputs[0]), 7), b.output)
    graph = Graph(b.finish(), list(b.constants))
    (gone,) = [at for at, step in enumerate(graph.steps) if step and step.kind == "eltwise"]
    graph.drop(gone)
    lower(graph, lambda _: True)
    after, _ = graph.close()
    assert types(after) == [("quantization", "uint8"), ("convolution", "float32")]
