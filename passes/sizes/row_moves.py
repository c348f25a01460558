"""Rules for operators that only move numbers, or repeat them; see ``row_rules``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tvm import relax, tirx

from ..relax_types import permutation_of
from .row_calls import Call, Placed, first, has_rows, kept
from .rows import Rows, RowsMeet, dims_of, extent, shape_dims


def reshaped(call: Call) -> Placed:
    """The same elements in their order: rows stay apart where as many elements stand in front of the axis."""
    rows = call.one()
    if rows is None:
        return _unread(call)
    stated = call.stated()
    if stated is None:
        raise RowsMeet("the batch disappears in its shape")
    before = dims_of(call.expr.args[0])[: rows.axis]
    behind = shape_dims(call.expr.ty)[: stated.axis]
    if _elements(before) != _elements(behind):
        raise RowsMeet("it moves the batch to where other axes were joined with it")
    return stated


def _elements(dims: Sequence[tirx.Expr]) -> int:
    known = [extent(dims, axis) for axis in range(len(dims))]
    if None in known:
        raise RowsMeet("a dimension that only the function computes")
    return prod(known)  # type: ignore[arg-type]


def _unread(call: Call) -> Placed:
    """Of what has no rows; a shape with the batch makes none of it."""
    if call.stated() is not None:
        raise RowsMeet("it spreads numbers over the batch that are no input's")
    return None


def filled(call: Call) -> Placed:
    """The same number everywhere, whatever operands are but for shapes."""
    for at, arg in enumerate(call.expr.args):
        if isinstance(arg.ty, relax.TensorType) and has_rows(call.rows[at]) and not _like(call):
            raise RowsMeet("its number is of a row")
    return call.stated()


def _like(call: Call) -> bool:
    return str(call.expr.op.name).endswith("_like")


def broadcast_to(call: Call) -> Placed:
    rows, rank = call.one(), call.rank()
    stated = call.stated()
    if rows is None:
        return stated  # every row gets the same
    shift = len(shape_dims(call.expr.ty)) - rank
    if stated != rows.moved(rows.axis + shift):
        raise RowsMeet("it spreads over the batch what has it")
    return stated


def permuted(call: Call) -> Placed:
    rows = call.one()
    return None if rows is None else rows.moved(permutation_of(call.expr).index(rows.axis))


def joined(call: Call) -> Placed:
    """Concatenation and stack of tensors that all have rows at one place, or none."""
    fields = call.rows[0]
    if not isinstance(fields, tuple) or not has_rows(fields):
        return None
    if len(set(fields)) > 1:
        raise RowsMeet("pieces with the batch in different places, or without")
    rows = fields[0]
    assert isinstance(rows, Rows)  # has_rows
    rank = len(shape_dims(call.expr.ty))
    axis = call.attrs.axis
    if str(call.expr.op.name) == "relax.stack":
        at = int(axis or 0) % rank
        return rows.moved(rows.axis + (at <= rows.axis))
    if axis is None:
        raise RowsMeet("it joins all axes")
    kept(rows, [axis], rank, "it joins")
    return rows


def boxes(call: Call) -> Placed:
    rows = call.one()
    if rows is None:
        return None
    given = call.expr.args[1]
    fields = list(given.fields) if isinstance(given, relax.Tuple) else [None]
    axes = [int(one.value) for one in fields if isinstance(one, tirx.IntImm)]
    if len(axes) < len(fields):
        raise RowsMeet("its axes are no numbers")
    kept(rows, axes, call.rank(), "it takes a part")
    return rows


def taken(call: Call) -> Placed:
    data, indices = call.one(0), call.one(1)
    axis = call.attrs.axis
    if axis is None:
        if has_rows(data):
            raise RowsMeet("it takes from all elements")
        return indices
    axis = int(axis) % call.rank()
    if data is None:
        return None if indices is None else indices.moved(indices.axis + axis)
    if indices is not None:
        raise RowsMeet("rows choose from rows")
    kept(data, [axis], call.rank(), "it takes")
    return data.moved(data.axis + call.rank(1) - 1) if axis < data.axis else data


def gathered(call: Call) -> Placed:
    """Elements along an axis by indices of the same shape."""
    rows = call.one()
    if rows != call.one(1):
        raise RowsMeet("data and indices with the batch in different places")
    if rows is not None:
        kept(rows, [call.attrs.axis], call.rank(), "it takes")
    return rows


def picked(call: Call) -> Placed:
    """Entries by indices of several axes, from a table or from each row's own part."""
    rows, of_indices = call.one(), call.one(1)
    batch = int(call.attrs.batch_dims)
    if rows is None and of_indices is not None and of_indices.axis >= batch:
        kept(of_indices, [call.rank(1) - 1], call.rank(1), "its indices are")
        return of_indices
    if rows != of_indices or (rows is not None and rows.axis >= batch):
        raise RowsMeet("data and indices with the batch in different places")
    return rows


def padded(call: Call) -> Placed:
    rows = first(call)
    if isinstance(rows, Rows):
        widths = [int(one) for one in call.attrs.pad_width]
        if any(widths[2 * rows.axis : 2 * rows.axis + 2]):
            raise RowsMeet("it adds rows")
    return rows


def repeated(call: Call) -> Placed:
    rows = first(call)
    if isinstance(rows, Rows):
        if call.attrs.axis is None:
            raise RowsMeet("it repeats all elements")
        kept(rows, [call.attrs.axis], call.rank(), "it repeats")
    return rows


def triangle(call: Call) -> Placed:
    rows = first(call)
    if isinstance(rows, Rows):
        kept(rows, [-1, -2], call.rank(), "it masks")
    return rows
