"""Products of many small matrices with one matrix are one product.

Before   v1 = matmul(v0 [N,H,W,K], w [1,1,K,M])               N * H products of W rows
After    v1 = matmul(v0 seen as [N*H*W,K], w seen as [K,M])   the bytes stay

oneDNN 3.2 begins anew for each of the small ones: seven products of 7 rows take four times as long as one of
49, and eight of one row four times as long as one of eight.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm_mxplan.byoc.composite import product
from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.layout.layout import parse_layout, plain_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Dim, Shape
from tvm_mxplan.core.program.operands import operands_of, with_operands


def merge_rows(graph: Graph) -> None:
    """Merges the rows of every product that has one second operand for all of them."""
    for at, step in enumerate(graph.steps):
        if step and isinstance(step.attrs, ir.MatMul) and len(graph.values[step.dst].shape) > 2:
            seen = [_seen(graph, step, role, number) for role, number in operands_of(step)]
            if None not in seen and not any(isinstance(post_op, ir.SumPostOp) for post_op in step.post_ops):
                graph.replace(at, with_operands(step, _views(graph, step, seen)))


def _seen(graph: Graph, step: ir.Step, role: str, number: int) -> tuple[Shape, str] | None:
    """Shape and layout of an operand of the one product; None where it cannot be seen so."""
    value, whole = graph.values[number], graph.values[step.dst].shape
    shape, plain = value.shape, value.layout == plain_layout(len(value.shape))
    if len(shape) > 1 and role != "weights" and (role == "src" or shape == whole):
        return ((rows_of(shape), shape[-1]), "ab") if plain else None
    return seen_by_all_rows(role, value)


def seen_by_all_rows(role: str, value: ir.Value) -> tuple[Shape, str] | None:
    """Shape and layout of weights as one matrix, of another operand as one row; None where there are more."""
    shape, layout = value.shape, parse_layout(value.layout)
    if len(shape) == 1:
        return shape, value.layout
    if layout.blocks or not all(extent == 1 for extent in shape[:-2]):
        return None
    if role == "weights":
        along = [axis for axis in layout.order if axis >= len(shape) - 2]
        return shape[-2:], "ab" if along == sorted(along) else "ba"
    return (shape[-2:], "ab") if value.layout == plain_layout(len(shape)) and shape[-2] == 1 else None


def view_of(graph: Graph, number: int, seen: tuple[Shape, str]) -> int:
    """A view of an operand in a shape and a layout; itself if it is a vector, which all rows read alike."""
    shape, layout = seen
    value = graph.values[number]
    if len(value.shape) == 1:
        return number
    return graph.add(value.inside(shape=shape, layout=layout, alias_of=number, alias_offset=0))


def _views(graph: Graph, step: ir.Step, seen: Sequence[tuple[Shape, str] | None]) -> list[int]:
    """Views of all operands; a result with bytes of its own becomes a view instead."""
    views = []
    for (role, number), found in zip(operands_of(step), seen, strict=True):
        value = graph.values[number]
        shape, layout = found or (value.shape, value.layout)
        if role in ir.RESULT_ROLES and value.kind == "local" and value.alias_of < 0:
            views.append(graph.add(value.inside(shape=shape, layout=layout)))
            graph.alias(number, views[-1])
        else:
            views.append(view_of(graph, number, (shape, layout)))
    return views


def rows_of(shape: Shape) -> Dim:
    """The number of rows in all matrices of a shape, known extents multiplied first."""
    extents = shape[:-1]
    known = [extent for extent in extents if isinstance(extent, int)]
    named = [extent for extent in extents if not isinstance(extent, int)]
    return product((*known, *named))
