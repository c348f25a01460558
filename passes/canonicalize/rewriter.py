"""Rewriting a Relax function binding by binding: the mechanism that the canonicalization passes share.

A *rule* looks at the value of one binding, whose operands are rewritten already, and gives a replacement
or None.  Rules see through variables with ``site.definition`` and emit new bindings with ``site.emit``.
What rules leave unused is removed afterwards by dead code elimination.

A replacement comes from what the value came from (``passes/origins.py``), and from the definitions that the
rule looked through and does not read any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import tvm
from tvm import relax

from tvm_mxplan.core.decisions.origin import Origins, joined

from ..origins import origins_of, with_origins

Rule = Callable[["Site", relax.Expr], "relax.Expr | None"]


class Site:
    """The context in which a rule is applied: definitions of earlier variables, and a place to emit into."""

    def __init__(self, mutator: relax.PyExprMutator, mod: tvm.IRModule) -> None:
        self._mutator = mutator
        self.mod = mod
        self._replaced: Origins = ()
        self._seen: dict[tvm.ir.Var, Origins] = {}
        self._read: set[tvm.ir.Var] = set()
        self._places: dict[tvm.ir.Var, int] = {}
        self._reads: dict[tvm.ir.Var, int] = {}

    def reads(self, variable: relax.Expr) -> int:
        """Counts how often the function as it came reads a variable; 0 of what is emitted."""
        return self._reads.get(variable, 0) if isinstance(variable, tvm.ir.Var) else 0

    def bound(self, variable: relax.Expr, reads: int = 0) -> None:
        """Remember the order of bindings, in which origins are told, and how often one is read."""
        if isinstance(variable, tvm.ir.Var):
            self._reads[variable] = self._reads.get(variable, 0) + reads
        if isinstance(variable, tvm.ir.Var):
            self._places.setdefault(variable, len(self._places))

    def apply(self, rule: Rule, value: relax.Expr) -> relax.Expr | None:
        """Applies ``rule`` to the value of a binding, with its origins; None where that is nothing."""
        self._replaced, self._seen, self._read = origins_of(value), {}, set()
        replacement = rule(self, value)
        if not isinstance(replacement, relax.Call) or origins_of(replacement):
            return replacement
        self._read.update(_variables(replacement))
        absorbed = [variable for variable in self._seen if variable not in self._read]
        absorbed.sort(key=lambda variable: self._places.get(variable, -1))
        taken = [self._seen[variable] for variable in absorbed]
        return with_origins(replacement, joined([*taken, self._replaced]))

    def is_same(self, one: relax.Expr, other: relax.Expr) -> bool:
        """Whether two expressions are one value, by whatever variables they go."""
        return one.same_as(other) or self.definition(one).same_as(self.definition(other))

    def definition(self, expr: relax.Expr) -> relax.Expr:
        """The expression that a local variable is bound to; ``expr`` itself if it is none."""
        while isinstance(expr, tvm.ir.Var):
            value = self._mutator.lookup_binding(expr)
            if value is None:
                return expr
            self._seen[expr] = origins_of(value)
            expr = value
        return expr

    def emit(self, expr: relax.Expr) -> tvm.ir.Var:
        self._read.update(_variables(expr))
        if isinstance(expr, relax.Call) and not origins_of(expr):
            expr = with_origins(expr, self._replaced or joined(self._seen.values()))
        variable = self._mutator.builder_.emit(expr)
        self.bound(variable)
        return variable


def _variables(expr: relax.Expr) -> list[tvm.ir.Var]:
    """Local variables that an expression reads, also in tuples."""
    parts = list(getattr(expr, "args", ()) or getattr(expr, "fields", ()))
    inside = [variable for part in parts for variable in _variables(part)]
    return [part for part in parts if isinstance(part, tvm.ir.Var)] + inside


@relax.expr_functor.visitor
class _Reads(relax.PyExprVisitor):
    """Counts how often variables are read; where they are bound does not count."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tvm.ir.Var] = Counter()

    def visit_var_(self, var: tvm.ir.Var) -> None:
        self.counts[var] += 1

    def visit_dataflow_var_(self, var: relax.DataflowVar) -> None:
        self.counts[var] += 1


def reads_of(function: relax.Function) -> Counter[tvm.ir.Var]:
    reads = _Reads()
    reads.visit_expr(function)
    return reads.counts


@relax.expr_functor.mutator
class _BindingRewriter(relax.PyExprMutator):
    def __init__(self, mod: tvm.IRModule, function: relax.Function, rule: Rule) -> None:
        super().__init__(mod)
        self.rule = rule
        self.reads = reads_of(function)
        self.site = Site(self, mod)
        self.values: dict[tvm.ir.Var, relax.Expr] = {}

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        if isinstance(binding.value, relax.Function | relax.If | relax.SeqExpr):
            super().visit_var_binding_(binding)
            return
        value = self.visit_expr(binding.value)
        replacement = self.site.apply(self.rule, value)
        if replacement is not None:
            value = replacement
        if isinstance(binding.var, relax.DataflowVar):
            if not isinstance(value, tvm.ir.Var | tvm.ir.GenericConst):
                value = self.builder_.emit(value, name_hint=binding.var.name)
        elif self.builder_.current_block_is_dataflow():
            value = self.builder_.emit_output(value, binding.var.name)
        else:
            value = self.builder_.emit(value, name_hint=binding.var.name)
        self.site.bound(value, self.reads[binding.var])
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
            mod.update_func(gvar, _BindingRewriter(mod, function, rule).visit_expr(function))
    return relax.transform.DeadCodeElimination()(mod)


def is_call_to(expr: relax.Expr, *names: str) -> bool:
    """True for a call to one of the Relax operators ``names`` (without the ``relax.`` prefix)."""
    return (
        isinstance(expr, relax.Call)
        and isinstance(expr.op, tvm.ir.Op)
        and expr.op.name.removeprefix("relax.") in names
    )


def callee(expr: relax.Expr) -> str:
    """The external function that a destination-passing call goes to, '' for anything else."""
    return str(expr.args[0].global_symbol) if is_call_to(expr, "call_dps_packed") else ""
