"""A region program as text: all that is decided, nothing that is not."""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.program_text import program_text

VALUES = (
    ir.Value("x", (2, 17, 3), "float32", "input", "abc", 0),
    ir.Value("t", (2, 17, 3), "float32", "local", "acb"),
    ir.Value("y", (2, 17, 3), "float32", "output", "abc", 0),
)
STEPS = (
    ir.Step("relu_0", ir.Eltwise("relu", 0.0, 0.0), (ir.Operand("src", 0), ir.Operand("dst", 1))),
    ir.Step("reorder0", ir.Reorder(), (ir.Operand("src", 1), ir.Operand("dst", 2))),
)
PROGRAM = ir.Program("region", VALUES, STEPS)


def test_nothing_is_decided() -> None:
    assert program_text(PROGRAM).splitlines() == [
        "program region",
        "  input x: float32 (2, 17, 3) abc",
        "  local t: float32 (2, 17, 3) acb",
        "  output y: float32 (2, 17, 3) abc",
        "  relu_0 = eltwise(src=x, dst=t) Eltwise(algorithm='relu', alpha=0.0, beta=0.0)",
        "  reorder0 = reorder(src=t, dst=y) Reorder()",
    ]


def test_all_is_decided() -> None:
    planned = replace(
        PROGRAM.with_value(1, nbytes=408, alias_of=0, alias_offset=4).with_value(2, nbytes=408, offset=64),
        steps=(replace(STEPS[0], implementation="jit", scratchpad_bytes=7, scratchpad_offset=512), STEPS[1]),
        symbols=(ir.SymbolBinding("n", 0, 1),),
        arena_bytes=576,
    )
    lines = program_text(planned).splitlines()
    assert lines[0] == "program region, arena 576 bytes, n is axis 1 of input 0"
    assert lines[2].endswith("acb, 408 bytes in x from byte 4")
    assert lines[3].endswith("abc, 408 bytes at 64")
    assert lines[4].endswith(" in jit, scratchpad 7 bytes at 512")
    first = program_text(PROGRAM.with_value(1, offset=0, nbytes=0)).splitlines()
    assert first[2] == "  local t: float32 (2, 17, 3) acb, 0 bytes at 0"
    state = program_text(PROGRAM.with_value(0, state=0, nbytes=8)).splitlines()
    assert state[1] == "  input x: float32 (2, 17, 3) abc, state 0, 8 bytes"
    small = replace(STEPS[0], library="host", implementation="jit", scratchpad_bytes=1, scratchpad_offset=0)
    lines = program_text(replace(PROGRAM, steps=(small, STEPS[1]), arena_bytes=0)).splitlines()
    assert lines[0] == "program region, arena 0 bytes"
    assert lines[4].endswith(" by host in jit, scratchpad 1 bytes at 0")
