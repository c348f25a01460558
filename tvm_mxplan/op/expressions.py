"""Layouts of Relax expressions, in operators that TVM legalizes without help.

to_blocked   layout_transform(x, padded with zeros)
to_plain     strided_slice(reshape(permute_dims(y)))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm import relax, tirx

from ..core.layout.layout import Layout
from ..core.program.dims import is_static
from ..errors import InvalidInputError
from ..passes.physical import to_plain as plain_of
from ..passes.relax_types import shape_of
from .names import fitting_layout, layout_of


def is_expression(x: Any) -> bool:
    return isinstance(x, relax.Expr)


def to_blocked(x: relax.Expr, layout: str) -> relax.Expr:
    """See :func:`tvm_mxplan.op.to_blocked`."""
    made_by = _blocked_from(x)
    if made_by is not None:
        plain, present = made_by
        if layout_of(layout, len(present.order)) == present:
            return x
        x = plain
    parsed = layout_of(layout, len(_static_shape(x)))

    zero = 0 if str(x.ty.dtype).startswith(("int", "uint")) else 0.0
    return relax.op.layout_transform(
        x, tirx.IndexMap.from_func(_physical_index(parsed), len(parsed.order)), pad_value=zero
    )


def to_plain(y: relax.Expr, layout: str | None, shape: Sequence[int] | None) -> relax.Expr:
    """See :func:`tvm_mxplan.op.to_plain`."""
    made_by = _blocked_from(y)
    if made_by is not None:
        return made_by[0]
    if layout is None or shape is None:
        raise InvalidInputError(
            "to_plain: the definition of the expression is not in sight; give layout and shape"
        )
    parsed = fitting_layout(layout, shape, _static_shape(y))
    return plain_of(y, parsed.tag, relax.TensorType(shape, y.ty.dtype))


def _physical_index(layout: Layout) -> Callable[..., list[Any]]:
    """The function from an index of a tensor to the index of the same element in memory."""

    def index(*logical: Any) -> list[Any]:
        rest = list(logical)
        inner: list[Any] = []
        for size, dim in reversed(layout.blocks):
            inner.insert(0, rest[dim] % size)
            rest[dim] = rest[dim] // size
        return [*(rest[dim] for dim in layout.order), *inner]

    return index


def _blocked_from(y: relax.Expr) -> tuple[relax.Expr, Layout] | None:
    """Returns the standard form of ``y``, and its layout, if its definition is in sight and says so."""
    call = _definition(y)
    if not isinstance(call, relax.Call) or call.op != tvm.ir.Op.get("relax.layout_transform"):
        return None
    padding, layout = call.attrs.pad_value, _layout_of(call.attrs.index_map)
    if layout is None or (padding is not None and padding.value != 0):
        return None
    return call.args[0], layout


def _definition(expr: relax.Expr) -> relax.Expr:
    builder = relax.BlockBuilder.current()
    while builder is not None and isinstance(expr, tvm.ir.Var):
        bound = builder.lookup_binding(expr)
        if bound is None:
            break
        expr = bound
    return expr


def _layout_of(index_map: tirx.IndexMap) -> Layout | None:
    """The layout whose index map this is; None for others, and where a dimension has several blocks."""
    order: list[int] = []
    blocks: list[tuple[int, int]] = []
    divided: dict[int, int] = {}
    for expr in index_map.final_indices:
        variable = expr if isinstance(expr, tirx.Var) else getattr(expr, "a", None)
        dims = [i for i, v in enumerate(index_map.initial_indices) if v.same_as(variable)]
        if not dims:
            return None
        if isinstance(expr, tirx.FloorMod):
            blocks.append((int(expr.b), dims[0]))
            continue
        order.append(dims[0])
        if isinstance(expr, tirx.FloorDiv):
            divided[dims[0]] = int(expr.b)
    consistent = sorted(order) == list(range(len(index_map.initial_indices)))
    sizes = {dim: size for size, dim in blocks}
    return Layout(tuple(order), tuple(blocks)) if consistent and sizes == divided else None


def _static_shape(expr: relax.Expr) -> tuple[int, ...]:
    shape = shape_of(expr)
    if shape is None or not is_static(shape):
        raise InvalidInputError("layouts by hand need a shape that is known at compile time")
    return tuple(int(dim) for dim in shape)  # type: ignore[arg-type]
