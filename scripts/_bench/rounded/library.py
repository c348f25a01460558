"""A library that says it computes in bfloat16, wherever oneDNN does so in float32.

What it says of a step in bfloat16 is what oneDNN says of the same step in float32, with half the bytes.  So
types can be decided, and programs planned, on a processor that has none; nothing of it can run.
"""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.description import Description
from tvm_mxplan.core.program import program as ir

WIDE, SHORT = "float32", "bfloat16"


class StandIn(OneDNN):
    """See the file's text."""

    def lacks(self, dtype: str) -> str:
        return "" if dtype == SHORT else super().lacks(dtype)

    def describe(self, program: ir.Program) -> Description:
        found = super().describe(widened(program))
        values = tuple(
            replace(info, nbytes=info.nbytes // 2) if value.dtype == SHORT and info.nbytes > 0 else info
            for info, value in zip(found.values, program.values, strict=True)
        )
        return replace(found, values=values)


def widened(program: ir.Program) -> ir.Program:
    """The program with float32 in place of bfloat16."""
    values = tuple(
        replace(value, dtype=WIDE, alias_offset=2 * value.alias_offset) if value.dtype == SHORT else value
        for value in program.values
    )
    return replace(program, values=values)
