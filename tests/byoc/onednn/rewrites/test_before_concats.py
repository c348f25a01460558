"""Elementwise steps before the concatenation that they read: what moves, what stays, and the same numbers."""

from __future__ import annotations

import pytest
from small_programs import Small, chain, fused, kinds

from tvm_mxplan.core.program import program as ir


def concat(b: Small, axis: int, *pieces: int) -> int:
    shape = list(b.shape(pieces[0]))
    shape[axis] = sum(b.shape(piece)[axis] for piece in pieces)
    return b.step("concat", ir.Concat(axis), tuple(shape), [("src", piece) for piece in pieces])


def joined(b: Small) -> int:
    return concat(b, 1, b.conv(b.inputs[0], 5, 3), b.conv(b.inputs[1], 2))


def images() -> Small:
    return Small((2, 7, 4, 4), (2, 3, 6, 6), (2, 4, 4, 4))


def test_a_batch_norm_and_its_activation_fold_into_each_convolution():
    b = images()
    scaled = b.binary(b.binary(joined(b), b.numbers(1, 7, 1, 1), "mul"), b.numbers(1, 7, 1, 1), "sub")
    after = fused(b, b.eltwise(scaled, "swish", 1.0))
    assert kinds(after) == ["convolution", "convolution", "concat"]
    assert [chain(step) for step in after.steps] == [["swish"], ["swish"], []]
    assert [after.values[step.operand("bias")].shape for step in after.steps[:2]] == [(5,), (2,)]


def test_a_single_number_goes_along():
    b = images()
    least = b.binary(joined(b), b.numbers(1, 1, 1, 1), "max")
    after = fused(b, b.binary(least, b.numbers(1, 7, 1, 1), "mul"))
    assert kinds(after) == ["convolution", "convolution", "concat"]
    assert [chain(step) for step in after.steps[:2]] == [["max", "mul"]] * 2


def test_products_are_joined_along_their_columns():
    b = Small((3, 9), (3, 4), (3, 2))
    rows = concat(b, 1, b.matmul(b.inputs[0], 6), b.matmul(b.inputs[1], 3))
    after = fused(b, b.eltwise(b.binary(rows, b.numbers(1, 9), "add"), "tanh"))
    assert kinds(after) == ["matmul", "matmul", "concat"]
    assert [chain(step) for step in after.steps[:2]] == [["tanh"]] * 2
    assert [after.values[step.operand("bias")].shape for step in after.steps[:2]] == [(1, 6), (1, 3)]


def test_what_is_added_from_elsewhere_stays_and_what_follows_it():
    b = Small((2, 7, 4, 4), (2, 3, 6, 6), (2, 4, 4, 4), (2, 7, 4, 4))
    total = b.binary(b.eltwise(joined(b), "relu"), b.inputs[2], "add")
    after = fused(b, b.eltwise(total, "tanh"))
    assert kinds(after) == ["convolution", "convolution", "concat", "binary"]
    assert [chain(step) for step in after.steps] == [["relu"], ["relu"], [], ["tanh"]]


@pytest.mark.parametrize("shape", [(1, 1, 4, 1), (2, 1, 1, 1)])
def test_a_constant_along_another_axis_stays(shape: tuple[int, ...]):
    b = images()
    after = fused(b, b.binary(joined(b), b.numbers(*shape), "mul"))
    assert kinds(after) == ["convolution", "convolution", "concat", "binary"]


@pytest.mark.parametrize("made", [True, False])
def test_beside_a_piece_that_no_product_makes_all_stay(made: bool):
    b = Small((2, 9, 4, 4), (2, 3, 6, 6), (2, 4, 4, 4))
    other = b.conv(b.inputs[1], 4) if made else b.inputs[1]
    after = fused(b, b.eltwise(concat(b, 1, b.conv(b.inputs[0], 5, 3), other), "relu"))
    assert kinds(after)[-1] == ("concat" if made else "eltwise")
    assert bool(after.steps[0].post_ops) == made


def test_a_piece_that_something_else_reads_stays():
    b = Small((2, 7, 4, 4), (2, 3, 6, 6), (2, 4, 4, 4))
    first, second = b.conv(b.inputs[0], 5, 3), b.conv(b.inputs[1], 2)
    both = b.eltwise(concat(b, 1, first, second), "relu")
    after = fused(b, b.binary(both, concat(b, 1, first, second), "add"))
    assert not any(step.post_ops for step in after.steps if step.kind == "convolution")


def test_a_concatenation_along_another_axis_than_the_channels_stays():
    b = Small((2, 3, 8, 4), (2, 3, 4, 4))
    pieces = concat(b, 2, b.conv(b.inputs[0], 3), b.conv(b.inputs[0], 3))
    after = fused(b, b.eltwise(pieces, "relu"))
    assert kinds(after) == ["convolution", "convolution", "concat", "eltwise"]


def test_a_joint_that_is_read_twice_stays():
    b = images()
    both = joined(b)
    after = fused(b, b.binary(b.eltwise(both, "tanh"), both, "add"))
    assert kinds(after)[:3] == ["convolution", "convolution", "concat"]
    assert not after.steps[0].post_ops and not after.steps[1].post_ops
