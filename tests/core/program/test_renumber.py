"""Values in another order: aliases behind what they view, everything else as it was."""

from __future__ import annotations

import random

import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.renumber import select_values, sort_values


def program(*aliases: int, steps: tuple[ir.Step, ...] = ()) -> ir.Program:
    """Values v0, v1, ... by what they alias, -1 for what owns its bytes."""
    values = [
        ir.Value(f"v{number}", (4,), "float32", "local", "a", alias_of=of)
        for number, of in enumerate(aliases)
    ]
    return ir.Program("p", tuple(values), steps)


def aliases(of: ir.Program) -> list[tuple[str, str]]:
    """Names of values with the names of what they alias."""
    names = [value.name for value in of.values]
    return [(value.name, names[value.alias_of] if value.alias_of >= 0 else "") for value in of.values]


def step(*values: int, post_op: int = -1) -> ir.Step:
    """Reads all values but the last."""
    *srcs, dst = values
    post_ops = (ir.BinaryPostOp("add", post_op), ir.SumPostOp()) if post_op >= 0 else ()
    operands = (*(ir.Operand("src", src) for src in srcs), ir.Operand("dst", dst))
    return ir.Step("s", ir.Binary("add"), operands, post_ops)


def test_aliases_stand_behind_what_they_view() -> None:
    """v0 views v3, which views v1."""
    found = sort_values(program(3, -1, -1, 1, 1))
    assert aliases(found) == [("v1", ""), ("v2", ""), ("v3", "v1"), ("v4", "v1"), ("v0", "v3")]


def test_what_is_in_order_stays() -> None:
    one = program(-1, -1, 0, 1, 2)
    assert sort_values(one) == one
    assert sort_values(program()) == program()


def test_steps_follow_their_values() -> None:
    (found,) = sort_values(program(2, -1, -1, -1, steps=(step(0, 1, 3, post_op=0),))).steps
    assert [(operand.role, operand.value) for operand in found.operands] == [
        ("src", 3),
        ("src", 0),
        ("dst", 2),
    ]
    assert found.post_ops == (ir.BinaryPostOp("add", 3), ir.SumPostOp())


@pytest.mark.parametrize("cycle", [(0,), (1, 0), (-1, 3, 1, 2), (1, 2, 0)])
def test_a_cycle_is_named(cycle: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^p: the aliases of v\d form a cycle"):
        sort_values(program(*cycle))


def test_some_values_are_selected() -> None:
    found = select_values(program(-1, -1, 1, 2, steps=(step(2, 3),)), [1, 3, 2])
    assert aliases(found) == [("v1", ""), ("v3", "v2"), ("v2", "v1")]
    assert [operand.value for operand in found.steps[0].operands] == [2, 1]


def test_a_value_that_is_needed_must_be_there() -> None:
    with pytest.raises(KeyError):
        select_values(program(-1, -1, steps=(step(0, 1),)), [1])
    with pytest.raises(KeyError):
        select_values(program(-1, 0), [1])


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_values_is_the_same_program(seed: int) -> None:
    """Sorted by the depth of their aliases, and else in their order."""
    chance = random.Random(seed)
    parents = [chance.choice([-1, *range(number)]) for number in range(12)]
    order = list(range(12))
    chance.shuffle(order)
    shuffled = select_values(program(*parents, steps=(step(*range(12)),)), order)
    found = sort_values(shuffled)
    assert sorted(aliases(found)) == sorted(aliases(program(*parents)))

    def depth(number: int) -> int:
        return 0 if parents[number] < 0 else 1 + depth(parents[number])

    assert [value.name for value in found.values] == [f"v{n}" for n in sorted(order, key=depth)]
    names = [found.values[operand.value].name for operand in found.steps[0].operands]
    assert names == [f"v{number}" for number in range(12)]
