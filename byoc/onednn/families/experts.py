"""Rows by the matrix of their group: a step of the runtime's own kernels."""

from __future__ import annotations

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.relax_types import dtype_of, is_constant, shape_of

from ..checks import Match


def check(match: Match) -> str | None:
    """None, or the part of the operator that the kernels lack."""
    call = match["root"]
    rows, matrices, _ends = call.args
    if dtype_of(rows) != "float32":
        return f"rows of {dtype_of(rows) or 'unknown type'}, expected float32"
    if not is_constant(matrices):
        return "matrices that are no constant, which could not be packed"
    if shape_of(rows) is None:
        return "a shape that is not known at compile time"
    empty = 0 in shape_of(matrices) or 0 in shape_of(rows)  # type: ignore[operator]
    return "a product without elements" if empty else None


def translate(c: Composite) -> int:
    roles = zip(("src", "weights", "ends"), c.root.args, strict=True)
    return c.emit("grouped_product", ir.GroupedProduct(), *[(role, c.value(arg)) for role, arg in roles])
