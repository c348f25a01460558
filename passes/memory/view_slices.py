"""Slices without copies: what is one piece of its source's memory is a view of it.

Before   v2 = slice(v1) begin=(0, 32, 0, 0);  v3 = convolution(v2, ...)
After    v2 aliases v1 at the byte of its first element, and no step writes it;  v3 = convolution(v2, ...)

    v1   | channels 0 .. 31 | v2: channels 32 .. 63 |      one image, channels blocked or plain

A slice that the region returns stays a copy: an output is the caller's memory.  So does one that is stored in
pieces (some channels of several images, or of channels last), for which oneDNN has reference code only.
"""

from __future__ import annotations

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.graph import Graph
from tvm_mxplan.core.program.renumber import sort_values

from .boxes import box_offset


def view_slices(program: ir.Program) -> ir.Program:
    """The program with views in place of slice steps where the layout allows."""
    graph = Graph(program)
    for at, step in enumerate(program.steps):
        offset = _view_offset(graph.values, step)
        if offset is not None:
            graph.drop(at)
            graph.alias(step.dst, step.operand("src"), offset)
    return sort_values(graph.finish())


def _view_offset(values: list[ir.Value], step: ir.Step) -> int | None:
    """Byte of the source at which the result of ``step`` begins if it can be a view."""
    if not isinstance(step.attrs, ir.Slice):
        return None
    source, result = values[step.operand("src")], values[step.dst]
    if result.kind != "local" or result.alias_of >= 0:
        return None
    return box_offset(source, step.attrs.begin, result)
