"""Elementwise steps in front of the concatenation that they read, next to what made each of its pieces.

Before   v1 = convolution(x, w);  v2 = convolution(y, u);  v3 = concat(v1, v2)
         v4 = binary mul(v3, s);  v5 = eltwise relu(v4)
After    v1 = relu(mul(convolution(x, w), s1));  v2 = relu(mul(convolution(y, u), s2));  v5 = concat(v1, v2)

As in mixed convolutions, whose batch norm and activation stand behind all of them. There they fold into
weights or become post-ops, and what was joined is not read and written again. Steps with a constant go along
that has one number, or one for each channel; what is added from elsewhere, as residuals are, stays.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.program import program as ir

from ..broadcasting import is_per_channel

_IMAGES, _ROWS = (ir.Convolution, ir.Deconvolution), (ir.MatMul, ir.InnerProduct)


def put_before_concats(graph: Graph) -> None:
    """Moves every step that can be; a step that follows one that was moved moves as well."""
    moved: set[int] = set()  # values that moved steps write
    for at, step in enumerate(list(graph.steps)):
        if step and isinstance(step.attrs, ir.Eltwise | ir.Binary) and not step.post_ops:
            _move(graph, at, step, moved)


def _move(graph: Graph, at: int, step: ir.Step, moved: set[int]) -> None:
    joined = step.operand("src")
    writer = graph.producer(joined)
    concat = graph.steps[writer] if writer is not None else None
    if writer is None or concat is None or not isinstance(concat.attrs, ir.Concat):
        return
    value, result, pieces = graph.values[joined], graph.values[step.dst], tuple(concat.reads())
    if result.shape != value.shape or result.dtype != value.dtype:
        return
    if not all(_is_made_by_one(graph, piece, concat.attrs.axis, moved) for piece in pieces):
        return
    constants: list[int] | list[None] | None = [None] * len(pieces)
    if isinstance(step.attrs, ir.Binary):
        constants = _sections(graph, step.operand("src1"), pieces, value, concat.attrs.axis)
    if constants is None:
        return
    made = [
        _put_behind(graph, piece, step, number, f"{step.name}.piece{i}")
        for i, (piece, number) in enumerate(zip(pieces, constants, strict=True))
    ]
    moved.update(made)
    operands = (*(ir.Operand("src", piece) for piece in made), ir.Operand("dst", step.dst))
    graph.drop_into(at, f"{step.name}.piece0")
    graph.replace(writer, replace(concat, operands=operands))


def _is_made_by_one(graph: Graph, piece: int, axis: int, moved: set[int]) -> bool:
    """Whether the concatenation alone reads the result of a step that takes post-ops along the axis."""
    writer = graph.producer(piece)
    maker = graph.steps[writer] if writer is not None else None
    if maker is None or maker.has_depthwise:
        return False
    rank = len(graph.values[piece].shape)
    on_channels = isinstance(maker.attrs, _IMAGES) and axis == 1
    return piece in moved or on_channels or (isinstance(maker.attrs, _ROWS) and axis == rank - 1)


def _sections(
    graph: Graph, constant: int, pieces: tuple[int, ...], joined: ir.Value, axis: int
) -> list[int] | None:
    """For each piece the constant's numbers; None where it has others for other places, or is none."""
    array, name, dtype = graph.constant(constant), graph.values[constant].name, graph.values[constant].dtype
    if array is None or not is_per_channel(array.shape, joined.shape, axis):
        return None
    extents = [graph.values[piece].shape[axis] for piece in pieces]
    if not all(isinstance(extent, int) for extent in extents):
        return None
    rank = len(joined.shape)
    row = np.broadcast_to(array.reshape(-1), (int(sum(extents)),)).copy()  # type: ignore[arg-type]
    parts = np.split(row, np.cumsum(extents)[:-1])  # type: ignore[arg-type]
    shape = (*(1,) * axis, -1, *(1,) * (rank - 1 - axis))
    return [graph.add_constant(part.reshape(shape), name, dtype) for part in parts]


def _put_behind(graph: Graph, piece: int, step: ir.Step, constant: int | None, name: str) -> int:
    """The step on a piece alone; the number of its result."""
    value = graph.values[piece]
    result = graph.add_local(name, value.shape, value.dtype)
    operands = [ir.Operand("src", piece), ir.Operand("dst", result)]
    if constant is not None:
        operands.insert(1, ir.Operand("src1", constant))
    writer = graph.writer(piece)
    assert writer is not None
    graph.insert_after(writer, ir.Step(name, step.attrs, tuple(operands)))
    return result
