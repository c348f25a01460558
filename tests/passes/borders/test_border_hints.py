"""A region may assume of its borders what its neighbours allow: decided on plain data."""

from __future__ import annotations

import numpy as np

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.borders.border_choice import BorderGraph, BorderOperator, BorderTensor, Give, Take
from tvm_mxplan.passes.borders.border_hints import Hints, assume

PLAIN, LAST, BLOCKED = "abcd", "acdb", "aBcd16b"
ZERO, ONE = np.float32(0), np.float32(1)


def graph(
    tails: list[np.float32 | None],
    operators: list[BorderOperator],
    takes: list[int],
    gives: list[int],
    pinned: tuple[int, ...] = (),
) -> BorderGraph:
    tensors = tuple(BorderTensor((1, 17, 8, 8), "float32", tail) for tail in tails)
    return BorderGraph(
        tensors,
        tuple(operators),
        tuple(Take(value, (PLAIN,)) for value in takes),
        tuple(Give(value, PLAIN) for value in gives),
        frozenset(pinned),
    )


def test_what_only_regions_read_is_free() -> None:
    assert Hints(graph([ZERO], [], [0], [0])).free == {0}
    assert Hints(graph([ZERO, ZERO], [BorderOperator((0,), 1)], [1], [0])).free == {0, 1}


def test_what_something_else_reads_is_not_free() -> None:
    assert Hints(graph([ZERO], [], [0], [0], pinned=(0,))).free == set()
    assert Hints(graph([ZERO, ZERO], [BorderOperator((0,), 1)], [1], [0], pinned=(1,))).free == set()


def test_one_operator_that_needs_plain_operands_is_enough() -> None:
    """1 is a parameter of the function, so 2 is plain, and 0 is wanted plain for it."""
    operators = [BorderOperator((0, 1), 2), BorderOperator((0,), 3)]
    assert Hints(graph([ZERO, None, ZERO, ZERO], operators, [2, 3], [0])).free == {3}


def test_what_nothing_reads_is_not_free() -> None:
    assert Hints(graph([ZERO], [], [], [0])).free == set()


def test_the_layout_comes_from_the_region_behind_the_operators() -> None:
    chain = graph([ZERO, ZERO, ZERO], [BorderOperator((0,), 1), BorderOperator((1,), 2)], [2], [0])
    assert Hints(chain).layout_of(2, {0: LAST}) == LAST
    assert Hints(chain).layout_of(2, {0: BLOCKED}) == BLOCKED
    assert Hints(chain).layout_of(2, {0: PLAIN}) is None
    assert Hints(chain).layout_of(2, {}) is None


def test_a_dirty_tail_comes_plain() -> None:
    chain = graph([ZERO, ONE], [BorderOperator((0,), 1)], [1], [0])
    assert Hints(chain).layout_of(1, {0: BLOCKED}) is None
    assert Hints(chain).layout_of(1, {0: LAST}) == LAST


def test_a_parameter_of_the_function_comes_plain() -> None:
    assert Hints(graph([None], [], [0], [])).layout_of(0, {}) is None


def test_assumptions_change_borders_only() -> None:
    values = (
        ir.Value("x", (1, 17, 8, 8), "float32", "input", PLAIN, 0),
        ir.Value("z", (1, 17, 8, 8), "float32", "input", PLAIN, 1),
        ir.Value("y", (1, 17, 8, 8), "float32", "output", PLAIN, 0),
        ir.Value("flat", (1, 17 * 64), "float32", "local", "ab", alias_of=1),
    )
    operands = (ir.Operand("src", 0), ir.Operand("src1", 1), ir.Operand("dst", 2))
    program = ir.Program("p", values, (ir.Step("add", ir.Binary("add"), operands),))
    assumed = assume(program, {0: LAST, 1: LAST}, frozenset({0}))
    assert [value.layout for value in assumed.values] == [
        LAST,
        PLAIN,
        PLAIN,
        "ab",
    ]  # 1 is read in another shape
    assert [value.kind for value in assumed.values] == ["input", "input", "local", "local"]
    assert [value.index for value in assumed.values] == [0, 1, -1, -1]
    assert assume(program, {}, frozenset({1})) == program
    assert assumed.steps == program.steps
