"""Rewriting a Relax function binding by binding: the mechanism that the canonicalization passes share.

A *rule* looks at the value of one binding, whose operands are rewritten already, and gives a replacement
or None.  Rules see through variables with ``site.definition`` and emit new bindings with ``site.emit``.
What rules leave unused is removed afterwards by dead code elimination.
"""

from __future__ import annotations

from collections.abc import Callable

import tvm
from tvm import relax

Rule = Callable[["Site", relax.Expr], "relax.Expr | None"]


class Site:
    """Where a rule is applied: definitions of earlier variables, and a place to emit into."""

    def __init__(self, mutator: relax.PyExprMutator, mod: tvm.IRModule) -> None:
        self._mutator = mutator
        self.mod = mod

    def definition(self, expr: relax.Expr) -> relax.Expr:
        """The expression that a local variable is bound to; ``expr`` itself if it is none."""
        while isinstance(expr, tvm.ir.Var):
            value = self._mutator.lookup_binding(expr)
            if value is None:
                return expr
            expr = value
        return expr

    def emit(self, expr: relax.Expr) -> tvm.ir.Var:
        return self._mutator.builder_.emit(expr)


@relax.expr_functor.mutator
class _BindingRewriter(relax.PyExprMutator):
    def __init__(self, mod: tvm.IRModule, rule: Rule) -> None:
        super().__init__(mod)
        self.rule = rule
        self.site = Site(self, mod)
        self.values: dict[tvm.ir.Var, relax.Expr] = {}

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        if isinstance(binding.value, relax.Function | relax.If | relax.SeqExpr):
            super().visit_var_binding_(binding)
            return
        value = self.visit_expr(binding.value)
        replacement = self.rule(self.site, value)
        if replacement is not None:
            value = replacement
        if isinstance(binding.var, relax.DataflowVar):
            if not isinstance(value, tvm.ir.Var | tvm.ir.GenericConst):
                value = self.builder_.emit(value, name_hint=binding.var.name)
        elif self.builder_.current_block_is_dataflow():
            value = self.builder_.emit_output(value, binding.var.name)
        else:
            value = self.builder_.emit(value, name_hint=binding.var.name)
        self.values[binding.var] = value

    def visit_var_(self, var: tvm.ir.Var) -> relax.Expr:
        return self.values.get(var, var)

    def visit_dataflow_var_(self, var: relax.DataflowVar) -> relax.Expr:
        return self.values.get(var, var)


def rewrite_bindings(mod: tvm.IRModule, rule: Rule) -> tvm.IRModule:
    """Apply ``rule`` to every binding of every Relax function, then drop what became unused."""
    mod = mod.clone()
    for gvar, function in list(mod.functions.items()):
        if isinstance(function, relax.Function):
            mod.update_func(gvar, _BindingRewriter(mod, rule).visit_expr(function))
    return relax.transform.DeadCodeElimination()(mod)


def is_call_to(expr: relax.Expr, *names: str) -> bool:
    """True for a call to one of the Relax operators ``names`` (without the ``relax.`` prefix)."""
    return (
        isinstance(expr, relax.Call)
        and isinstance(expr.op, tvm.ir.Op)
        and expr.op.name.removeprefix("relax.") in names
    )
