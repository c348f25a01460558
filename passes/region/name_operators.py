"""``NameOperators``: a name for every operator, by which reports and options speak of it.

Before   lv3 = R.nn.conv2d(lv2, w)
After    the same, its span naming it ``conv2d_1``: the second of its kind in the module

The name stays with the operator when it is partitioned, and does not depend on what else is offloaded.  The
function has a table with what the operators come from (``passes/origins.py``).
"""

from __future__ import annotations

from collections import Counter

import tvm
from tvm import relax

from tvm_mxplan.core.decisions.origin import Origins

from ..origins import origins_of, with_origin_table
from ..relax_types import is_arithmetic, operator_name, with_operator_name


@tvm.transform.module_pass(opt_level=0, name="NameOperators")
class NameOperators:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        namer = _Namer(mod)
        for gvar, function in sorted(mod.functions.items(), key=lambda item: item[0].name_hint):
            if isinstance(function, relax.Function):
                namer.rewrite(gvar, function)
        return namer.module()


@relax.expr_functor.mutator
class _Namer(relax.PyExprMutator):
    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.origins: dict[str, Origins] = {}
        self._counts: Counter[str] = Counter()

    def rewrite(self, gvar: tvm.ir.GlobalVar, function: relax.Function) -> None:
        before = set(self.origins)
        named = self.visit_expr(function)
        table = {name: origins for name, origins in self.origins.items() if name not in before}
        self.builder_.update_func(gvar, with_origin_table(named, table))

    def module(self) -> tvm.IRModule:
        return self.builder_.get()

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if is_arithmetic(call):
            return call
        call = self.visit_expr_post_order(call)
        if not isinstance(call.op, tvm.ir.Op):
            return call
        kind = call.op.name.rpartition(".")[2]
        name = f"{kind}_{self._counts[kind]}"
        self._counts[kind] += 1
        self.origins[name] = origins_of(call)
        return with_operator_name(call, name)


def names_of(mod: tvm.IRModule) -> list[str]:
    """The names of a module's operators."""
    found: list[str] = []

    def visit(expr: relax.Expr) -> None:
        name = operator_name(expr) if isinstance(expr, relax.Call) else None
        if name:
            found.append(name)

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return found
