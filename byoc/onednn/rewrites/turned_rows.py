"""Products of permuted rows are products of the rows in the order in which they stand.

Before   v1 = x [2,50,K] seen as [50,2,K];  v2 = matmul(v1, w) [50,2,M];  v3 = v2 seen as [2,50,M]
After    v3 = matmul(x seen as [100,K], w) [100,M] seen as [2,50,M]

A product with one matrix for all rows does not care for their order, and the permutation costs nothing
where what reads the result permutes it back, or is attention, which reads rows where they stand.  Models
that attend with places in front of samples turn their rows there and back around every attention.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.layout.layout import parse_layout, plain_layout
from tvm_mxplan.core.layout.views import Seen, layout_through
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Shape
from tvm_mxplan.core.program.operands import operands_of, with_operands

from .merged_rows import rows_of, seen_by_all_rows, view_of

_OPERANDS = {"src", "weights", "bias", "dst"}
_ROWS_OF_ATTENTION = ("src", "key", "value")


@dataclass(frozen=True)
class _Rows:
    """A product's rows: the value that holds them, and how they are ordered there.

    Attributes
    ----------
    value : with the rows' bytes, all of them.
    shape : of the source in the product's order, split so far that ``layout`` can tell where rows stand.
    """

    value: int
    shape: Shape
    layout: str


def turn_rows(graph: Graph) -> bool:
    """Turns every product whose readers all see its result as it stands then.

    Returns whether there was any.
    """
    found = False
    for at, step in enumerate(list(graph.steps)):
        if step and isinstance(step.attrs, ir.MatMul) and not step.post_ops:
            rows = _rows(graph, step.operand("src"))
            if rows and {operand.role for operand in step.operands} <= _OPERANDS:
                found |= _turn(graph, at, step, rows)
    return found


def _rows(graph: Graph, src: int) -> _Rows | None:
    """The source's rows where they stand in another order, or the copy's that was made of such."""
    value, chain = graph.values[src], graph.chain(src)
    if any(graph.values[number].alias_offset != 0 for number in chain):
        return None
    if value.layout != plain_layout(len(value.shape)):
        return _ordered(_Rows(src, value.shape, value.layout))
    writer = graph.writer(chain[-1])
    copy = graph.steps[writer] if writer is not None else None
    if copy is None or not isinstance(copy.attrs, ir.Reorder):
        return None
    copied, source = graph.values[chain[-1]], graph.values[copy.operand("src")]
    at = _columns(source.shape, value.shape[-1])
    if at is None or copied.layout != plain_layout(len(copied.shape)) or copied.dtype != source.dtype:
        return None
    shape = (*source.shape[:at], value.shape[-1])
    if rows_of(shape) != rows_of(value.shape):
        return None  # a part of the rows
    plain = plain_layout(len(copied.shape)), plain_layout(len(shape))
    layout = layout_through(Seen(copied.shape, plain[0]), Seen(shape, plain[1]), source.layout)
    return _ordered(_Rows(copy.operand("src"), shape, layout)) if layout else None


def _columns(shape: Shape, width: object) -> int | None:
    """The first of the last dimensions that hold ``width`` elements together."""
    extent = 1
    for at in reversed(range(len(shape))):
        dim = shape[at]
        if not isinstance(dim, int):
            return None
        extent *= dim
        if extent == width:
            return at
    return None


def _ordered(rows: _Rows) -> _Rows | None:
    """``rows`` if it is rows that are permuted, and nothing else."""
    layout = parse_layout(rows.layout)
    last = layout.order[-1] == len(rows.shape) - 1
    return rows if last and not layout.blocks and rows.layout != plain_layout(len(rows.shape)) else None


def _turn(graph: Graph, at: int, step: ir.Step, rows: _Rows) -> bool:
    """Turns the product at ``at`` if its readers allow that; whether they do."""
    result = graph.values[step.dst]
    shared = [seen_by_all_rows(role, graph.values[number]) for role, number in _shared(step)]
    if result.kind != "local" or result.alias_of >= 0 or None in shared:
        return False
    whole = Seen((*rows.shape[:-1], result.shape[-1]), plain_layout(len(rows.shape)))
    layouts: dict[int, str] = {}
    for number in graph.seen_as(step.dst):
        value = graph.values[number]
        if graph.writer(number) is not None and number != step.dst:
            return False
        if graph.reads(number):
            layout = layout_through(whole, Seen(value.shape, value.layout), rows.layout)
            if layout is None or value.alias_offset != 0 or not _may_stand_so(graph, number, layout):
                return False
            layouts[number] = layout
    _write(graph, at, step, rows, layouts)
    return True


def _shared(step: ir.Step) -> list[tuple[str, int]]:
    return [(role, number) for role, number in operands_of(step) if role in ("weights", "bias")]


def _write(graph: Graph, at: int, step: ir.Step, rows: _Rows, layouts: dict[int, str]) -> None:
    """Puts the product of the rows as they stand in its place, and what sees its result over that."""
    result, copy, count = graph.values[step.dst], graph.root(step.operand("src")), rows_of(rows.shape)
    src = view_of(graph, rows.value, ((count, rows.shape[-1]), "ab"))
    made = graph.add_local(result.name, (count, result.shape[-1]), result.dtype)
    numbers = {"src": src, "dst": made}
    for role, number in _shared(step):
        seen = seen_by_all_rows(role, graph.values[number])
        assert seen is not None
        numbers[role] = view_of(graph, number, seen)
    graph.replace(at, with_operands(step, [numbers[role] for role, _ in operands_of(step)]))
    for number, layout in layouts.items():
        value = graph.values[number]
        graph.rename(number, graph.add(value.inside(layout=layout, alias_of=made)))
    graph.forget_views(step.dst)
    writer = graph.writer(copy)
    if copy != graph.root(src) and writer is not None and not graph.is_read(copy):
        graph.drop(writer)


def _may_stand_so(graph: Graph, number: int, layout: str) -> bool:
    """Whether all that read a value can read it in ``layout``, or could not read it before either."""
    rank = len(graph.values[number].shape)
    if layout == plain_layout(rank):
        return True
    by_rows = parse_layout(layout).order[-1] == rank - 1
    before = graph.values[number].layout != plain_layout(rank)
    for at in graph.readers(number):
        step = graph.steps[at]
        assert step is not None
        roles = [operand.role for operand in step.operands if operand.value == number]
        attends = isinstance(step.attrs, ir.Attention) and set(roles) <= set(_ROWS_OF_ATTENTION)
        if not ((attends and by_rows) or (isinstance(step.attrs, ir.Slice) and before)):
            return False
    return True
