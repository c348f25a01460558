"""Regions of one function as one program: what is one value, what stays a border, whose steps are whose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.passes.borders.whole_program import RegionUse, joined

SHAPE = (1, 17, 6, 5)
POOL = ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1))
X, W, Y, Z = 10, 11, 12, 13
"""Tensors of the function."""


def forward() -> ir.Program:
    """y = pool(x) + w"""
    b = ProgramBuilder("forward")
    x, w = (b.port("input", name, SHAPE, "float32") for name in "xw")
    pooled = b.step("pool", POOL, SHAPE, [("src", x)])
    total = b.step("add", ir.Binary("add"), SHAPE, [("src", pooled), ("src1", w)])
    b.write_output(total, b.port("output", "y", SHAPE, "float32"))
    return b.finish()


def backward(shape: tuple[int, ...] = SHAPE) -> ir.Program:
    """z = pool(y) * w, and a constant"""
    b = ProgramBuilder("backward")
    w, y = (b.port("input", name, shape, "float32") for name in "wy")
    pooled = b.step("max", POOL, shape, [("src", y)])
    scaled = b.step("multiply", ir.Binary("mul"), shape, [("src", pooled), ("src1", w)])
    one = b.constant(np.ones((1, 1, 1, 1), np.float32))
    moved = b.step("shift", ir.Binary("add"), shape, [("src", scaled), ("src1", one)])
    b.write_output(moved, b.port("output", "z", shape, "float32"))
    return b.finish()


def uses(free: set[int]) -> list[RegionUse]:
    return [RegionUse(forward(), (X, W), (Y,), free), RegionUse(backward(), (W, Y), (Z,), free)]


def names(steps: tuple[ir.Step, ...]) -> list[str]:
    return [step.name for step in steps]


def test_what_one_region_gives_the_next_one_reads_as_the_same_value() -> None:
    program, (first, second) = joined(uses({Y}))
    assert program.states() == []
    added, read = program.steps[1], program.steps[2]
    assert read.operand("src") == added.dst
    assert program.values[program.root(added.dst)].kind == "local"
    assert [names(program.steps[part.steps]) for part in (first, second)] == [
        ["pool0", "add0"],
        ["max0", "multiply0", "shift0"],
    ]


def test_an_input_of_both_regions_is_one_value() -> None:
    program, (first, second) = joined(uses({Y}))
    assert program.steps[1].operand("src1") == program.steps[3].operand("src1")
    assert sum(value.kind == "input" for value in program.values) == 2
    assert first.values[1] == second.values[0]


def test_what_something_else_reads_stays_an_output_and_is_read_all_the_same() -> None:
    program, _ = joined(uses(set()))
    added, read = program.steps[1], program.steps[2]
    assert read.operand("src") == added.dst
    assert program.values[program.root(added.dst)].kind == "output"


def test_each_part_says_what_its_values_became() -> None:
    programs = [use.program for use in uses({Y})]
    program, parts = joined(uses({Y}))
    for own, part in zip(programs, parts, strict=True):
        assert len(part.values) == len(own.values)
        for step, moved in zip(own.steps, program.steps[part.steps], strict=True):
            pairs = zip(step.operands, moved.operands, strict=True)
            assert all(part.values[old.value] == new.value for old, new in pairs)
        for number, value in enumerate(own.values):
            if value.alias_of >= 0:
                assert program.values[part.values[number]].alias_of == part.values[value.alias_of]


def test_a_tensor_that_is_seen_in_another_shape_is_a_value_of_its_own() -> None:
    other = RegionUse(backward((1, 17, 5, 6)), (W, Y), (Z,), {Y})
    program, (_, second) = joined([uses({Y})[0], other])
    assert program.steps[2].operand("src") != program.steps[1].dst
    assert len(set(second.values)) == len(second.values)


def test_an_output_made_in_pieces_is_read_from_outside() -> None:
    first = forward()
    again = replace(first.steps[1], name="again")
    twice = RegionUse(replace(first, steps=(*first.steps, again)), (X, W), (Y,), {Y})
    program, _ = joined([twice, uses({Y})[1]])
    assert program.values[program.steps[3].operand("src")].kind == "input"
