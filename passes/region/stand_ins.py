"""Stand-ins for what TVM's ``MergeCompositeFunctions`` cannot look at: calls to functions of their operands.

Before   b = R.call_dps_packed("mine", (a,), out_ty=...)      lv = R.call_tir(pad, (a, h, w), out_ty=...)
After    b = stand_in(a, R.shape([n]))                        lv = stand_in1(a, R.shape([h, n, w]))

That pass follows operands through variables, constants, tuples and shapes.  It knows no external functions,
no numbers that are symbols, no closures.  ``reveal`` puts the values back, which nothing has looked into.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tvm
from tvm import relax, tirx

_LEAVES = (tvm.ir.GenericConst, relax.ShapeExpr, tirx.IntImm, tirx.FloatImm)


@dataclass(frozen=True)
class Hidden:
    """A value and the variables in it, in the order of the stand-in's arguments.

    ``cast`` is the type that a ``match_cast`` checks the value for, None for other bindings.
    """

    value: relax.Expr
    variables: tuple[tvm.ir.Var, ...]
    cast: tvm.ir.Type | None


def hide(mod: tvm.IRModule, gvar: tvm.ir.GlobalVar) -> tuple[tvm.IRModule, Mapping[str, Hidden]]:
    """The module with stand-ins in one function of it, and what they stand for."""
    hider = _Hider(mod)
    hider.rewrite(gvar)
    return (hider.builder_.get(), hider.hidden) if hider.hidden else (mod, {})


def reveal(function: relax.Function, hidden: Mapping[str, Hidden]) -> relax.Function:
    """``function`` with the values back in the place of their stand-ins."""
    return _Revealer(hidden).visit_expr(function) if hidden else function


def _is_plain(expr: relax.Expr) -> bool:
    """True for what the pass can look at."""
    if isinstance(expr, tvm.ir.Var):
        return not isinstance(expr.ty, tvm.ir.PrimType)
    if isinstance(expr, relax.Tuple):
        return all(_is_plain(part) for part in expr.fields)
    if isinstance(expr, relax.TupleGetItem):
        return _is_plain(expr.tuple_value)
    if isinstance(expr, tvm.ir.Call):
        known = isinstance(expr.op, tvm.ir.Op | tvm.ir.GlobalVar)
        return known and all(isinstance(arg, tvm.ir.GlobalVar) or _is_plain(arg) for arg in expr.args)
    return isinstance(expr, _LEAVES)


@relax.expr_functor.mutator
class _Hider(relax.PyExprMutator):
    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.hidden: dict[str, Hidden] = {}

    def rewrite(self, gvar: tvm.ir.GlobalVar) -> None:
        self.builder_.update_func(gvar, self.visit_expr(self.mod[gvar]))

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        if _is_plain(binding.value) or isinstance(binding.value, relax.If):
            super().visit_var_binding_(binding)
            return
        self._emit(binding.var, binding.value, None)

    def visit_match_cast_(self, binding: relax.MatchCast) -> None:
        self._emit(binding.var, binding.value, binding.ty)

    def _emit(self, var: tvm.ir.Var, value: relax.Expr, cast: tvm.ir.Type | None) -> None:
        self.builder_.emit_normalized(relax.VarBinding(var, self._stand_in(value, var.ty, cast)))

    def _stand_in(self, value: relax.Expr, type_: tvm.ir.Type, cast: tvm.ir.Type | None) -> relax.Call:
        free = relax.analysis.free_vars(value)
        variables = [var for var in free if not isinstance(var.ty, tvm.ir.PrimType)]
        symbols = relax.analysis.tir_vars_in_type(type_)
        args = [*variables, relax.ShapeExpr(symbols)]
        opaque = _opaque([arg.ty for arg in args], type_)
        # TVM gives functions of the same form one name; each of these stands for another value
        opaque = opaque.with_attr("mxplan.stand_in", len(self.hidden))
        gvar = self.builder_.add_func(opaque, "stand_in")
        self.hidden[gvar.name_hint] = Hidden(value, tuple(variables), cast)
        return self.builder_.normalize(relax.Call(gvar, args))


def _opaque(params: list[tvm.ir.Type], result: tvm.ir.Type) -> relax.Function:
    """A function of these types that says nothing of what it does."""
    variables = [relax.Var(f"arg{at}", type_) for at, type_ in enumerate(params)]
    body = relax.Var("result", result)
    call = relax.Call(relax.ExternFunc("stand_in"), variables, ty_args=[result])
    body = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(body, call)])], body)
    return relax.Function(variables, body, result, is_pure=True).with_attr("Primitive", True)


@relax.expr_functor.mutator
class _Revealer(relax.PyExprMutator):
    def __init__(self, hidden: Mapping[str, Hidden]) -> None:
        super().__init__()
        self.hidden = hidden
        self.now: dict[tvm.ir.Var, relax.Expr] = {}

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        known = self._hidden(binding.value)
        if known is None or known.cast is None:
            super().visit_var_binding_(binding)
        else:
            value = self.visit_expr(binding.value)
            self.builder_.emit_normalized(relax.MatchCast(binding.var, value, known.cast))

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        known = self._hidden(call)
        if known is None:
            return super().visit_call_(call)
        args = [self.visit_expr(arg) for arg in call.args[: len(known.variables)]]
        self.now |= dict(zip(known.variables, args, strict=True))
        return self.visit_expr(known.value)

    def visit_var_(self, var: tvm.ir.Var) -> relax.Expr:
        return self.now[var] if var in self.now else super().visit_var_(var)

    def visit_dataflow_var_(self, var: relax.DataflowVar) -> relax.Expr:
        return self.now[var] if var in self.now else super().visit_dataflow_var_(var)

    def _hidden(self, expr: relax.Expr) -> Hidden | None:
        named = isinstance(expr, tvm.ir.Call) and isinstance(expr.op, tvm.ir.GlobalVar)
        return self.hidden.get(expr.op.name_hint) if named else None
