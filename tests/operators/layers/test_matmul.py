"""Matrix products: ranks, broadcasting batches, transposes, Gemm, and what fuses behind them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx_node import LAYOUTS, Graph, check, computing, post_ops, run

ONE = {"matmul": 1}


SHAPES = [
    ((3, 17), (17, 67)),
    ((1, 100), (100, 1)),
    ((2, 5, 17), (17, 67)),
    ((2, 5, 17), (2, 17, 3)),
    ((5, 17), (2, 17, 3)),
    ((2, 3, 5, 17), (2, 3, 17, 9)),
    ((2, 3, 5, 17), (17, 9)),
    ((2, 1, 5, 17), (1, 3, 17, 9)),
    ((2, 3, 2, 5, 17), (2, 3, 2, 17, 7)),
]


@pytest.mark.parametrize("constant", [False, True])
def test_matmul(constant):
    g, outputs = Graph(), []
    for left, right in SHAPES:
        weights = g.constant(*right) if constant else g.input(*right)
        outputs.append(g.op("MatMul", g.input(*left), weights))
    check(g, *outputs, steps={"matmul": len(SHAPES)}, reduction=100)


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        ((17,), (17, 3), "takes 2 and more"),
        ((2, 5, 17), (17,), "takes 2 and more"),
        ((17,), (17,), "no tensors of rank 0"),
    ],
)
def test_vectors_are_left_to_tvm(left, right, reason):
    g = Graph()
    y = g.op("MatMul", g.input(*left), g.constant(*right))
    check(g, y, steps={}, fallbacks={"matmul": reason}, reduction=17)


@pytest.mark.parametrize("constant", [False, True])
def test_gemm_transposes(constant):
    g, outputs = Graph(), []
    for transpose_a, transpose_b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        a = g.input(*((17, 3) if transpose_a else (3, 17)))
        shape = (67, 17) if transpose_b else (17, 67)
        b = g.constant(*shape) if constant else g.input(*shape)
        outputs.append(g.op("Gemm", a, b, g.constant(67), transA=transpose_a, transB=transpose_b))
    report = check(g, *outputs, steps={"matmul": 4}, reduction=17)
    assert post_ops(report, "matmul") == [()] * 4, "the bias is an operand"


def test_gemm_bias_and_factors():
    g, outputs = Graph(), []
    for bias in ((67,), (1, 67), (3, 67), (1,), ()):
        c = g.constant(data=np.asarray(g.random.standard_normal(bias), "float32"))
        outputs.append(g.op("Gemm", g.input(3, 17), g.constant(17, 67), c, alpha=0.5, beta=1.5))
    check(g, *outputs, steps={"matmul": 5}, reduction=17)


def test_bias_for_each_row_is_a_step_of_its_own():
    g = Graph()
    y = g.op("Gemm", g.input(3, 17), g.constant(17, 67), g.constant(3, 1))
    check(g, y, steps={"matmul": 1, "binary": 1}, reduction=17)


@pytest.mark.parametrize("shape", [(5, 17), (2, 5, 17), (2, 3, 5, 17)])
def test_dense_bias_and_activation_are_one_step(shape):
    g = Graph()
    y = g.op("Add", g.op("MatMul", g.input(*shape), g.constant(17, 67)), g.constant(67))
    report = check(g, g.op("Relu", y), steps=ONE, reduction=17)
    assert post_ops(report, "matmul") == [("relu",)]


@pytest.mark.parametrize("shape", [(5, 17), (2, 5, 17)])
def test_transposed_weights_are_read_as_they_stand(shape):
    g = Graph()
    weights = g.op("Transpose", g.constant(67, 17), perm=[1, 0])
    y = g.op("Tanh", g.op("Add", g.op("MatMul", g.input(*shape), weights), g.constant(67)))
    report = check(g, y, steps=ONE, reduction=17)
    assert post_ops(report, "matmul") == [("tanh",)]
    assert not any(region.reorders for region in report.regions)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_transposed_heads(layouts):
    """The product of queries and keys as attention writes it, both operands transposed views."""
    g, (batch, time, heads, depth) = Graph(), (2, 5, 3, 17)

    def split(axes: list[int]) -> str:
        rows = g.op("Relu", g.input(batch, time, heads * depth))
        return g.op("Transpose", g.op("Reshape", rows, g.ints(batch, time, heads, depth)), perm=axes)

    y = g.op("MatMul", split([0, 2, 1, 3]), split([0, 2, 3, 1]))
    check(g, y, steps={"matmul": 1, "eltwise": 2}, reduction=depth, layouts=layouts)


@pytest.mark.parametrize("mask", [(2, 1, 1, 7), (1, 1, 1, 7), (2, 3, 5, 7), (1,)])
def test_mask_is_fused(mask):
    g = Graph()
    scores = g.op("Div", g.op("MatMul", g.input(2, 3, 5, 17), g.input(2, 3, 17, 7)), g.scalar(17**0.5))
    report = check(g, g.op("Add", scores, g.input(*mask)), steps=ONE, reduction=17)
    assert post_ops(report, "matmul") in ([("linear", "binary add")], [("linear", "sum")])


@pytest.mark.parametrize("mask", [(1, 1, 5, 7), (5, 1), (2, 1, 5, 7), (3, 1, 7)])
def test_mask_that_would_need_reference_code_is_a_step_of_its_own(mask):
    g = Graph()
    y = g.op("Add", g.op("MatMul", g.input(2, 3, 5, 17), g.input(2, 3, 17, 7)), g.input(*mask))
    far = {} if mask != (3, 1, 7) else {"add": "far apart"}
    check(g, y, steps={"matmul": 1} | ({} if far else {"binary": 1}), fallbacks=far, reduction=17)


def test_random_shapes():
    random, g, outputs = np.random.default_rng(0), Graph(), []
    for _ in range(12):
        batch = random.integers(1, 4, int(random.integers(0, 4))).tolist()
        m, k, n = random.choice([1, 3, 16, 17, 67, 100], 3).tolist()
        kept = random.random(len(batch)) < 0.5
        other = [dim if keep else 1 for dim, keep in zip(batch, kept, strict=True)]
        weights = g.constant(*other, k, n) if random.random() < 0.5 else g.input(*other, k, n)
        outputs.append(g.op("MatMul", g.input(*batch, m, k), weights))
    check(g, *outputs, steps={"matmul": 12}, reduction=100)


# --- orders of axes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [False, True])
def test_orders_of_axes_that_change_nothing(constant):
    g, outputs = Graph(), []
    for shape in ((17, 17), (17, 5), (3, 17, 17)):
        weights = g.constant(*shape) if constant else g.input(*shape)
        same = g.op("Transpose", weights, perm=list(range(len(shape))))
        outputs.append(g.op("MatMul", g.input(3, 4, 17), same))
    check(g, *outputs, steps={"matmul": 3}, reduction=17)


@pytest.mark.parametrize("perm", list(itertools.permutations(range(3))), ids=str)
def test_every_order_of_three_axes(perm):
    """Of weights and of what they multiply; extents are equal, so that a mistake changes numbers only."""
    g = Graph()
    weights = g.op("Transpose", g.input(5, 5, 5), perm=list(perm))
    src = g.op("Transpose", g.input(5, 5, 5), perm=list(perm))
    outputs = [g.op("MatMul", g.input(5, 5, 5), weights), g.op("MatMul", src, g.constant(5, 5))]
    check(g, *outputs, steps={"matmul": 2}, reduction=5)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("perm", [None, [1, 0]])
def test_a_vector_times_a_transposed_matrix_is_left_to_tvm(perm, constant):
    g = Graph()
    weights = g.constant(5, 17) if constant else g.input(5, 17)
    turned = g.op("Transpose", weights, **({} if perm is None else {"perm": perm}))
    y = g.op("Tanh", g.op("MatMul", g.input(17), turned))
    ex, (actual,), (expected,) = run(g, y)
    assert [step.kind for step in computing(ex.report)] == ["eltwise"]
    assert "takes 2 and more" in str(ex.report.fallbacks)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
