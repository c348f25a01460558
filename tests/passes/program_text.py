"""Region programs as short text, for tests that show a program before and after."""

from __future__ import annotations

import textwrap

from tvm_mxplan.core.program import program as ir


def text(program: ir.Program) -> str:
    """One line for each step: ``result layout = kind(operand layout, ...)``; views say what they view."""
    return "\n".join(_line(program, step) for step in program.steps)


def lines(expected: str) -> str:
    """An indented block as :func:`text` writes it."""
    return textwrap.dedent(expected).strip()


def _line(program: ir.Program, step: ir.Step) -> str:
    operands = [_value(program, o.value) for o in step.operands if o.role not in ("dst", "weights", "bias")]
    post_ops = [
        f" + {post_op.algorithm} {_value(program, post_op.value)}"
        for post_op in step.post_ops
        if isinstance(post_op, ir.BinaryPostOp)
    ]
    return f"{_value(program, step.dst)} = {step.kind}({', '.join(operands)}){''.join(post_ops)}"


def _value(program: ir.Program, number: int) -> str:
    value = program.values[number]
    view = f" of {program.values[value.alias_of].name}" if value.alias_of >= 0 else ""
    return f"{value.name} {value.layout}{view}"
