"""Costs of concatenations and slices in a layout: nothing where ``passes/memory`` will make views of them.

The two are decided there, after layouts; this is the forecast that the choice of layouts rests on.  It does
not know that a value can be a piece of one concatenation only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tvm_mxplan.core.element_types import stored_bytes
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.step_facts import Layouts, StepFacts

from ..memory.boxes import box_offset, piece_offsets
from .source import CostSource


def concat_cost(
    program: ir.Program, writers: Mapping[int, ir.Step], step: ir.Step, layouts: Layouts, cost: CostSource
) -> float:
    """Microseconds for copying the pieces that cannot be made where the whole stands.

    Parameters
    ----------
    writers : the step that writes each value of the program.
    """
    assert isinstance(step.attrs, ir.Concat)
    numbers = [value for _, value in operands_of(step)]
    *pieces, whole = _laid_out(program, numbers, layouts)
    offsets = piece_offsets(whole, step.attrs.axis, pieces)
    copied = sum(
        stored_bytes(piece.shape, piece.layout, piece.dtype)
        for number, piece, offset in zip(numbers, pieces, offsets, strict=False)
        if offset is None or not _is_made_for_it(program, writers, number, piece.layout)
    )
    share = copied / StepFacts(program, step, layouts).pieces_bytes
    return share * cost.copies(program, step, layouts) if copied else 0.0


def slice_cost(program: ir.Program, step: ir.Step, layouts: Layouts, cost: CostSource) -> float:
    """Microseconds for a slice: none for a view."""
    return 0.0 if _is_view(program, step, layouts) else cost.copies(program, step, layouts)


def _is_made_for_it(program: ir.Program, writers: Mapping[int, ir.Step], piece: int, layout: str) -> bool:
    """True if a step writes ``piece`` to bytes of its own, which may then be those of a concatenation."""
    writer, value = writers.get(piece), program.values[piece]
    if writer is None or value.kind != "local" or value.alias_of >= 0:
        return False
    return not isinstance(writer.attrs, ir.Slice) or not _is_view(program, writer, (layout, layout))


def _is_view(program: ir.Program, step: ir.Step, layouts: Layouts) -> bool:
    assert isinstance(step.attrs, ir.Slice)
    source, result = _laid_out(program, [step.operand("src"), step.dst], layouts)
    own = result.kind == "local" and result.alias_of < 0
    return own and box_offset(source, step.attrs.begin, result) is not None


def _laid_out(program: ir.Program, numbers: list[int], layouts: Layouts) -> list[ir.Value]:
    return [
        replace(program.values[number], layout=layout)
        for number, layout in zip(numbers, layouts, strict=True)
    ]
