"""Putting a program's values in an order in which every alias follows what it views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from . import program as ir


def sort_values(program: ir.Program) -> ir.Program:
    """The same program, values ordered by the depth of their alias chains and else as they were.

    Raises
    ------
    ValueError : the aliases form a cycle.
    """
    depths = [_depth(program, number) for number in range(len(program.values))]
    order = sorted(range(len(program.values)), key=lambda number: depths[number])
    return select_values(program, order)


def select_values(program: ir.Program, order: list[int]) -> ir.Program:
    """The program with the values ``order``, given as old numbers; steps must not need any other."""
    number = {old: new for new, old in enumerate(order)}
    values = []
    for old in order:
        value = program.values[old]
        values.append(
            replace(value, alias_of=number[value.alias_of]) if value.alias_of >= 0 else value
        )
    steps = tuple(renumber_step(step, number) for step in program.steps)
    return replace(program, values=tuple(values), steps=steps)


def renumber_step(step: ir.Step, number: Mapping[int, int]) -> ir.Step:
    """``step`` with every value ``v`` replaced by ``number[v]``."""
    operands = tuple(ir.Operand(operand.role, number[operand.value]) for operand in step.operands)
    post_ops = tuple(
        replace(post_op, value=number[post_op.value]) if isinstance(post_op, ir.BinaryPostOp) else post_op
        for post_op in step.post_ops
    )
    return replace(step, operands=operands, post_ops=post_ops)


def _depth(program: ir.Program, value: int) -> int:
    depth = 0
    while program.values[value].alias_of >= 0:
        value = program.values[value].alias_of
        depth += 1
        if depth > len(program.values):
            raise ValueError(f"{program.name}: the aliases of {program.values[value].name} form a cycle")
    return depth
