"""A call of an operator with the rows of its operands, and what rules for such calls share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import tvm
from tvm import relax, tirx

from .rows import Rows, RowsMeet, dims_of, rows_in, shape_dims

Placed = Rows | None | tuple["Placed", ...]
"""The places of the rows of a value; of a tuple, those of each field."""


@dataclass(frozen=True)
class Call:
    """One call of an operator.

    Attributes
    ----------
    expr : the call.
    rows : where rows are in each operand.
    batch : the symbol that counts rows.
    """

    expr: relax.Call
    rows: tuple[Placed, ...]
    batch: tirx.Var

    @property
    def attrs(self) -> tvm.ir.Attrs:
        return self.expr.attrs

    def rank(self, operand: int = 0) -> int:
        return len(dims_of(self.expr.args[operand]))

    def one(self, operand: int = 0) -> Rows | None:
        """The rows of an operand that is one tensor."""
        placed = self.rows[operand]
        if isinstance(placed, tuple):
            raise RowsMeet("a tuple where a tensor is expected")
        return placed

    def without(self, *operands: int) -> None:
        """RowsMeet where one of these operands has rows."""
        for operand in operands:
            if operand < len(self.rows) and has_rows(self.rows[operand]):
                raise RowsMeet(f"operand {operand} has the batch")

    def stated(self) -> Rows | None:
        """The rows that the type of the result says."""
        return rows_in(shape_dims(self.expr.ty), self.batch)


Rule = Callable[[Call], Placed]


def has_rows(placed: Placed) -> bool:
    return any(map(has_rows, placed)) if isinstance(placed, tuple) else placed is not None


def kept(rows: Rows, axes: Sequence[int], rank: int, what: str) -> None:
    """RowsMeet where one of ``axes`` is that of the rows."""
    if rows.axis in {int(axis) % rank for axis in axes}:
        raise RowsMeet(f"{what} over the batch")


def first(call: Call) -> Placed:
    """Element by element of the first operand; others are the same for all rows."""
    call.without(*range(1, len(call.rows)))
    return call.one()


def along(*attributes: str) -> Rule:
    """A function of lines along some axes, as a softmax, of the first operand."""

    def rule(call: Call) -> Placed:
        rows = first(call)
        if not isinstance(rows, Rows):
            return None
        for attribute in attributes:
            axes = getattr(call.attrs, attribute)
            axes = range(call.rank()) if axes is None else axes if hasattr(axes, "__len__") else [axes]
            kept(rows, list(axes), call.rank(), "it works")
        fields = call.expr.ty.fields if isinstance(call.expr.ty, tvm.ir.TupleType) else None
        return rows if fields is None else tuple(rows for _ in fields)

    return rule
