"""A region program as text, for people who follow what the phases of a compilation make of it.

    program mxplan_onednn_0, arena 4096 bytes
      input x: float32 (1, 3, 8, 8) abcd, 768 bytes
      local t0: float32 (1, 17, 8, 8) acdb, 4352 bytes at 0
      conv2d_0 = convolution(src=x, weights=w, dst=t0) Convolution(...) + EltwisePostOp(...) in jit:avx2

What is not decided yet is left out.
"""

from __future__ import annotations

from . import program as ir


def program_text(program: ir.Program) -> str:
    """All values and all steps, a line each."""
    arena = f", arena {program.arena_bytes} bytes" if program.arena_bytes >= 0 else ""
    symbols = "".join(f", {one.name} is axis {one.axis} of input {one.input}" for one in program.symbols)
    values = [_value_text(program, value) for value in program.values]
    steps = [_step_text(program, step) for step in program.steps]
    return "\n  ".join([f"program {program.name}{arena}{symbols}", *values, *steps])


def _value_text(program: ir.Program, value: ir.Value) -> str:
    text = f"{value.kind} {value.name}: {value.dtype} ({', '.join(map(str, value.shape))}) {value.layout}"
    if value.state >= 0:
        text += f", state {value.state}"
    if value.nbytes >= 0:
        text += f", {value.nbytes} bytes"
    if value.alias_of >= 0:
        return f"{text} in {program.values[value.alias_of].name} from byte {value.alias_offset}"
    return f"{text} at {value.offset}" if value.offset >= 0 else text


def _step_text(program: ir.Program, step: ir.Step) -> str:
    operands = ", ".join(f"{one.role}={program.values[one.value].name}" for one in step.operands)
    post_ops = "".join(f" + {post_op}" for post_op in step.post_ops)
    text = f"{step.name} = {step.kind}({operands}) {step.attrs}{post_ops}"
    if step.library:
        text += f" by {step.library}"
    if step.implementation:
        text += f" in {step.implementation}"
    if step.scratchpad_bytes > 0:
        text += f", scratchpad {step.scratchpad_bytes} bytes at {step.scratchpad_offset}"
    return text
