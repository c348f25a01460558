"""Products of whose results only pieces are read are products with pieces of the weights.

Before   v1 = matmul(x, w [K,3*H*D]);  v2 = v1 seen as [3,H,rows,D];  q, k, v = slices of v2
After    q, k, v = matmul(x, w_q), matmul(x, w_k), matmul(x, w_v), each seen as [1,H,rows,D]

A piece that is cut out of every row has gaps between its rows, so it would be copied.  The piece's own
product writes it without, and what permutes the axes of heads is a view then, which attention and products
read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.layout.views import Seen, layout_through
from tvm_mxplan.core.program import program as ir

NARROWEST = 64
"""Columns of a piece: oneDNN's products take so many at once."""


@dataclass(frozen=True)
class _Piece:
    """A slice of a product's result: its step, the columns that it reads, layouts of what sees its result."""

    at: int
    columns: np.ndarray
    layouts: dict[int, str]


def cut_products(graph: Graph) -> bool:
    """Cuts every product with constant weights whose result is read by slices alone, along its columns.

    Returns whether there was any.
    """
    found = False
    for at, step in enumerate(list(graph.steps)):
        if step and isinstance(step.attrs, ir.MatMul):
            pieces = _pieces(graph, step)
            if pieces:
                _cut(graph, at, step, pieces)
                found = True
    return found


def _pieces(graph: Graph, step: ir.Step) -> list[_Piece]:
    """The pieces that are read of a product's result; none where it is to stay whole."""
    result = graph.values[step.dst]
    width, weights = result.shape[-1], graph.constant(step.operand("weights"))
    rows = math.prod(extent for extent in result.shape[:-1] if isinstance(extent, int))
    named = any(not isinstance(extent, int) for extent in result.shape[:-1])
    whole = result.kind == "local" and result.alias_of < 0
    cuts = weights is not None and weights.size == weights.shape[-2] * weights.shape[-1]
    if not (whole and cuts and isinstance(width, int) and (rows > 1 or named)):
        return []
    roles = {operand.role for operand in step.operands}
    if not roles <= {"src", "weights", "bias", "dst"}:
        return []
    if not all(isinstance(post_op, ir.EltwisePostOp) for post_op in step.post_ops):
        return []
    if "bias" in roles and not _is_row(graph.constant(step.operand("bias")), width):
        return []
    pieces: list[_Piece] = []
    for seen in graph.seen_as(step.dst):
        for at in graph.readers(seen):
            piece = _piece(graph, seen, at, width)
            if piece is None:
                return []
            pieces.append(piece)
    narrow = any(len(piece.columns) < NARROWEST for piece in pieces)
    return [] if narrow or sum(len(piece.columns) for piece in pieces) > width else pieces


def _is_row(bias: np.ndarray | None, width: int) -> bool:
    return bias is not None and bias.size == bias.shape[-1] == width


def _piece(graph: Graph, seen: int, at: int, width: int) -> _Piece | None:
    """The piece of a product's rows of ``width`` columns that a step reads, None if it reads no piece."""
    step, value = graph.steps[at], graph.values[seen]
    if step is None or not isinstance(step.attrs, ir.Slice):
        return None
    result, layout = graph.values[step.dst], parse_layout(value.layout)
    if result.kind != "local" or result.alias_of >= 0 or layout.blocks or value.alias_offset != 0:
        return None
    axes, extents = list[int](), list[int]()
    for axis in reversed(layout.order):
        extent = value.shape[axis]
        if math.prod(extents) == width or not isinstance(extent, int):
            break
        axes.insert(0, axis)
        extents.insert(0, extent)
    if math.prod(extents) != width:
        return None
    others = [axis for axis in range(len(value.shape)) if axis not in axes]
    if any(step.attrs.begin[a] != 0 or result.shape[a] != value.shape[a] for a in others):
        return None
    columns = np.arange(width).reshape(extents)
    for place, axis in enumerate(axes):
        begin, count = step.attrs.begin[axis], result.shape[axis]
        if not isinstance(count, int):
            return None
        columns = columns.take(range(begin, begin + count), axis=place)
    layouts = _layouts(graph, step.dst, value.layout)
    return None if layouts is None else _Piece(at, columns.ravel(), layouts)


def _layouts(graph: Graph, value: int, stored: str) -> dict[int, str] | None:
    """Layouts of a value and of its views where it is stored in another one; None where a view has none."""
    found = {value: stored}
    for number in graph.seen_as(value)[1:]:
        view = graph.values[number]
        base = graph.values[view.alias_of]
        if view.alias_offset != 0:
            return None
        layout = layout_through(
            Seen(base.shape, base.layout), Seen(view.shape, view.layout), found[view.alias_of]
        )
        if layout is None:
            return None
        found[number] = layout
    return found


def _cut(graph: Graph, at: int, step: ir.Step, pieces: list[_Piece]) -> None:
    result = graph.values[step.dst]
    names = [f"{step.name}_columns{piece.columns[0]}" for piece in pieces]
    for name, piece in zip(names, pieces, strict=True):
        slicing = graph.steps[piece.at]
        assert slicing is not None
        shape = (*result.shape[:-1], len(piece.columns))
        stored = piece.layouts[slicing.dst]
        alike = graph.values[slicing.dst].shape == shape and stored == result.layout
        first = f"_{piece.columns[0]}"
        made = slicing.dst if alike else graph.add_local(result.name + first, shape, result.dtype)
        operands = []
        for operand in step.operands:
            number = made if operand.role == "dst" else operand.value
            array = graph.constant(number) if operand.role in ("weights", "bias") else None
            if array is not None:
                of = graph.values[number]
                number = graph.add_constant(array[..., piece.columns], of.name + first, of.dtype)
            operands.append(ir.Operand(operand.role, number))
        graph.drop_into(piece.at, name)
        graph.insert_before(at, replace(step, name=name, operands=tuple(operands)))
        if not alike:
            graph.alias(slicing.dst, made, layout=stored)
            for number, layout in piece.layouts.items():
                graph.values[number] = replace(graph.values[number], layout=layout)
    for number in graph.seen_as(step.dst):
        graph.forget_views(number)
    graph.drop_into(at, names[0])
