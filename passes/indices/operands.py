"""Operands of Relax's operators that are indices, and the axes that they run over."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax, tirx

from tvm_mxplan.errors import InvalidInputError

from ..relax_types import operator_name


class UnknownShape(Exception):
    """A shape that is needed is not known."""


Extents = list[Any]
"""Numbers of entries that the components of an index run over, integers or symbolic."""


@dataclass(frozen=True)
class IndexOperand:
    """One tensor of indices of a call.

    Attributes
    ----------
    operand : its place among the call's operands.
    field : its place in the tuple that the operand is, None for a tensor.
    extents : one for each component, which stand along the last axis; a single one is for every index.
    axes : which of the data's axes those are, for messages.
    """

    operand: int
    field: int | None
    extents: Extents
    axes: list[int]


def _take(call: relax.Call) -> list[IndexOperand]:
    if str(call.attrs.mode) != "fast":
        return []
    shape = _shape(call.args[0])
    if call.attrs.axis is None:
        return [IndexOperand(1, None, [math.prod(shape)], [0])]
    axis = int(call.attrs.axis) % len(shape)
    return [IndexOperand(1, None, [shape[axis]], [axis])]


def _elements(call: relax.Call) -> list[IndexOperand]:
    data, indices = _shape(call.args[0]), _shape(call.args[1])
    axis = int(call.attrs.axis) % len(data)
    for at, (extent, most) in enumerate(zip(indices, data, strict=False)):
        static = isinstance(extent, int) and isinstance(most, int)
        if at != axis and static and extent > most:
            raise InvalidInputError(
                f"{called(call)}: indices have {extent} entries on axis {at}, where the data has {most}; "
                "expected no more"
            )
    return [IndexOperand(1, None, [data[axis]], [axis])]


def _gather_nd(call: relax.Call) -> list[IndexOperand]:
    return _positions(call, int(call.attrs.batch_dims))


def _positions(call: relax.Call, first: int = 0) -> list[IndexOperand]:
    data, indices = _shape(call.args[0]), _shape(call.args[1])
    if not isinstance(indices[-1], int):
        raise UnknownShape
    axes = list(range(first, first + indices[-1]))
    if axes and axes[-1] >= len(data):
        raise InvalidInputError(
            f"{called(call)}: an index has {len(axes)} components behind {first} batch axes; "
            f"expected at most {len(data) - first}"
        )
    return [IndexOperand(1, None, [data[axis] for axis in axes], axes)]


def _tensors(call: relax.Call) -> list[IndexOperand]:
    """One tensor of indices for each of the data's first axes, in a tuple."""
    data = _shape(call.args[0])
    return [
        IndexOperand(1, field, [data[field]], [field])
        for field in range(min(len(call.args[1].ty.fields), len(data)))
    ]


Change = Callable[[relax.Expr, IndexOperand], relax.Expr]
Field = Callable[[relax.Expr, int], relax.Expr]

_OPERATORS: dict[str, Callable[[relax.Call], list[IndexOperand]]] = {
    "relax.take": _take,
    "relax.gather_elements": _elements,
    "relax.scatter_elements": _elements,
    "relax.gather_nd": _gather_nd,
    "relax.scatter_nd": _positions,
    "relax.index_tensor": _tensors,
    "relax.index_put": _tensors,
}


def with_indices(call: relax.Call, change: Change, field: Field) -> relax.Call:
    """The call with what ``change`` makes of each tensor of its indices; itself where all of them stay.

    ``field`` gives one of a tuple's.

    Raises
    ------
    UnknownShape : the shape of one of its operands is not known.
    InvalidInputError : the indices do not suit the data, whatever numbers they are.
    """
    describe = _OPERATORS.get(call.op.name) if isinstance(call.op, tvm.ir.Op) else None
    if describe is None:
        return call
    operands, fields = list(call.args), {}
    for one in describe(call):
        operand = operands[one.operand]
        if one.field is None:
            operands[one.operand] = change(operand, one)
            continue
        if one.operand not in fields:
            count = len(operand.ty.fields)
            fields[one.operand] = [field(operand, at) for at in range(count)]
        given = fields[one.operand][one.field]
        fields[one.operand][one.field] = changed = change(given, one)
        if not changed.same_as(given):
            operands[one.operand] = relax.Tuple(fields[one.operand])
    if all(new.same_as(old) for new, old in zip(operands, call.args, strict=True)):
        return call
    return relax.Call(call.op, operands, call.attrs, call.ty_args, call.span)


def called(call: relax.Call) -> str:
    """The operator's name in messages: its own, if it has one already."""
    return operator_name(call) or call.op.name.removeprefix("relax.")


def _shape(expr: relax.Expr) -> list[Any]:
    """Extents, as integers where they are known; UnknownShape where the shape is not."""
    shape = getattr(expr.ty, "shape", None)
    if not isinstance(shape, relax.ShapeExpr):
        raise UnknownShape
    return [int(dim) if isinstance(dim, tirx.IntImm) else dim for dim in shape.values]
