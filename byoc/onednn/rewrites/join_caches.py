"""Keys and values behind past ones: attention joins them as it reads them.

Before   k = concat(past_k, new_k);  v = concat(past_v, new_v);  y = attention(q, k, v)
After    y, k, v = attention(q, new_k, new_v, past_k, past_v)

A decoder's caches are read once then, head by head, in place of a copy that is read again.
"""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.program import program as ir

_ROLES = ("key", "value")
_KEYS = 2
"""The axis along which caches grow."""


def join_caches(graph: Graph) -> None:
    """Take the concatenations in front of each attention into it."""
    for at, step in enumerate(list(graph.steps)):
        if step and isinstance(step.attrs, ir.Attention):
            _take_in(graph, at, step)


def _take_in(graph: Graph, at: int, step: ir.Step) -> None:
    rows = graph.values[step.dst].shape[1]
    if not isinstance(rows, int) or rows < 1:
        return  # of no queries there is no result, but keys are joined
    if any(operand.role == "past_key" for operand in step.operands):
        return
    joins = [_join(graph, step.operand(role), at) for role in _ROLES]
    if None in joins or joins[0] == joins[1]:
        return
    operands = list(step.operands)
    pasts = []
    for role, writer in zip(_ROLES, joins, strict=True):
        joining = graph.steps[writer]  # type: ignore[index]
        assert joining is not None
        past, fresh = (operand.value for operand in joining.operands if operand.role == "src")
        pasts.append(graph.values[past].shape[_KEYS])
        place = next(i for i, operand in enumerate(operands) if operand.role == role)
        operands[place] = ir.Operand(role, fresh)
        operands += [ir.Operand(f"past_{role}", past), ir.Operand(f"joined_{role}", joining.dst)]
    if pasts[0] != pasts[1]:
        return
    for writer in joins:
        graph.drop_into(writer, step.name)  # type: ignore[arg-type]
    graph.replace(at, replace(step, operands=tuple(operands)))


def _join(graph: Graph, value: int, at: int) -> int | None:
    """The step that makes ``value``, which nobody reads before ``at``, of past rows and new ones."""
    whole, writer = graph.values[value], graph.writer(value)
    joining = None if writer is None else graph.steps[writer]
    if joining is None or not isinstance(joining.attrs, ir.Concat) or joining.attrs.axis != _KEYS:
        return None
    if graph.views(value) or whole.layout != plain_layout(4) or joining.post_ops:
        return None
    if whole.alias_of >= 0 and not _is_output(graph, value):
        return None
    pieces = [graph.values[operand.value] for operand in joining.operands if operand.role == "src"]
    if len(pieces) != 2 or any(piece.dtype != whole.dtype for piece in pieces):
        return None
    later = all(at <= reader < len(graph.program.steps) for reader in graph.readers(value))
    return writer if later and graph.reads(value) == len(graph.readers(value)) else None


def _is_output(graph: Graph, value: int) -> bool:
    """Whether ``value`` is an output under another number, which nobody else sees."""
    seen, base = graph.values[value], graph.values[graph.values[value].alias_of]
    alone = graph.views(seen.alias_of) == [value] and not graph.reads(seen.alias_of)
    alike = (base.shape, base.layout, base.dtype) == (seen.shape, seen.layout, seen.dtype)
    return base.kind == "output" and base.alias_of < 0 and seen.alias_offset == 0 and alone and alike
