"""The places of the rows of a batch in tensors, by the tensors' shapes.

    n named      (n, 3, 14, 10)  axis 0, 1 element a row        (2, n * 12, 64)  axis 1, 12 elements a row
                 (5, 3)          none                           (n, n), (n + 1,) no way that rows are apart

Row r is all elements whose index on the axis is r times the elements of a row up to the next row.

Left to others: whether an operator keeps rows apart (row_rules).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tvm
from tvm import relax, sym, tirx

Dims = Sequence[int | tirx.Expr]


class RowsMeet(Exception):
    """Rows of the batch meet; its text says where."""


@dataclass(frozen=True)
class Rows:
    """The place of the batch in one tensor.

    Attributes
    ----------
    axis : that the batch is counted on.
    each : elements of that axis that are one row's.
    """

    axis: int
    each: int = 1

    def moved(self, axis: int) -> Rows:
        """The same rows on another axis."""
        return Rows(axis, self.each)


def dims_of(expr: relax.Expr) -> list[tirx.Expr]:
    """The dimensions of a tensor; RowsMeet where they are unknown."""
    return shape_dims(expr.ty)


def shape_dims(kind: tvm.ir.Type) -> list[tirx.Expr]:
    """The dimensions of a tensor's type; RowsMeet where they are unknown."""
    shape = getattr(kind, "shape", None)
    if not isinstance(shape, relax.ShapeExpr):
        raise RowsMeet("a tensor whose shape is not known")
    return list(shape.values)


def names(expr: object, symbol: tirx.Var) -> bool:
    """Whether an expression of dimensions has the batch in it."""
    return isinstance(expr, tirx.Expr) and any(
        one.same_as(symbol) for one in tirx.analysis.undefined_vars(expr, [])
    )


def rows_in(dims: Dims, symbol: tirx.Var) -> Rows | None:
    """The rows in a tensor of these dimensions, None without any; RowsMeet where they cannot be apart."""
    found = [axis for axis, dim in enumerate(dims) if names(dim, symbol)]
    if not found:
        return None
    if len(found) > 1:
        raise RowsMeet("a tensor with the batch in two dimensions")
    each = multiple(dims[found[0]], symbol)
    if each is None:
        raise RowsMeet(f"a dimension of {dims[found[0]]}, which is no multiple of the batch")
    return Rows(found[0], each)


def multiple(dim: object, symbol: tirx.Var) -> int | None:
    """The number that a dimension is, times the batch; None for other dimensions."""
    analyzer = sym.Analyzer()
    analyzer.update(symbol, sym.ConstIntBound(1, 1 << 31))
    quotient = analyzer.simplify(tirx.floordiv(dim, symbol))
    if not isinstance(quotient, tirx.IntImm) or int(quotient.value) < 1:
        return None
    same = analyzer.can_prove_equal(dim, symbol * quotient)
    return int(quotient.value) if same else None


def extent(dims: Dims, axis: int) -> int | None:
    """A dimension that is a number, None for others."""
    dim = dims[axis]
    return int(dim.value) if isinstance(dim, tirx.IntImm) else dim if isinstance(dim, int) else None
