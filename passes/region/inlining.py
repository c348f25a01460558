"""Puts functions of a module in the place of their calls, with what stands for their symbols there.

Before   lv = f(x, R.shape([2, n]))       f has a symbol of its own for n
After    lv = R.broadcast_to(x, R.shape([2, n]))

TVM's ``InlinePrivateFunctions`` leaves symbols in that come as shapes alone, of which the caller knows
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tvm
from tvm import relax

from ..relax_types import is_arithmetic

Callees = Mapping[tvm.ir.GlobalVar, relax.Function]


def without_calls(function: relax.Function, callees: Callees) -> relax.Function:
    """The function with all of ``callees`` in it where it calls them, directly or one through another."""
    return _Inliner(callees).visit_expr(function)


@relax.expr_functor.mutator
class _Inliner(relax.PyExprMutator):
    """Bodies in the place of calls."""

    def __init__(self, callees: Callees) -> None:
        super().__init__()
        self.callees = callees

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if is_arithmetic(call):
            return call
        call = self.visit_expr_post_order(call)
        function = self.callees.get(call.op) if isinstance(call.op, tvm.ir.GlobalVar) else None
        return call if function is None else self.visit_expr(_body(function, call.args))


def _body(function: relax.Function, args: Sequence[relax.Expr]) -> relax.Expr:
    """The body of a function with ``args`` in the place of its parameters.

    One more parameter has their symbols: while TVM binds parameters, it erases each shape with a symbol that
    no parameter in sight has.
    """
    function = relax.utils.copy_with_new_vars(function)
    own: dict[tvm.tirx.Var, relax.Expr] = {}
    for param, arg in zip(function.params, args, strict=True):
        for dim, given in zip(_dims(param.ty), _dims(arg.ty), strict=False):
            if isinstance(dim, tvm.tirx.Var):
                own.setdefault(dim, given)
    if own:
        function = function.bind_symbolic_vars(own)
    params = function.params
    symbols = dict.fromkeys(symbol for arg in args for symbol in relax.analysis.free_symbolic_vars(arg))
    if symbols:
        seen = relax.Var("symbols", relax.ShapeType(values=list(symbols)))
        function = relax.Function([*params, seen], function.body, function.ret_ty, function.is_pure)
    return function.bind_params(dict(zip(params, args, strict=True))).body


def _dims(ty: relax.Type) -> list[relax.Expr]:
    """The sizes that a tensor's or a shape's type states; none where it does not know them."""
    if isinstance(ty, relax.TensorType):
        return list(ty.shape.values) if isinstance(ty.shape, relax.ShapeExpr) else []
    return list(ty.values or []) if isinstance(ty, relax.ShapeType) else []
