"""Elementwise steps in front of the reshapes and permutations of what they read, next to what made that.

Before   v1 = matmul(x, w);  v2 = v1 seen in another shape;  v3 = eltwise gelu(v2)
After    v1 = matmul(x, w);  v2 = eltwise gelu(v1);  v3 = v2 seen in that shape

There they fold into weights or become post-ops, which see no further than to a value that nobody views.
Scales and shifts go along where a constant has one number, or one for each place of a last dimension that
the views leave as it is; a tensor of the view's shape, as residuals are, is seen in the other one itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvm_mxplan.byoc.elementwise import COMMUTATIVE
from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.layout.layout import plain_layout, same_bytes
from tvm_mxplan.core.program import program as ir

_MAKERS = (
    ir.Convolution,
    ir.Deconvolution,
    ir.MatMul,
    ir.InnerProduct,
    ir.FewBitsProduct,
    ir.GroupedProduct,
    ir.Binary,
    ir.Eltwise,
)


def put_before_views(graph: Graph) -> None:
    """Moves every step that can be; a step that follows one that was moved moves as well."""
    mover = _Mover(graph)
    for at, step in enumerate(graph.steps):
        if step and isinstance(step.attrs, ir.Eltwise | ir.Binary) and not step.post_ops:
            mover.move(at, step)


class _Mover:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def move(self, at: int, step: ir.Step) -> None:
        """Moves ``step`` before the views that it reads as its source, or as the other operand."""
        if self._moved(at, step, "src", "src1"):
            return
        if isinstance(step.attrs, ir.Binary) and step.attrs.algorithm in COMMUTATIVE:
            self._moved(at, step, "src1", "src")

    def _moved(self, at: int, step: ir.Step, role: str, other: str) -> bool:
        """The same for the operand in ``role``; whether it was moved."""
        graph = self.graph
        seen, result = step.operand(role), graph.values[step.dst]
        base = self._only_viewed_as(seen)
        position = None if base is None else graph.writer(base)
        maker = None if position is None else graph.steps[position]
        if base is None or maker is None or not isinstance(maker.attrs, _MAKERS):
            return False
        view, viewed = graph.values[seen], graph.values[base]
        own = result.kind == "local" and result.alias_of < 0
        if not own or result.shape != view.shape or result.dtype != viewed.dtype:
            return False
        if not _is_plain(view) and self._is_viewed(step.dst):
            return False  # what views the result takes it for plain
        operands = [ir.Operand("src", base)]
        if isinstance(step.attrs, ir.Binary):
            number = self._seen_so(step.operand(other), view, viewed)
            if number is None:
                return False
            operands.append(ir.Operand("src1", number))
        made = graph.add_local(result.name, viewed.shape, viewed.dtype)
        graph.replace(at, replace(step, operands=(*operands, ir.Operand("dst", made))))
        graph.forget_views(base)
        graph.alias(step.dst, made, layout="" if _is_plain(view) else view.layout)
        return True

    def _only_viewed_as(self, value: int) -> int | None:
        """The local at the end of a chain of views that one step alone reads, and through ``value``."""
        graph = self.graph
        if graph.reads(value) != 1 or self._is_viewed(value) or graph.values[value].alias_of < 0:
            return None
        while graph.values[value].alias_of >= 0:
            if graph.values[value].alias_offset != 0 or graph.writer(value) is not None:
                return None
            value = graph.values[value].alias_of
            if graph.reads(value) or sum(map(self._is_used, graph.views(value))) != 1:
                return None
        return value if graph.values[value].kind == "local" else None

    def _is_used(self, value: int) -> bool:
        return self.graph.reads(value) > 0 or self._is_viewed(value)

    def _is_viewed(self, value: int) -> bool:
        """True if views of ``value`` are read, or views of these, or show a result."""
        graph = self.graph
        views = graph.seen_as(value)[1:]
        return any(graph.reads(view) > 0 or graph.writer(view) is not None for view in views)

    def _seen_so(self, number: int, view: ir.Value, viewed: ir.Value) -> int | None:
        """The second operand for what is viewed; None where it has other numbers for other places."""
        value, rank = self.graph.values[number], len(viewed.shape)
        plain = _is_plain(view) and _is_plain(viewed)
        if plain and _is_plain(value) and value.shape == view.shape:
            return self.graph.add(replace(viewed, name=value.name, dtype=value.dtype, alias_of=number))
        array = self.graph.constant(number)
        if array is None:
            return None
        name, dtype = value.name, value.dtype
        if array.size == 1:
            return self.graph.add_constant(array.reshape((1,) * rank), name, dtype)
        last = array.size == array.shape[-1] and len(array.shape) <= len(view.shape)
        if not plain or not last or not view.shape[-1] == viewed.shape[-1] == array.size:
            return None
        return self.graph.add_constant(np.reshape(array, (*(1,) * (rank - 1), -1)), name, dtype)


def _is_plain(value: ir.Value) -> bool:
    """Whether the bytes of ``value`` stand as in its plain layout, whatever extents of 1 do to its name."""
    return same_bytes(value.layout, plain_layout(len(value.shape)), value.shape)
