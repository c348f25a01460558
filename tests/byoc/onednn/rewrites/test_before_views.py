"""Elementwise steps before the views that they read: what moves, what stays, and the same numbers."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from small_programs import Small, chain, fused, kinds, run

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.rewrites import fusion
from tvm_mxplan.byoc.onednn.rewrites.before_views import put_before_views
from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts


def fused_turned(b: Small, result: int) -> ir.Program:
    """As ``fused``, for views that oneDNN cannot read before they are copied: held against staying put."""
    b.write_output(result, b.output)
    program, constants = b.finish(), list(b.constants)
    after, changed, _ = fusion.fuse(program, constants)
    with mock.patch.object(fusion, "put_before_views", lambda graph: None):
        stayed, others, _ = fusion.fuse(program, constants)
    runnable, other = (infer_layouts(one, OneDNN()).program for one in (after, stayed))
    np.testing.assert_allclose(run(runnable, changed), run(other, others), rtol=1e-4, atol=1e-5)
    assert len(stayed.steps) >= len(after.steps)
    return after


def test_an_activation_behind_a_reshape_is_a_post_op():
    b = Small((35, 17), (5, 7, 3))
    y = b.eltwise(b.reshape(b.matmul(b.inputs[0], 17), (35, 17)), "gelu_erf")
    after = fused(b, b.eltwise(y, "tanh"))
    assert kinds(after)[0] == "matmul" and "gelu_erf" in chain(after.steps[0])


def test_an_activation_behind_tokens_made_of_an_image_is_a_post_op():
    b = Small((2, 15, 9), (2, 3, 3, 5))
    tokens = b.permute(b.reshape(b.conv(b.inputs[0], 6), (2, 6, 15)), (0, 2, 1))
    after = fused_turned(b, b.matmul(b.eltwise(tokens, "gelu_erf"), 9))
    assert kinds(after)[0] == "convolution" and chain(after.steps[0]) == ["gelu_erf"]
    assert "eltwise" not in kinds(after)


def test_a_batch_norm_over_rows_folds_into_the_product_before():
    b = Small((2, 15, 6), (2, 15, 3))
    rows = b.reshape(b.matmul(b.inputs[0], 6), (30, 6))
    scaled = b.binary(b.binary(rows, b.numbers(1, 6), "mul"), b.numbers(1, 6), "add")
    after = fused(b, b.eltwise(b.reshape(scaled, (2, 15, 6)), "tanh"))
    assert kinds(after)[0] == "matmul" and "binary" not in kinds(after)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("algorithm", ["add", "sub"])
def test_a_residual_behind_a_reshape_is_a_post_op(first: bool, algorithm: str):
    """A residual is seen in the product's own shape; a product that is subtracted stays where it is."""
    b = Small((2, 15, 6), (30, 9), (2, 15, 6))
    product = b.reshape(b.matmul(b.inputs[0], 6), (2, 15, 6))
    operands = (b.inputs[1], product) if first else (product, b.inputs[1])
    after = fused(b, b.eltwise(b.binary(*operands, algorithm), "tanh"))
    if first and algorithm == "sub":
        assert kinds(after) == ["matmul", "binary"]
        return
    assert kinds(after) == ["matmul", "eltwise"] and chain(after.steps[0]) == [algorithm]
    (post_op,) = after.steps[0].post_ops
    assert isinstance(post_op, ir.BinaryPostOp)
    addend = after.values[post_op.value]
    assert addend.shape == (30, 6) and after.values[addend.alias_of].kind == "input"
    assert addend.name == after.values[addend.alias_of].name, "a dump calls it what the model does"


def test_residuals_behind_reshapes_follow_each_other():
    """As in a transformer whose products are of matrices: what is added becomes the next one's residual."""
    b = Small((1, 8, 6), (8, 9), (1, 8, 6))
    total = b.inputs[1]
    for _ in range(3):
        rows = b.matmul(b.reshape(total, (8, 6)), 6) if total != b.inputs[1] else b.matmul(b.inputs[0], 6)
        total = b.binary(total, b.reshape(rows, (1, 8, 6)), "add")
    after = fused(b, b.eltwise(total, "tanh"))
    assert kinds(after) == ["matmul"] * 3 + ["eltwise"]
    assert [chain(step) for step in after.steps[:3]] == [["add"]] * 3


