"""Whether the rows of a function's batch stay apart, so that it may run with more rows than a call has.

    x (n, 3, 14, 10)      y = conv2d(x, w)  z = mean(y, [2, 3])      apart: result (n, 8), row r is of row r
                          z = mean(y, [0])                           meet: it sums over the batch

What one row of a result depends on is followed from the parameters by a rule for each operator
(``row_rules``), and held against the shape of each result that Relax deduced.  What has no rule, kernels,
functions, branches and shapes that only the function computes, is not known to keep rows apart.

Left to others: which sizes there are (named_batch).
"""

from __future__ import annotations

import tvm
from tvm import relax, tirx

from ..relax_types import operator_name
from .row_calls import Call, Placed
from .row_rules import placed_by
from .rows import RowsMeet, rows_in, shape_dims


def why_rows_meet(function: relax.Function, batch: tirx.Var) -> str:
    """The place where rows may meet and the reason; '' where they stay apart from parameters to results.

    Rows of parameters and results are then elements of the first axis, one for each row.
    """
    try:
        walk = _Walk(batch)
        for param in function.params:
            walk.placed[param] = _outer(f"input {param.name}", param.ty, batch)
        walk.bindings(function.body)
        result = walk.of(function.body.body)
        _check_results(result, function.body.body.ty, batch)
    except RowsMeet as met:
        return str(met)
    return ""


class _Walk:
    """The places of the rows of variables, binding by binding."""

    def __init__(self, batch: tirx.Var) -> None:
        self.batch = batch
        self.placed: dict[tvm.ir.Var, Placed] = {}

    def bindings(self, seq: relax.SeqExpr) -> None:
        for block in seq.blocks:
            for binding in block.bindings:
                try:
                    found = self.of(binding.value)
                    if isinstance(binding, relax.MatchCast):
                        self._hold(found, binding.ty)
                    self._hold(found, binding.var.ty)
                except RowsMeet as met:
                    raise RowsMeet(f"{_called(binding.value)}: {met}") from None
                self.placed[binding.var] = found

    def of(self, expr: relax.Expr) -> Placed:
        if isinstance(expr, relax.Tuple):
            return tuple(map(self.of, expr.fields))
        if isinstance(expr, tvm.ir.TupleGetItem):
            fields = self.of(expr.tuple_value)
            return fields[expr.index] if isinstance(fields, tuple) else None
        if isinstance(expr, tvm.ir.Var):
            return self.placed.get(expr)
        if isinstance(expr, relax.Call):
            return placed_by(Call(expr, tuple(map(self.of, expr.args)), self.batch))
        if isinstance(expr, relax.If | relax.Function | relax.SeqExpr):
            raise RowsMeet("a branch or a function of its own")
        return None  # constants, shapes, numbers: whoever reads them looks at them

    def _hold(self, found: Placed, kind: tvm.ir.Type) -> None:
        """RowsMeet where a type says otherwise than the rule."""
        if isinstance(kind, tvm.ir.TupleType):
            fields = found if isinstance(found, tuple) else [None] * len(kind.fields)
            for one, field in zip(fields, kind.fields, strict=True):
                self._hold(one, field)
        elif isinstance(kind, relax.TensorType) and rows_in(shape_dims(kind), self.batch) != found:
            raise RowsMeet(f"its result is {kind}, whose batch stands elsewhere")


def _outer(name: str, kind: tvm.ir.Type, batch: tirx.Var) -> Placed:
    """The rows of a parameter or result, which are its first axis."""
    if not isinstance(kind, relax.TensorType):
        raise RowsMeet(f"{name}: no tensor")
    rows = rows_in(shape_dims(kind), batch)
    if rows is not None and rows.axis != 0:
        raise RowsMeet(f"{name}: the batch is dimension {rows.axis}, expected the first")
    return rows


def _check_results(result: Placed, kind: tvm.ir.Type, batch: tirx.Var) -> None:
    if isinstance(kind, tvm.ir.TupleType):
        for at, field in enumerate(kind.fields):
            _outer(f"result {at}", field, batch)
    elif _outer("the result", kind, batch) != result:
        raise RowsMeet("the result: its batch stands elsewhere")


def _called(value: relax.Expr) -> str:
    if not isinstance(value, relax.Call):
        return type(value).__name__
    op = value.op.name if isinstance(value.op, tvm.ir.Op) else getattr(value.op, "name_hint", value.op)
    return operator_name(value) or str(op).removeprefix("relax.")
