"""Finds the patterns that a module could match at all, by the operators that it calls.

TVM's ``FuseOpsByPattern`` walks the whole module once for each pattern.  A pattern with an operator that the
module does not have need not be tried.
"""

from __future__ import annotations

from collections.abc import Collection

import tvm
from tvm import relax
from tvm.relax import dpl

_NARROWED = (dpl.AttrPattern, dpl.TypePattern, dpl.DataTypePattern, dpl.ShapePattern)
"""Patterns that ask something more of what another pattern matches."""


def operators_of(mod: tvm.IRModule) -> frozenset[str]:
    """Names of all operators that the Relax functions of ``mod`` call, without those in composites."""
    found: set[str] = set()

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.Op):
            found.add(str(expr.name))

    for function in mod.functions.values():
        if isinstance(function, relax.Function) and not (function.attrs and "Composite" in function.attrs):
            relax.analysis.post_order_visit(function, visit)
    return frozenset(found)


def may_match(pattern: dpl.DFPattern, operators: Collection[str]) -> bool:
    """False if ``pattern`` matches nothing that is made of ``operators`` alone."""
    if isinstance(pattern, _NARROWED):
        return may_match(pattern.pattern, operators)
    if isinstance(pattern, dpl.OrPattern):
        return may_match(pattern.left, operators) or may_match(pattern.right, operators)
    if isinstance(pattern, dpl.AndPattern):
        return may_match(pattern.left, operators) and may_match(pattern.right, operators)
    if isinstance(pattern, dpl.TuplePattern | dpl.UnorderedTuplePattern):
        return all(may_match(field, operators) for field in pattern.fields)
    if isinstance(pattern, dpl.TupleGetItemPattern):
        return may_match(pattern.tuple, operators)
    if isinstance(pattern, dpl.CallPattern):
        return may_match(pattern.op, operators) and all(may_match(arg, operators) for arg in pattern.args)
    if isinstance(pattern, dpl.ExprPattern) and isinstance(pattern.expr, tvm.ir.Op):
        return pattern.expr.name in operators
    return True
