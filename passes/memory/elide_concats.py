"""Concatenation without copies: pieces are written where the whole will stand.

Before   v1 = convolution(...);  v2 = convolution(...);  v3 = concat(v1, v2)
After    v1 and v2 alias v3 at their offsets; concat has nothing left to copy

    v3   | v1: channels 0 .. 31 | v2: channels 32 .. 63 |      one image, channels blocked or plain

It works where a piece is contiguous inside the whole: every dimension outside the concatenated one has one
element, and pieces begin and end at block boundaries.  Chains (DenseNet) nest: a whole may be a piece itself.
"""

from __future__ import annotations

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.graph import Graph
from tvm_mxplan.core.program.renumber import sort_values

from .boxes import piece_offsets
from .liveness import offset_in_root


def elide_concats(program: ir.Program) -> ir.Program:
    """The program with every piece aliased into its whole where the layout allows."""
    graph = Graph(program)
    for step in program.steps:
        if isinstance(step.attrs, ir.Concat):
            pieces = [operand.value for operand in step.operands if operand.role == "src"]
            _alias_pieces(graph, step.attrs.axis, pieces, step.dst)
    return sort_values(graph.finish())


def copied_pieces(program: ir.Program, step: ir.Step) -> list[int]:
    """Pieces that a concat step still copies."""
    assert isinstance(step.attrs, ir.Concat)
    numbers = [operand.value for operand in step.operands if operand.role == "src"]
    whole, start = program.values[step.dst], offset_in_root(program, step.dst)
    offsets = piece_offsets(whole, step.attrs.axis, [program.values[number] for number in numbers])
    return [
        number
        for number, offset in zip(numbers, offsets, strict=True)
        if offset is None
        or program.root(number) != program.root(step.dst)
        or offset_in_root(program, number) != start + offset
    ]


def _alias_pieces(graph: Graph, axis: int, pieces: list[int], whole: int) -> None:
    values = graph.values
    offsets = piece_offsets(values[whole], axis, [values[piece] for piece in pieces])
    for piece, offset in zip(pieces, offsets, strict=True):
        number = _owner(graph, piece)
        own = values[number].kind == "local" and values[number].alias_of < 0
        if own and graph.writer(number) is not None and number != whole and offset is not None:
            graph.alias(number, whole, offset)


def _owner(graph: Graph, number: int) -> int:
    """The value of which ``number`` is all bytes, seen in another shape or under another layout's name."""
    values = graph.values
    while graph.writer(number) is None and values[number].alias_of >= 0:
        value, base = values[number], values[values[number].alias_of]
        if value.alias_offset != 0 or value.nbytes != base.nbytes:
            break
        number = value.alias_of
    return number
