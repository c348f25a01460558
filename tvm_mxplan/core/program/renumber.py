"""Putting a program's values in an order in which every alias follows what it views."""

from __future__ import annotations

from dataclasses import replace

from . import program as ir
from .operands import renumbered


def sort_values(program: ir.Program) -> ir.Program:
    """The same program, values ordered by the depth of their alias chains and else as they were.

    Raises
    ------
    ValueError : the aliases form a cycle.
    """
    depths = _depths(program)
    order = sorted(range(len(program.values)), key=lambda number: depths[number])
    return select_values(program, order)


def select_values(program: ir.Program, order: list[int]) -> ir.Program:
    """The program with the values ``order``, given as old numbers; steps must not need any other."""
    number = {old: new for new, old in enumerate(order)}
    values = []
    for old in order:
        value = program.values[old]
        values.append(replace(value, alias_of=number[value.alias_of]) if value.alias_of >= 0 else value)
    steps = tuple(renumbered(step, number) for step in program.steps)
    return replace(program, values=tuple(values), steps=steps)


def _depths(program: ir.Program) -> list[int]:
    """Counts the aliases between each value and the one that owns its bytes."""
    unknown, visited = -1, -2
    depths = [unknown] * len(program.values)
    for number in range(len(program.values)):
        way: list[int] = []
        value = number
        while value >= 0 and depths[value] == unknown:
            depths[value] = visited
            way.append(value)
            value = program.values[value].alias_of
        if value >= 0 and depths[value] == visited:
            raise ValueError(f"{program.name}: the aliases of {program.values[value].name} form a cycle")
        depth = depths[value] if value >= 0 else -1
        for passed in reversed(way):
            depth += 1
            depths[passed] = depth
    return depths
