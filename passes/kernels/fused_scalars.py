"""Gives fused functions their scalars by the shape that they take already.

Before   def fused(s: int64, sizes: R.Shape([t])) -> (t,)       called with (s, R.shape([t]))
After    def fused(sizes: R.Shape([t, s])) -> (t,)              called with (R.shape([t, s]))

TVM's ``FuseOps`` makes parameters of both kinds, and its ``FuseTIR`` fails on a function that has both: it
defines the scalar twice. Functions that take scalars and no shape are left as they are.
"""

from __future__ import annotations

import tvm
from tvm import relax


@tvm.transform.module_pass(opt_level=0, name="FusedScalarsInShapes")
class FusedScalarsInShapes:
    """Moves the scalars of fused functions into their shapes; see the file's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        changed = [gvar for gvar, function in mod.functions.items() if _has_both(function)]
        if not changed:
            return mod
        callers = _Callers(mod)
        for gvar in sorted(changed, key=lambda gvar: gvar.name_hint):
            callers.change(gvar, mod[gvar])
        for gvar, function in mod.functions.items():
            if isinstance(function, relax.Function) and gvar not in callers.new:
                callers.rewrite(gvar, function)
        result = callers.module()
        for gvar in changed:
            del result[gvar]
        return result


def _has_both(function: tvm.ir.BaseFunc) -> bool:
    if not isinstance(function, relax.Function) or not (function.attrs and function.attrs.get("Primitive")):
        return False
    return bool(_scalars(function)) and _shape(function) is not None


def _scalars(function: relax.Function) -> list[int]:
    """The places of parameters that are numbers."""
    return [at for at, param in enumerate(function.params) if isinstance(param.ty, tvm.ir.PrimType)]


def _shape(function: relax.Function) -> int | None:
    """The place of the last parameter that is a shape with known symbols."""
    places = [
        at
        for at, param in enumerate(function.params)
        if isinstance(param.ty, relax.ShapeType) and param.ty.values is not None
    ]
    return places[-1] if places else None


@relax.expr_functor.mutator
class _Callers(relax.PyExprMutator):
    """Rewrites calls of changed functions."""

    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.new: dict[tvm.ir.GlobalVar, tvm.ir.GlobalVar] = {}
        self.old: dict[tvm.ir.GlobalVar, relax.Function] = {}

    def change(self, gvar: tvm.ir.GlobalVar, function: relax.Function) -> None:
        scalars, at = _scalars(function), _shape(function)
        assert at is not None
        shape = function.params[at]
        wider = relax.Var(
            shape.name, relax.ShapeType([*shape.ty.values, *(function.params[place] for place in scalars)])
        )
        params = [
            wider if place == at else param
            for place, param in enumerate(function.params)
            if place not in scalars
        ]
        changed = relax.Function(
            params, function.body, function.ret_ty, function.is_pure, function.attrs, function.span
        )
        self.old[gvar] = function
        self.new[gvar] = self.builder_.add_func(changed, gvar.name_hint)

    def rewrite(self, gvar: tvm.ir.GlobalVar, function: relax.Function) -> None:
        self.builder_.update_func(gvar, self.visit_expr(function))

    def module(self) -> tvm.IRModule:
        return self.builder_.get()

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if not isinstance(call.op, tvm.ir.GlobalVar) or call.op not in self.new:
            return super().visit_call_(call)
        function = self.old[call.op]
        scalars, at = _scalars(function), _shape(function)
        args = [self.visit_expr(arg) for arg in call.args]
        wider = relax.ShapeExpr([*call.args[at].values, *(call.args[place] for place in scalars)])
        rest = [wider if place == at else arg for place, arg in enumerate(args) if place not in scalars]
        return relax.Call(self.new[call.op], rest, call.attrs, call.ty_args, call.span)
