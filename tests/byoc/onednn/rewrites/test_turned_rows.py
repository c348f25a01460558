"""Products of permuted rows: which take the rows as they stand, which copy them, and the same numbers."""

from __future__ import annotations

import pytest
from small_programs import Small, chain, fused, kinds

from tvm_mxplan.core.program import program as ir


def product_of(program: ir.Program) -> tuple[tuple, tuple, bool]:
    """Shapes of source and result of the only product, and whether the source is an input's bytes."""
    (step,) = (step for step in program.steps if isinstance(step.attrs, ir.MatMul))
    src = program.values[step.operand("src")]
    root = src
    while root.alias_of >= 0:
        root = program.values[root.alias_of]
    return src.shape, program.values[step.dst].shape, root.kind == "input"


def softmax(b: Small, src: int) -> int:
    return b.step("softmax", ir.Softmax("softmax", len(b.shape(src)) - 1), b.shape(src), [("src", src)])


def test_rows_that_are_permuted_there_and_back_stay_where_they_are() -> None:
    b = Small((2, 5, 6), (2, 5, 8))
    rows = b.binary(b.matmul(b.permute(b.inputs[0], (1, 0, 2)), 6), b.numbers(1, 1, 6))
    after = fused(b, softmax(b, b.permute(rows, (1, 0, 2))))
    assert kinds(after) == ["matmul", "softmax"] and product_of(after) == ((10, 8), (10, 6), True)
    assert {operand.role for operand in after.steps[0].operands} == {"src", "weights", "bias", "dst"}


def test_of_three_axes_of_rows() -> None:
    b = Small((2, 3, 5, 6), (2, 3, 5, 8))
    rows = b.matmul(b.permute(b.inputs[0], (2, 0, 1, 3)), 6)
    after = fused(b, softmax(b, b.permute(rows, (1, 2, 0, 3))))
    assert kinds(after) == ["matmul", "softmax"] and product_of(after) == ((30, 8), (30, 6), True)


def test_rows_that_were_joined_take_the_residual_behind_them_along() -> None:
    """The output product of an attention whose rows are places before samples."""
    b = Small((2, 5, 6), (2, 5, 2, 4), (2, 5, 6))
    joined = b.reshape(b.permute(b.inputs[0], (1, 0, 2, 3)), (10, 8))
    back = b.permute(b.reshape(b.matmul(joined, 6), (5, 2, 6)), (1, 0, 2))
    after = fused(b, softmax(b, b.binary(back, b.inputs[1])))
    assert kinds(after) == ["matmul", "softmax"] and chain(after.steps[0]) == ["add"]
    assert product_of(after) == ((10, 8), (10, 6), True)


def test_a_result_that_is_read_in_the_products_order_has_its_rows_copied() -> None:
    b = Small((5, 2, 6), (2, 5, 8))
    rows = b.matmul(b.permute(b.inputs[0], (1, 0, 2)), 6)
    after = fused(b, softmax(b, rows))
    assert kinds(after) == ["reorder", "matmul", "softmax"] and product_of(after) == ((10, 8), (10, 6), False)


def test_of_two_readers_in_both_orders_neither_decides() -> None:
    b = Small((2, 5, 6), (2, 5, 8))
    rows = b.matmul(b.permute(b.inputs[0], (1, 0, 2)), 6)
    normal = softmax(b, rows)
    after = fused(b, b.binary(b.permute(normal, (1, 0, 2)), b.permute(rows, (1, 0, 2))))
    assert product_of(after) == ((10, 8), (10, 6), False)


@pytest.mark.parametrize("weights", [(5, 8, 6), (5, 1, 8, 6)])
def test_matrices_that_differ_along_the_rows_stay(weights: tuple[int, ...]) -> None:
    rows = (2, 5, 8) if len(weights) == 3 else (2, 5, 3, 8)
    axes = (1, 0, *range(2, len(rows)))
    turned = tuple(rows[axis] for axis in axes)
    b = Small((*turned[:-1], 6), rows)
    operands = [("src", b.permute(b.inputs[0], axes)), ("weights", b.numbers(*weights))]
    after = fused(b, b.step("matmul", ir.MatMul(), (*turned[:-1], 6), operands))
    assert kinds(after) == ["matmul"] and product_of(after)[0] == turned


def test_a_transposed_matrix_is_no_permutation_of_rows() -> None:
    b = Small((2, 5, 6), (2, 8, 5))
    after = fused(b, b.matmul(b.permute(b.inputs[0], (0, 2, 1)), 6))
    assert kinds(after) == ["matmul"] and product_of(after) == ((2, 5, 8), (2, 5, 6), True)
