"""Operands of steps as one list: those of post-ops at the end, results picked last, nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of, renumbered, reorder, rewired, with_operands

LSTM = ir.Step(
    "lstm",
    ir.Recurrent("lstm", "forward"),
    tuple(
        ir.Operand(role, at)
        for at, role in enumerate(("src", "weights", "dst", "last_hidden", "recurrence", "last_cell"))
    ),
)
SUM = ir.Step(
    "mul",
    ir.Binary("mul"),
    (ir.Operand("src", 4), ir.Operand("src1", 4), ir.Operand("dst", 7)),
    (
        ir.BinaryPostOp("add", 4),
        ir.SumPostOp(),
        ir.EltwisePostOp("relu", 0.0, 0.0),
        ir.BinaryPostOp("max", 5),
    ),
    "fast",
    scratchpad_bytes=64,
)


def test_operands_of_post_ops_are_at_the_end() -> None:
    assert operands_of(SUM) == [("src", 4), ("src1", 4), ("dst", 7), ("post_op", 4), ("post_op", 5)]


def test_each_place_gets_its_own_value() -> None:
    """Also where one value stands in several places."""
    found = with_operands(SUM, [10, 11, 12, 13, 14])
    assert operands_of(found) == [("src", 10), ("src1", 11), ("dst", 12), ("post_op", 13), ("post_op", 14)]
    assert replace(found, operands=SUM.operands, post_ops=SUM.post_ops) == SUM
    assert found.post_ops[1:3] == SUM.post_ops[1:3]


@pytest.mark.parametrize("count", [0, 3, 4, 6])
def test_there_is_a_value_for_each_place(count: int) -> None:
    with pytest.raises(AssertionError, match=f"mul: {count} values for 5 operands"):
        with_operands(SUM, list(range(count)))


def test_all_results_are_picked_behind_what_is_read() -> None:
    asked: list[tuple[str, int, str, int]] = []

    def pick(kind: str) -> object:
        return lambda at, role, value: (asked.append((kind, at, role, value)), 20 + at)[1]

    found = rewired(LSTM, pick("read"), pick("write"))  # type: ignore[arg-type]
    assert [kind for kind, *_ in asked] == ["read"] * 3 + ["write"] * 3
    assert [(role, value) for _, _, role, value in asked] == [
        ("src", 0), ("weights", 1), ("recurrence", 4), ("dst", 2), ("last_hidden", 3), ("last_cell", 5),
    ]  # fmt: skip
    assert [value for _, value in operands_of(found)] == [20, 21, 22, 23, 24, 25]


def test_numbers_by_old_numbers() -> None:
    found = renumbered(SUM, {4: 0, 5: 1, 7: 2})
    assert [value for _, value in operands_of(found)] == [0, 0, 2, 0, 1]
    with pytest.raises(KeyError):
        renumbered(SUM, {4: 0, 7: 2})


def test_a_reorder_has_a_source_and_a_result() -> None:
    step = reorder("r", 3, 5, "host")
    assert (step.operand("src"), step.results, step.library) == (3, (5,), "host")
