"""Tells which broadcasts of a second operand run as oneDNN's generated code, and which as slow reference.

Axes fall into *runs*: neighbours that the operand has in full, or that it is broadcast along.

    dst (2, 17, 5, 7), operand (1, 17, 1, 1)      runs  broadcast | full | broadcast
"""

from __future__ import annotations

from itertools import groupby

from tvm_mxplan.core.program.dims import Shape

Runs = list[tuple[bool, list[int]]]


def broadcast_runs(operand: Shape, dst: Shape) -> Runs:
    """For each run whether the operand is broadcast along it, and its axes; extents of 1 join a neighbour."""
    flags: list[bool | None] = [
        None if extent == 1 else size != extent for size, extent in zip(operand, dst, strict=True)
    ]
    known = next((flag for flag in flags if flag is not None), False)
    filled = []
    for flag in flags:
        known = known if flag is None else flag
        filled.append(known)
    return [(flag, list(axes)) for flag, axes in groupby(range(len(dst)), lambda axis: filled[axis])]


def is_fast(operand: Shape, dst: Shape) -> bool:
    """True if oneDNN 3.2 generates code for a binary step with these shapes as they are.

    That is: all axes, the trailing ones (with or without the batch), the channels (axis 1), batch and
    channels, or none.  An extent of 1 counts as broadcast.
    """
    if operand == dst:
        return True
    rank = len(dst)
    full = [axis for axis, size in enumerate(operand) if size != 1]
    if full in ([], [1], [0, 1]) or rank <= 2:
        return True
    without_batch = full[1:] if full[0] == 0 else full
    return bool(without_batch) and without_batch == list(range(without_batch[0], rank))


def can_be_fast(operand: Shape, dst: Shape) -> bool:
    """True if the shapes are fast, or become so once each run is seen as one axis."""
    return is_fast(operand, dst) or len(broadcast_runs(operand, dst)) <= 3


def is_per_channel(operand: Shape, dst: Shape, axis: int) -> bool:
    """True for a vector along ``axis`` and for a single number."""
    return all(size == (dst[dim] if dim == axis and size != 1 else 1) for dim, size in enumerate(operand))
