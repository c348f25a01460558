"""``RowsInPlace``: rows that a function keeps from call to call are written where they stand.

Before   alloc = R.builtin.alloc_tensor(R.shape([1, 12, 1024, 64]), ...)
         mxplan_onednn_0(ids, cache, filled, logits, alloc);  return logits, alloc
After    mxplan_onednn_0(ids, cache, filled, logits, cache);  return logits, cache

Which results may stand in the memory of an input, ``passes/borders/note_rows.py`` says.
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm
from tvm import relax

from tvm_mxplan.operators.attention.caches import IN_PLACE

from .relax_aliases import Places, trace_function


@tvm.transform.module_pass(opt_level=0, name="RowsInPlace")
class RowsInPlace:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        for gvar, function in list(mod.functions.items()):
            pairs = function.attrs[IN_PLACE] if function.attrs and IN_PLACE in function.attrs else []
            if not len(pairs):
                continue
            trace, stands = trace_function(mod, function), {}
            results = trace.result if isinstance(trace.result, tuple) else (trace.result,)
            for given, result in pairs:
                place = results[int(result)]
                if isinstance(place, Places) and place.exact:
                    stands[trace.tensors[min(place.tensors)].var] = function.params[int(given)]
            mod = mod.clone()
            mod[gvar] = _InPlace(stands).visit_expr(function)
        return mod


@relax.expr_functor.mutator
class _InPlace(relax.PyExprMutator):
    """Leaves allocations out, and reads parameters in their place."""

    def __init__(self, stands: Mapping[tvm.ir.Var, tvm.ir.Var]) -> None:
        super().__init__()
        self.stands = stands

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        if binding.var not in self.stands:
            super().visit_var_binding_(binding)

    def visit_var_(self, var: tvm.ir.Var) -> relax.Expr:
        return self.stands[var] if var in self.stands else super().visit_var_(var)
