"""Dense layers on flattened images: which become inner products, and that they read any layout."""

from __future__ import annotations

import numpy as np
import pytest
from program_builder import Builder, check, random
from small_programs import Small, fused, kinds

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.rewrites.fusion import fuse
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import program as ir

IMAGE = (2, 16, 3, 5)


def describe(b: Builder) -> tuple[StepInfo, ...]:
    return library.describe(b.build()).steps


def dense(b: Small, image: int, columns: int, transposed: bool, bias: bool = True) -> int:
    """matmul of the flattened image, its weights [K, O] or [O, K] seen transposed."""
    batch, *sample = b.shape(image)
    depth = int(np.prod(sample))
    weights = b.permute(b.numbers(columns, depth), (1, 0)) if transposed else b.numbers(depth, columns)
    flat = b.reshape(image, (batch, depth))
    y = b.step("matmul", ir.MatMul(), (batch, columns), [("src", flat), ("weights", weights)])
    return b.binary(y, b.numbers(1, columns)) if bias else y


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_a_flattened_image_is_read_as_an_image(transposed, bias):
    b = Small((2, 7), IMAGE)
    y = dense(b, b.eltwise(b.inputs[0], "tanh"), 7, transposed, bias)
    after = fused(b, b.eltwise(y, "relu"))
    assert kinds(after) == ["eltwise", "inner_product"]
    step = after.steps[1]
    assert after.values[step.operand("src")].shape == IMAGE
    assert after.values[step.operand("weights")].shape == (7, *IMAGE[1:])
    assert [type(post_op) for post_op in step.post_ops] == [ir.EltwisePostOp]


def test_single_pixels_and_given_inputs_stay_matrices():
    b = Small((2, 7), (2, 16, 1, 1))
    assert kinds(fused(b, dense(b, b.eltwise(b.inputs[0], "tanh"), 7, False))) == ["eltwise", "matmul"]
    b = Small((2, 7), IMAGE)
    assert kinds(fused(b, dense(b, b.inputs[0], 7, False))) == ["matmul"]


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        ((2, 16, 2), "inner_product"),
        ((2, 16, 1), "matmul"),
        ((2, 3, 2, 1), "inner_product"),
        ((2, 3, 2, 2, 3), "inner_product"),
        ((2, 3, 1, 1, 1), "matmul"),
        ((2, 3, 1, 2, 1, 2), "matmul"),
        ((2, 12), "matmul"),
    ],
)
def test_images_of_one_to_three_axes(image, kind):
    b = Small((2, 7), image)
    after = fused(b, dense(b, b.eltwise(b.inputs[0], "tanh"), 7, False))
    assert kinds(after) == ["eltwise", kind]


def test_parts_of_an_image_stay_matrices():
    """A view that begins behind the first byte, or has fewer samples than the image."""
    for offset, rows in ((0, 2), (64, 2), (0, 1)):
        b = Small((rows, 7), (2, 16, 2))
        image = b.eltwise(b.inputs[0], "tanh")
        alias = {"alias_of": image, "alias_offset": offset}
        b.values.append(ir.Value("flat", (rows, 32), "float32", "local", "ab", **alias))
        operands = [("src", len(b.values) - 1), ("weights", b.numbers(32, 7))]
        b.write_output(b.step("matmul", ir.MatMul(), (rows, 7), operands), b.output)
        kind = "inner_product" if (offset, rows) == (0, 2) else "matmul"
        assert kinds(fuse(b.finish(), list(b.constants)).program)[-1] == kind


def test_weights_that_are_no_constant_stay_those_of_a_matrix():
    b = Small((2, 7), (2, 16, 2), (32, 7))
    flat = b.reshape(b.eltwise(b.inputs[0], "tanh"), (2, 32))
    y = b.step("matmul", ir.MatMul(), (2, 7), [("src", flat), ("weights", b.inputs[1])])
    assert kinds(fused(b, y)) == ["eltwise", "matmul"]


def test_other_views_of_an_image_stay_matrices():
    """Rows that are no samples."""
    b = Small((32, 7), IMAGE)
    flat = b.reshape(b.eltwise(b.inputs[0], "tanh"), (32, 15))
    y = b.step("matmul", ir.MatMul(), (32, 7), [("src", flat), ("weights", b.numbers(15, 7))])
    assert kinds(fused(b, y)) == ["eltwise", "matmul"]


def test_the_bytes_of_an_image_in_another_order_stay_a_matrix():
    """Channels last underneath: the columns are not those of the image as it is seen."""
    b = Small((2, 7), (2, 3, 5, 16))
    seen = b.permute(b.eltwise(b.inputs[0], "tanh"), (0, 3, 1, 2))
    b.values.append(ir.Value("flat", (2, 240), "float32", "local", "ab", alias_of=seen))
    operands = [("src", len(b.values) - 1), ("weights", b.numbers(240, 7))]
    assert kinds(fused(b, b.step("matmul", ir.MatMul(), (2, 7), operands))) == ["eltwise", "matmul"]


@pytest.mark.parametrize("weights_layout", ["abcd", "bcda"])
@pytest.mark.parametrize("layout", ["abcd", "acdb", "aBcd16b", "aBcd8b"])
@pytest.mark.parametrize("batch", [1, 3])
def test_inner_product_of_images_in_any_layout(batch, layout, weights_layout):
    x, w, bias = random(batch, 32, 3, 5), random(17, 32, 3, 5), random(17)
    b = Builder()
    image = b.local(x.shape, layout)
    b.step(ir.Reorder(), src=b.input(x.shape), dst=image)
    weights = b.constant(w.transpose(parse_layout(weights_layout).order), weights_layout, w.shape)
    b.step(ir.InnerProduct(), src=image, weights=weights, bias=b.constant(bias), dst=b.output((batch, 17)))
    check(b.run(x), x.reshape(batch, -1) @ w.reshape(17, -1).T + bias, 480)
    assert [s.is_reference for s in describe(b)] == [False, False]


def test_padded_samples_are_no_rows():
    b = Builder()
    image = b.local((2, 17, 3, 5), "aBcd16b")
    b.step(ir.Reorder(), src=b.input((2, 17, 3, 5)), dst=image)
    weights = b.constant(random(7, 17, 3, 5))
    b.step(ir.InnerProduct(), src=image, weights=weights, dst=b.output((2, 7)))
    assert "samples in layout aBcd16b are no rows" in describe(b)[1].error


def test_shapes_that_do_not_fit_are_named():
    b = Builder()
    weights = b.constant(random(7, 16, 5, 3))
    b.step(ir.InnerProduct(), src=b.input(IMAGE), weights=weights, dst=b.output((2, 7)))
    assert "weights: expected shape (7, 16, 3, 5), got (7, 16, 5, 3)" in describe(b)[0].error
