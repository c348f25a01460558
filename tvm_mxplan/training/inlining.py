"""Writes the body of one function of Relax into another that a builder has open.

def f(x, w):                 with builder.function("g", [a, b]):
    y = conv2d(x, w)   ->        with builder.dataflow():
    return relu(y)                   (result) = inlined(builder, f, [a, b])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import tvm
from tvm import relax

from ..errors import UnsupportedError
from ..passes.origins import origins_of, with_origins

Rewrite = Callable[[relax.Call], relax.Expr]
"""Gives the expression to emit for a call, whose operands are the new ones."""


def inlined(
    builder: relax.BlockBuilder,
    function: relax.Function,
    arguments: Sequence[relax.Expr],
    rewrite: Rewrite = lambda call: call,
) -> relax.Expr:
    """The result of ``function`` on ``arguments``; its bindings are emitted one by one.

    Raises
    ------
    UnsupportedError : branches, calls of other functions, casts that define dimensions.
    """
    known = dict(zip(function.params, arguments, strict=True))
    for block in function.body.blocks:
        for binding in block.bindings:
            if not isinstance(binding, relax.VarBinding):
                raise UnsupportedError(
                    "the model has dimensions that only it computes; training needs shapes that are numbers"
                )
            known[binding.var] = _emitted(builder, binding.value, known, rewrite)
    return _replaced(function.body.body, known)


def _emitted(
    builder: relax.BlockBuilder,
    value: relax.Expr,
    known: Mapping[relax.Var, relax.Expr],
    rewrite: Rewrite,
) -> relax.Expr:
    if isinstance(value, relax.If | relax.Function):
        raise UnsupportedError("the model has branches or loops; training needs a model without them")
    replaced = _replaced(value, known)
    if isinstance(replaced, relax.Call):
        replaced = rewrite(with_origins(replaced, origins_of(value)))
    if isinstance(replaced, relax.Var | relax.Tuple):
        return replaced
    return builder.emit(replaced)


def _replaced(expr: relax.Expr, known: Mapping[relax.Var, relax.Expr]) -> relax.Expr:
    if isinstance(expr, relax.Var):
        return known[expr]
    if isinstance(expr, relax.Tuple):
        return relax.Tuple([_replaced(field, known) for field in expr.fields])
    if isinstance(expr, relax.TupleGetItem):
        source = _replaced(expr.tuple_value, known)
        if isinstance(source, relax.Tuple):
            return source.fields[expr.index]
        return relax.TupleGetItem(source, expr.index)
    if isinstance(expr, relax.Call):
        args = [_replaced(arg, known) for arg in expr.args]
        return relax.Call(expr.op, args, expr.attrs, expr.ty_args, expr.span)
    return expr


def stops(expr: relax.Expr) -> bool:
    """Whether an expression is its operand, whose gradient it stops."""
    called = isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op)
    return called and str(expr.op.name) == "relax.grad.no_grad"


def without_stops(call: relax.Call) -> relax.Expr:
    """A call once gradients are made: what stops them is its operand, and a choice of equals is these."""
    if stops(call):
        return call.args[0]
    is_choice = isinstance(call.op, tvm.ir.Op) and str(call.op.name) == "relax.where"
    return call.args[1] if is_choice and call.args[1].same_as(call.args[2]) else call
