"""Products of many small matrices: which become one, which stay apart, and the same numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_programs import Small, chain, fused, kinds

from tvm_mxplan.byoc.onednn.rewrites.merged_rows import merge_rows
from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Expr, Symbol


def shapes(program: ir.Program, role: str) -> list[tuple]:
    """Shapes of what the products have in a role."""
    products = [step for step in program.steps if isinstance(step.attrs, ir.MatMul)]
    return [program.values[step.operand(role)].shape for step in products]


@pytest.mark.parametrize("leading", [(3, 5), (2, 3, 5), (1, 7, 1), (4, 1)])
def test_rows_of_all_small_matrices_are_those_of_one(leading: tuple[int, ...]) -> None:
    b = Small((*leading, 6), (*leading, 9))
    after = fused(b, b.matmul(b.inputs[0], 6))
    rows = int(np.prod(leading))
    assert [shapes(after, role) for role in ("src", "weights", "dst")] == [[(rows, 9)], [(9, 6)], [(rows, 6)]]
    assert after.values[after.of_kind("output")[0]].shape == (*leading, 6)


def test_a_chain_of_products_with_what_follows_them() -> None:
    b = Small((2, 3, 5, 4), (2, 3, 5, 9), (2, 3, 5, 8))
    wide = b.eltwise(b.binary(b.matmul(b.inputs[0], 8), b.numbers(1, 1, 1, 8)), "gelu_erf")
    after = fused(b, b.matmul(b.binary(wide, b.inputs[1]), 4))
    assert kinds(after) == ["matmul"] * 2 and shapes(after, "src") == [(30, 9), (30, 8)]
    assert chain(after.steps[0]) == ["gelu_erf", "add"]
    (addend,) = (p.value for p in after.steps[0].post_ops if isinstance(p, ir.BinaryPostOp))
    assert after.values[after.steps[0].operand("bias")].shape == (1, 8)
    assert after.values[addend].shape == (30, 8)


@pytest.mark.parametrize("operand", [(1, 1, 5, 6), (1, 3, 1, 6), (2, 1, 1, 6)])
def test_what_differs_by_matrix_keeps_them_apart(operand: tuple[int, ...]) -> None:
    b = Small((2, 3, 5, 6), (2, 3, 5, 9))
    after = fused(b, b.binary(b.matmul(b.inputs[0], 6), b.numbers(*operand)))
    assert shapes(after, "src") == [(2, 3, 5, 9) if after.steps[0].post_ops else (30, 9)]


def test_one_row_for_each_sample_as_a_post_op_keeps_them_apart() -> None:
    b = Small((2, 3, 5, 6), (2, 3, 5, 9))
    product = b.matmul(b.inputs[0], 6)
    row = b.numbers(2, 1, 1, 6)
    b.steps[-1] = replace(b.steps[-1], post_ops=(ir.BinaryPostOp("add", row),))
    after = fused(b, product)
    assert shapes(after, "src") == [(2, 3, 5, 9)] and chain(after.steps[0]) == ["add"]


def test_matrices_with_one_each_stay_apart() -> None:
    b = Small((2, 3, 5, 6), (2, 3, 5, 9), (2, 3, 9, 6))
    product = b.step("matmul", ir.MatMul(), (2, 3, 5, 6), [("src", b.inputs[0]), ("weights", b.inputs[1])])
    assert shapes(fused(b, product), "src") == [(2, 3, 5, 9)]


def test_a_square_batch_is_no_row_of_matrices() -> None:
    """Weights of the result's own shape differ from matrix to matrix."""
    b = Small((3, 5, 5), (3, 5, 5), (3, 5, 5))
    product = b.step("matmul", ir.MatMul(), (3, 5, 5), [("src", b.inputs[0]), ("weights", b.inputs[1])])
    assert shapes(fused(b, product), "weights") == [(3, 5, 5)]


def test_one_matrix_that_varies_and_is_stored_by_columns() -> None:
    b = Small((3, 5, 6), (3, 5, 9), (1, 6, 9))
    turned = b.permute(b.inputs[1], (0, 2, 1))
    product = b.step("matmul", ir.MatMul(), (3, 5, 6), [("src", b.inputs[0]), ("weights", turned)])
    after = fused(b, product)
    assert shapes(after, "weights") == [(9, 6)]
    assert after.values[after.steps[-1].operand("weights")].layout == "ba" and kinds(after) == ["matmul"]


def test_rows_that_are_not_in_order_are_copied() -> None:
    b = Small((3, 5, 6), (5, 3, 9))
    after = fused(b, b.matmul(b.permute(b.inputs[0], (1, 0, 2)), 6))
    assert kinds(after) == ["reorder", "matmul"] and shapes(after, "src") == [(15, 9)]


def test_columns_that_stand_in_front_of_rows_stay_there() -> None:
    b = Small((3, 5, 6), (3, 9, 5))
    after = fused(b, b.matmul(b.permute(b.inputs[0], (0, 2, 1)), 6))
    assert kinds(after) == ["matmul"] and shapes(after, "src") == [(3, 5, 9)]


def test_what_is_added_in_place_is_left_alone() -> None:
    b = Small((3, 5, 6), (3, 5, 9))
    b.write_output(b.matmul(b.inputs[0], 6), b.output)
    b.steps[-1] = replace(b.steps[-1], post_ops=(ir.SumPostOp(),))
    graph = Graph(b.finish(), b.constants)
    merge_rows(graph)
    assert shapes(graph.finish(), "src") == [(3, 5, 9)]


def test_named_extents_are_multiplied() -> None:
    b = Small((3, 5, 6), (3, 5, 9))
    b.write_output(b.matmul(b.inputs[0], 6), b.output)
    program = b.finish()
    n, m = Symbol("n"), Symbol("m")
    named = {(3, 5, 9): (n, m, 9), (3, 5, 6): (n, m, 6)}
    values = tuple(replace(value, shape=named.get(value.shape, value.shape)) for value in program.values)
    symbols = (ir.SymbolBinding("n", 0, 0), ir.SymbolBinding("m", 0, 1))
    graph = Graph(replace(program, values=values, symbols=symbols), b.constants)
    merge_rows(graph)
    assert shapes(graph.finish(), "src") == [(Expr("*", n, m), 9)]
