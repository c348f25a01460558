"""Lives of the bytes of a region's values: the allocation problem of a program, on plain data."""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.memory.liveness import arena_problem, boundary_lives, offset_in_root

RELU = ir.Eltwise("relu", 0.0, 0.0)


def value(
    name: str, nbytes: int = 64, alias_of: int = -1, at: int = 0, kind: ir.ValueKind = "local"
) -> ir.Value:
    index = -1 if kind == "local" else 0
    return ir.Value(name, (nbytes // 4,), "float32", kind, "a", index, alias_of, at, nbytes=nbytes)


def program(
    values: list[ir.Value], *steps: tuple[list[int], int], scratch: dict[int, int] | None = None
) -> ir.Program:
    """Steps as what they read and what they write."""
    made = []
    for at, (srcs, dst) in enumerate(steps):
        operands = (*(ir.Operand("src", src) for src in srcs), ir.Operand("dst", dst))
        made.append(ir.Step(f"s{at}", RELU, operands, scratchpad_bytes=(scratch or {}).get(at, 0)))
    return ir.Program("p", tuple(values), tuple(made))


def lives(of: ir.Program) -> dict[str, set[tuple[int, int, int, int]]]:
    """For each item its rectangles: birth, death, offset, bytes."""
    items = arena_problem(of).problem.items
    return {item.name: {(r.birth, r.death, r.offset, r.nbytes) for r in item.rectangles} for item in items}


def test_a_value_lives_from_its_writer_to_its_last_reader() -> None:
    values = [value("x", kind="input"), value("a"), value("b", 100), value("y", kind="output")]
    found = lives(program(values, ([0], 1), ([1], 2), ([1, 2], 3)))
    assert found == {"a": {(0, 3, 0, 64)}, "b": {(1, 3, 0, 128)}}


def test_what_nothing_reads_lives_while_it_is_written() -> None:
    assert lives(program([value("x", kind="input"), value("a")], ([0], 1)))["a"] == {(0, 1, 0, 64)}


def test_views_of_inputs_and_outputs_take_no_bytes() -> None:
    """The input is value 0, the output value 1; neither is the arena's."""
    values = [
        value("x", kind="input"),
        value("y", kind="output"),
        value("v", 32, 0, 32),
        value("w", alias_of=1),
    ]
    assert lives(program(values, ([2], 3), ([0], 3))) == {}
    assert lives(program([*values, value("unused")], ([2], 3))) == {}


def test_pieces_of_a_whole_live_on_their_own_until_it_is_read() -> None:
    values = [value("x", kind="input"), value("whole", 192), value("a", 64, 1), value("b", 128, 1, 64)]
    found = lives(program([*values, value("c", 192)], ([0], 2), ([0], 3), ([0], 1), ([1], 4)))
    assert found["whole"] == {(2, 4, 0, 192), (0, 1, 0, 64), (1, 2, 64, 128)}
    unwritten = lives(program([*values, value("c", 192)], ([0], 2), ([0], 3), ([1], 4)))
    assert unwritten["whole"] == {(2, 3, 0, 192), (0, 3, 0, 64), (1, 3, 64, 128)}


def test_only_what_owns_bytes_is_rounded_up() -> None:
    values = [value("x", kind="input"), value("whole", 100), value("a", 36, 1), value("b", 64, 1, 36)]
    found = lives(program(values, ([0], 2), ([0], 3), ([0], 1)))
    assert {(offset, nbytes) for _, _, offset, nbytes in found["whole"]} == {(0, 128), (0, 36), (36, 64)}


def test_a_view_of_a_view_keeps_what_is_written_below_it() -> None:
    values = [value("x", kind="input"), value("a"), value("v", 32, 1, 32), value("w", 16, 2, 8), value("b")]
    one = program(values, ([0], 1), ([0], 4), ([3], 4))
    assert [offset_in_root(one, number) for number in range(5)] == [0, 0, 32, 40, 0]
    assert {(birth, death) for birth, death, *_ in lives(one)["a"]} >= {(0, 3)}


def test_scratchpads_live_for_their_step() -> None:
    values = [value("x", kind="input"), value("a"), value("b")]
    posed = arena_problem(program(values, ([0], 1), ([1], 2), scratch={1: 65}))
    assert (posed.values, posed.scratchpads) == ((1, 2), (1,))
    (item,) = [item for item in posed.problem.items if "scratchpad" in item.name]
    assert [(r.birth, r.death, r.nbytes) for r in item.rectangles] == [(1, 2, 128)]
    unknown = replace(program(values, ([0], 1)), values=tuple(values))
    assert arena_problem(unknown).scratchpads == ()


def test_when_inputs_and_outputs_are_touched() -> None:
    values = [
        value("x", kind="input"),
        value("y", kind="output"),
        value("a"),
        value("v", 32, 0),
        value("w", 32, 1),
    ]
    one = program(values, ([3], 2), ([2], 4), ([2], 2))
    assert boundary_lives(one, "input") == [(0, 1)]
    assert boundary_lives(one, "output") == [(1, 2)]
    assert boundary_lives(program(values, ([2], 2), ([2], 2)), "input") == [(0, 2)]
