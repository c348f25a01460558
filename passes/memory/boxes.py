"""Boxes of values that are one piece of memory: what concatenations and slices without copies rest on."""

from __future__ import annotations

from collections.abc import Sequence

from tvm_mxplan.core.element_types import item_bytes
from tvm_mxplan.core.layout.layout import dense_box
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import is_static, static_shape


def box_offset(whole: ir.Value, begin: Sequence[int], part: ir.Value) -> int | None:
    """Byte of ``whole`` at which a box of ``part``'s shape stands if ``part`` could view it; else None."""
    if (part.layout, part.dtype) != (whole.layout, whole.dtype):
        return None
    if not is_static((*whole.shape, *part.shape)):
        return None
    offset = dense_box(whole.layout, static_shape(whole.shape), begin, static_shape(part.shape))
    return None if offset is None else item_bytes(whole.dtype) * offset


def piece_offsets(whole: ir.Value, axis: int, pieces: Sequence[ir.Value]) -> list[int | None]:
    """For each piece of a concatenation along ``axis`` the byte of ``whole`` at which it could stand."""
    offsets, begin = [], [0] * len(whole.shape)
    for piece in pieces:
        offsets.append(box_offset(whole, begin, piece))
        extent = piece.shape[axis]
        if not isinstance(extent, int):
            return [None] * len(pieces)
        begin[axis] += extent
    return offsets
