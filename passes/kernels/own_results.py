"""``OwnResults``: a result that is a constant of the model is a copy of it, new in each call.

Before   return (y, anchors)             the caller has the executable's own memory, and what it writes there
                                         stands in every later result
After    own = R.call_tir(copied, (anchors,))
         return (y, own)

Results that stand in inputs, and two that stand in one place, are told apart where calls are made.
"""

from __future__ import annotations

import tvm
from tvm import relax, topi

from ..relax_types import is_constant

_KERNEL = "copied"
_UNFOLDED = relax.op.memory.ensure_zero_offset
"""Hands a constant on as it is; what it is handed to is not computed beforehand."""


@tvm.transform.module_pass(opt_level=0, name="OwnResults")
class OwnResults:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        copier = _Copier(mod)
        for gvar, function in list(mod.functions.items()):
            if isinstance(function, relax.Function):
                copier.begin(function)
                copier.builder_.update_func(gvar, copier.visit_expr(function))
        return copier.builder_.get()


@relax.expr_functor.mutator
class _Copier(relax.PyExprMutator):
    def begin(self, function: relax.Function) -> None:
        self.body: relax.SeqExpr = function.body
        self.values = _values_of(self.body)

    def visit_seq_expr_(self, seq: relax.SeqExpr) -> relax.Expr:
        if not seq.same_as(self.body) or not self._holds_constant(seq.body):
            return seq
        self.builder_._begin_binding_block()
        result = self._own(seq.body)
        return relax.SeqExpr([*seq.blocks, self.builder_._end_block()], result)

    def _own(self, expr: relax.Expr) -> relax.Expr:
        """The result with copies in the place of constants."""
        if not self._holds_constant(expr):
            return expr
        value = self._value(expr)
        if isinstance(value, relax.Tuple):
            return relax.Tuple([self._field(expr, at, field) for at, field in enumerate(value.fields)])
        source = self.builder_.emit(_UNFOLDED(value if is_constant(value) else expr))
        return self.builder_.emit(self.builder_.call_te(topi.identity, source, primfunc_name_hint=_KERNEL))

    def _field(self, whole: relax.Expr, at: int, field: relax.Expr) -> relax.Expr:
        if self._holds_constant(field) or isinstance(whole, relax.Tuple):
            return self._own(field)
        return self.builder_.emit(relax.TupleGetItem(whole, at))  # the field may be known in its block alone

    def _holds_constant(self, expr: relax.Expr) -> bool:
        value = self._value(expr)
        if isinstance(value, relax.Tuple):
            return any(self._holds_constant(field) for field in value.fields)
        if isinstance(value, relax.If) and isinstance(value.ty, relax.TensorType):
            return any(self._holds_constant(one.body) for one in (value.true_branch, value.false_branch))
        return is_constant(value)

    def _value(self, expr: relax.Expr) -> relax.Expr:
        while isinstance(expr, tvm.ir.Var) and expr in self.values:
            expr = self.values[expr]
        return expr


def _values_of(seq: relax.SeqExpr) -> dict[tvm.ir.Var, relax.Expr]:
    """The values of a function's variables, those of its branches too."""
    found: dict[tvm.ir.Var, relax.Expr] = {}
    for block in seq.blocks:
        for binding in block.bindings:
            if isinstance(binding, relax.VarBinding):
                found[binding.var] = binding.value
                if isinstance(binding.value, relax.If):
                    found |= _values_of(binding.value.true_branch) | _values_of(binding.value.false_branch)
    return found