@pytest.mark.parametrize("shape", [(1, 15, 6), (15, 1)])
def test_what_is_added_to_every_sample_stays(shape: tuple[int, ...]):
    b = Small((2, 15, 6), (30, 9), shape)
    addend = b.inputs[1] if len(shape) == 3 else b.reshape(b.inputs[1], (1, *shape))
    after = fused(b, b.binary(b.reshape(b.matmul(b.inputs[0], 6), (2, 15, 6)), addend, "add"))
    assert kinds(after) == ["matmul", "binary"]


def test_a_residual_of_turned_rows_stays():
    """Its numbers stand in another order than those of the product."""
    b = Small((2, 6, 15), (30, 9), (2, 6, 15))
    turned = b.permute(b.reshape(b.matmul(b.inputs[0], 6), (2, 15, 6)), (0, 2, 1))
    after = fused_turned(b, b.binary(turned, b.inputs[1], "add"))
    assert kinds(after)[0] == "matmul" and not after.steps[0].post_ops


def test_a_vector_along_another_axis_stays():
    b = Small((3, 10, 6), (30, 3))
    rows = b.reshape(b.matmul(b.inputs[0], 6), (3, 10, 6))
    after = fused(b, b.binary(b.binary(rows, b.numbers(1, 10, 1), "mul"), b.numbers(1, 1, 6), "add"))
    assert kinds(after)[:2] == ["matmul", "binary"]


@pytest.mark.parametrize("known", [False, True])
def test_a_number_that_the_caller_gives_stays_behind_the_view(known):
    """Only constants are given the shape of what is viewed."""
    b = Small((30, 6), (5, 6, 3), (1, 1))
    factor = b.numbers(1, 1) if known else b.inputs[1]
    y = b.binary(b.reshape(b.matmul(b.inputs[0], 6), (30, 6)), factor, "max")
    after = fused(b, b.eltwise(y, "tanh"))
    assert (chain(after.steps[0])[:1] == ["max"]) == known


def test_a_last_dimension_that_the_view_merges_stays():
    b = Small((10, 18), (10, 3, 4))
    rows = b.reshape(b.matmul(b.inputs[0], 6), (10, 18))
    after = fused(b, b.binary(b.binary(rows, b.numbers(1, 18), "mul"), b.numbers(1, 18), "add"))
    assert kinds(after)[:2] == ["matmul", "binary"]


def test_what_others_read_stays():
    """The product itself, or another view of it, is wanted without the activation."""
    for reader in (lambda b, y: b.reshape(y, (30, 6)), lambda b, y: b.reshape(b.eltwise(y, "abs"), (30, 6))):
        b = Small((30, 6), (5, 6, 3))
        y = b.matmul(b.inputs[0], 6)
        seen = b.eltwise(b.reshape(y, (30, 6)), "gelu_erf")
        after = fused(b, b.binary(seen, reader(b, y), "mul"))
        assert after.steps[0].kind == "matmul" and not after.steps[0].post_ops


def test_views_that_nobody_reads_keep_nothing_in_place():
    b = Small((30, 6), (5, 6, 3))
    y = b.matmul(b.inputs[0], 6)
    b.reshape(y, (15, 12))
    after = fused(b, b.eltwise(b.eltwise(b.reshape(y, (30, 6)), "gelu_erf"), "tanh"))
    assert after.steps[0].kind == "matmul" and chain(after.steps[0])[:1] == ["gelu_erf"]


def test_the_view_is_read_twice():
    b = Small((30, 6), (5, 6, 3))
    rows = b.reshape(b.matmul(b.inputs[0], 6), (30, 6))
    after = fused(b, b.binary(b.eltwise(rows, "gelu_erf"), rows, "mul"))
    assert after.steps[0].kind == "matmul" and not after.steps[0].post_ops


def test_a_result_that_is_viewed_moves_behind_plain_views_only():
    for turned in (False, True):
        b = Small((3, 60) if turned else (60, 3), (2, 6, 3, 5))
        y = b.conv(b.inputs[0], 6)
        seen = b.permute(y, (0, 2, 3, 1)) if turned else b.reshape(y, (2, 2, 3, 15))
        y = b.eltwise(seen, "tanh")
        after = fused_turned(b, b.eltwise(b.reshape(y, b.shape(b.output)), "abs"))
        assert bool(after.steps[0].post_ops) != turned


