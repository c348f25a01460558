"""Rows by the matrix of their group, as an operator of Relax: ``mxplan.grouped_product``.

    R.mxplan.grouped_product(rows, matrices, ends) -> float32 (M, N)

    rows      float32 (M, K), those of a group one behind the other
    matrices  float32 (G, K, N)
    ends      int32 (G), where a group's rows end
    result    row m times the first matrix g with m < ends[g]; 0 behind all ends

Layers of experts are made of it, whose rows are sorted by expert.  Which rows a group has follows from
numbers, so a library that takes the operator multiplies each row once, whatever the number of groups.
"""

from __future__ import annotations

import tvm
from tvm import relax, te, tirx

from ..registration import Operator


def grouped_product(rows: relax.Expr, matrices: relax.Expr, ends: relax.Expr) -> relax.Call:
    """The call of the operator; see the module's text."""
    return GROUPED_PRODUCT.call(rows, matrices, ends)


def _type(call: relax.Call) -> tvm.ir.Type:
    rows, matrices = (one.ty.shape.values for one in call.args[:2])
    return relax.TensorType([rows[0], matrices[2]], call.args[0].ty.dtype)


def _legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    def compute(rows: te.Tensor, matrices: te.Tensor, ends: te.Tensor) -> te.Tensor:
        count, depth, columns = matrices.shape
        group = te.reduce_axis((0, count), "group")
        none = tirx.Cast("int32", count)

        def first(row: tirx.Var) -> tirx.Expr:
            has = ends(group) > tirx.Cast("int32", row)
            return te.min(tirx.Select(has, tirx.Cast("int32", group), none), group)

        groups = te.compute((rows.shape[0],), first, "groups")
        k = te.reduce_axis((0, depth), "k")

        def product(row: tirx.Var, column: tirx.Var) -> tirx.Expr:
            known = groups(row) < none
            number = tirx.if_then_else(known, matrices(groups(row), k, column), tirx.const(0, rows.dtype))
            return te.sum(rows(row, k) * number, k)

        return te.compute((rows.shape[0], columns), product, "grouped_product")

    return builder.call_te(compute, *call.args, primfunc_name_hint="grouped_product")


GROUPED_PRODUCT = Operator("grouped_product", "rows by the matrix of their group", _type, _legalize)
