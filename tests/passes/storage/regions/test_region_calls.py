"""Regions inside of a function's plan: their items at other times, and lives that end inside of a call."""

from __future__ import annotations

import pytest
import relax_programs as rp

from tvm_mxplan.core.allocation import Rectangle
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.storage import region_calls
from tvm_mxplan.passes.storage.region_calls import Region, Timeline, lends_arena, regions_of

RELU = ir.Eltwise("relu", 0.0, 0.0)


def region(calls: int = 1) -> Region:
    """a = s0(x), b = s1(a), y = s2(b, z): three steps, two locals, a scratchpad of 100 bytes in s1."""
    kinds: list[tuple[str, ir.ValueKind]] = [
        ("x", "input"), ("z", "input"), ("y", "output"), ("a", "local"), ("b", "local"),
    ]  # fmt: skip
    index = {"x": 0, "z": 1, "y": 0}
    values = tuple(
        ir.Value(name, (16,), "float32", kind, "a", index.get(name, -1), nbytes=64) for name, kind in kinds
    )

    def step(name: str, dst: int, *srcs: int, scratch: int = 0) -> ir.Step:
        operands = (*(ir.Operand("src", src) for src in srcs), ir.Operand("dst", dst))
        return ir.Step(name, RELU, operands, scratchpad_bytes=scratch)

    steps = (step("s0", 3, 0), step("s1", 4, 3, scratch=100), step("s2", 2, 4, 1))
    return Region.of(ir.Program("r", values, steps), calls)


def test_when_the_tensors_of_a_call_are_touched() -> None:
    one = region()
    assert one.touched == ((0, 1), (2, 3), (2, 3))
    assert (one.steps, one.calls) == (3, 1)


def test_items_begin_where_the_call_does() -> None:
    items = region().items(10, "main")
    found = {item.name: (item.rectangles, item.scope) for item in items}
    assert found == {
        "r.a": ((Rectangle(10, 12, 0, 64),), "main"),
        "r.b": ((Rectangle(11, 13, 0, 64),), "main"),
        "r.s1.scratchpad": ((Rectangle(11, 12, 0, 128),), "main"),
    }


def test_offsets_are_those_of_the_functions_plan() -> None:
    program = region().planned((256, 512, 1024), 4096)
    assert [value.offset for value in program.values] == [-1, -1, -1, 256, 512]
    assert [step.scratchpad_offset for step in program.steps] == [0, 1024, 0]
    assert program.arena_bytes == 4096


@pytest.mark.parametrize(("count", "lent"), [(3, False), (4, True), (5, False)])
def test_an_arena_is_one_argument_more(count: int, lent: bool) -> None:
    assert lends_arena(region(), [None] * count) == lent


# --- time --------------------------------------------------------------------------------------------------


def timeline() -> Timeline:
    """Four calls, of which the second is the region, with the allocations 7, 8 and 9 as x, z and y."""
    arguments = [frozenset({7}), frozenset({8}), frozenset({9})]
    return Timeline(4, {1: (region(), arguments)})


def test_a_region_takes_as_many_times_as_it_has_steps() -> None:
    assert timeline().starts == [0, 1, 4, 5, 6]
    assert Timeline(3, {}).starts == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("tensor", "interval", "fine"),
    [
        (7, (0, 2), (0, 2)),
        (8, (0, 2), (0, 4)),
        (8, (0, 4), (0, 6)),
        (9, (1, 3), (3, 5)),
        (9, (1, 2), (3, 4)),
        (5, (0, 2), (0, 4)),
        (5, (2, 4), (4, 6)),
    ],
)
def test_a_life_ends_with_the_step_that_reads_and_begins_with_the_one_that_writes(
    tensor: int, interval: tuple[int, int], fine: tuple[int, int]
) -> None:
    """A tensor that is no argument of the region is there for all of it."""
    assert timeline().fine(tensor, interval, born=True) == fine


def test_a_later_part_of_a_life_holds_something_from_the_start() -> None:
    assert timeline().fine(9, (1, 3), born=False) == (1, 5)
    assert timeline().fine(9, (1, 3), born=True) == (3, 5)


def test_an_allocation_in_two_arguments_is_touched_by_both() -> None:
    both = Timeline(2, {1: (region(), [frozenset({7}), frozenset({7}), frozenset({9})])})
    assert both.fine(7, (0, 2), born=True) == (0, 4)
    assert both.fine(7, (1, 2), born=True) == (1, 4)


# --- the regions of a module -------------------------------------------------------------------------------


def test_regions_that_are_called_and_planned_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """``a`` is called twice; ``b`` has no program of numbers, ``c`` no arena, nobody calls ``d``."""
    out = 'out_ty=R.Tensor((4, 6), "float32")'
    lines = [
        f'v{at} = R.call_dps_packed("{name}", ({f"v{at - 1}" if at else "x"},), {out})'
        for at, name in enumerate("abca")
    ]
    mod = rp.lower(rp.parse("\n".join([*lines, "return v3"]), 'x: R.Tensor((4, 6), "float32")'))
    planned, bare = region().planned((0, 64, 128), 256), region().planned((0, 64, 128), 0)
    programs = {"a": planned, "b": None, "c": bare, "d": planned}
    monkeypatch.setattr(region_calls, "_modules", lambda _mod: {name: name for name in programs})
    monkeypatch.setattr(region_calls, "_program", programs.__getitem__)
    found = regions_of(mod)
    assert list(found) == ["a"]
    assert (found["a"].calls, found["a"].program) == (2, planned)