def test_numbers_of_one_kind_go_through_every_view():
    b = Small((2, 15, 6), (2, 3, 3, 5))
    tokens = b.permute(b.reshape(b.conv(b.inputs[0], 6), (2, 6, 15)), (0, 2, 1))
    half = b.constant(np.full((1, 1, 1), 0.37, "float32"))
    after = fused_turned(b, b.eltwise(b.binary(tokens, half, "max"), "tanh"))
    assert kinds(after)[0] == "convolution" and chain(after.steps[0])[0] == "max"


def test_a_chain_of_a_thousand_views_is_walked_without_recursion():
    b = Small((30, 6), (30, 3))
    y = b.matmul(b.inputs[0], 6)
    for turn in range(1200):
        y = b.reshape(y, (15, 12) if turn % 2 == 0 else (30, 6))
    b.write_output(b.eltwise(b.eltwise(y, "gelu_erf"), "abs"), b.output)
    after, _, _ = fusion.fuse(b.finish(), list(b.constants))
    assert kinds(after)[0] == "matmul" and "gelu_erf" in chain(after.steps[0])


@pytest.mark.parametrize(
    ("maker", "moves"),
    [
        (ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1), True),
        (ir.Deconvolution((1, 1), (0, 0, 0, 0), (1, 1), 1), True),
        (ir.MatMul(), True),
        (ir.InnerProduct(), True),
        (ir.FewBitsProduct(4, 32), True),
        (ir.Binary("mul"), True),
        (ir.Eltwise("tanh", 0.0, 0.0), True),
        (ir.Softmax("softmax", 1), False),
        (ir.Reduction("sum"), False),
        (ir.Pooling("max", (1, 1), (1, 1), (0, 0), (1, 1)), False),
    ],
)
def test_steps_go_next_to_what_takes_post_ops(maker: ir.Attributes, moves: bool) -> None:
    image, rows = (2, 3, 4, 5), (6, 20)
    values = (
        ir.Value("x", image, "float32", "input", "abcd", 0),
        ir.Value("made", image, "float32", "local", "abcd"),
        ir.Value("seen", rows, "float32", "local", "ab", alias_of=1),
        ir.Value("result", rows, "float32", "local", "ab"),
        ir.Value("out", rows, "float32", "output", "ab", 0),
    )
    relu = ir.Eltwise("relu", 0.0, 0.0)
    steps = tuple(
        ir.Step(f"s{at}", attrs, (ir.Operand("src", src), *factor, ir.Operand("dst", dst)))
        for at, (attrs, src, dst) in enumerate(((maker, 0, 1), (relu, 2, 3), (relu, 3, 4)))
        for factor in [(ir.Operand("src1", 0),) if isinstance(attrs, ir.Binary) else ()]
    )
    program = ir.Program("p", values, steps)
    graph = Graph(program, [])
    put_before_views(graph)
    after = graph.finish()
    if not moves:
        assert after == program
        return
    first, second, last = after.steps
    assert (after.values[second.operand("src")].shape, after.values[second.dst].shape) == (image, image)
    assert second.operand("src") == first.dst
    assert after.values[last.operand("src")].shape == rows
    assert after.values[last.operand("src")].alias_of == second.dst


def test_what_is_written_through_a_view_stays_behind_who_writes_it() -> None:
    """The activation reads what was written over the product, by the view."""
    rows = (6, 20)
    values = (
        ir.Value("x", rows, "float32", "input", "ab", 0),
        ir.Value("made", rows, "float32", "local", "ab"),
        ir.Value("written", rows, "float32", "local", "ab", alias_of=1),
        ir.Value("result", rows, "float32", "local", "ab"),
        ir.Value("out", rows, "float32", "output", "ab", 0),
    )
    relu = ir.Eltwise("relu", 0.0, 0.0)
    makers = ((ir.MatMul(), 0, 1), (ir.Eltwise("tanh", 0.0, 0.0), 0, 2), (relu, 2, 3), (relu, 3, 4))
    steps = tuple(
        ir.Step(f"s{at}", attrs, (ir.Operand("src", src), ir.Operand("dst", dst)))
        for at, (attrs, src, dst) in enumerate(makers)
    )
    program = ir.Program("p", values, steps)
    graph = Graph(program, [])
    put_before_views(graph)
    assert graph.finish() == program
