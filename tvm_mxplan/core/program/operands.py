"""Everything that a step touches as one list: operands in their order, then those of its post-ops.

Whoever puts other values into a step, or says something of each of its operands, goes by this order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from . import program as ir

POST_OP = "post_op"
"""The role of what a binary post-op reads."""
Pick: TypeAlias = Callable[[int, str, int], int]
"""Gives the value that an operand becomes: by its place in the list, its role, and its value now."""


def operands_of(step: ir.Step) -> list[tuple[str, int]]:
    """Roles and values of everything a step touches: operands, then those of its post-ops."""
    pairs = [(operand.role, operand.value) for operand in step.operands]
    pairs += [(POST_OP, p.value) for p in step.post_ops if isinstance(p, ir.BinaryPostOp)]
    return pairs


def with_operands(step: ir.Step, values: Sequence[int]) -> ir.Step:
    """The step with other values, one for each of :func:`operands_of`."""
    count = len(step.operands)
    expected = len(operands_of(step))
    assert len(values) == expected, f"{step.name}: {len(values)} values for {expected} operands"
    operands = tuple(
        ir.Operand(operand.role, value) for operand, value in zip(step.operands, values[:count], strict=True)
    )
    rest = iter(values[count:])
    post_ops = tuple(
        replace(post_op, value=next(rest)) if isinstance(post_op, ir.BinaryPostOp) else post_op
        for post_op in step.post_ops
    )
    return replace(step, operands=operands, post_ops=post_ops)


def rewired(step: ir.Step, read: Pick, write: Pick) -> ir.Step:
    """The step with the values that ``read`` picks for all that it reads, then ``write`` for its results."""
    uses = list(enumerate(operands_of(step)))
    picked = {at: read(at, role, value) for at, (role, value) in uses if role not in ir.RESULT_ROLES}
    picked |= {at: write(at, role, value) for at, (role, value) in uses if role in ir.RESULT_ROLES}
    return with_operands(step, [picked[at] for at, _ in uses])


def renumbered(step: ir.Step, number: Mapping[int, int]) -> ir.Step:
    """The step with every value ``v`` replaced by ``number[v]``."""
    return with_operands(step, [number[value] for _, value in operands_of(step)])


def reorder(name: str, src: int, dst: int, library: str = "") -> ir.Step:
    """A step that writes ``src`` to ``dst`` in the layout and type that it has there."""
    operands = (ir.Operand("src", src), ir.Operand("dst", dst))
    return ir.Step(name, ir.Reorder(), operands, library=library)
