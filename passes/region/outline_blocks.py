"""``OutlineBlocks`` and ``InlineBlocks``: functions with branches, cut up so that parts can be partitioned.

Before   with R.dataflow(): a = R.nn.conv2d(x, w); R.output(a)
         if c:
             with R.dataflow(): b = R.nn.relu(a); R.output(b)
             r = b
         ...
Between  a = main_part_0(x)           a function without branches for each dataflow block
         if c:
             b = main_part_1(a)
             r = b
         ...
After    the same as Before

TVM's ``MergeCompositeFunctions`` knows no `if`; composites stand in dataflow blocks, which have none.
Functions without branches are left alone.
"""

from __future__ import annotations

from collections.abc import Callable

import tvm
from tvm import relax

PART = "mxplan.part"


@tvm.transform.module_pass(opt_level=0, name="OutlineBlocks")
class OutlineBlocks:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        outliner = _Outliner(mod)
        for gvar, function in list(mod.functions.items()):
            if isinstance(function, relax.Function) and _has_branches(function):
                outliner.function(gvar, function)
        return outliner.builder_.get()


@tvm.transform.module_pass(opt_level=0, name="InlineBlocks")
class InlineBlocks:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        mod = mod.clone()
        parts = {gvar: f for gvar, f in mod.functions.items() if f.attrs and PART in f.attrs}
        if not parts:
            return mod
        bodies = {gvar: function.without_attr(PART) for gvar, function in parts.items()}
        for gvar, function in list(mod.functions.items()):
            if isinstance(function, relax.Function) and gvar not in parts and _has_branches(function):
                mod.update_func(gvar, function.inline_functions(bodies))
        for gvar in parts:
            del mod[gvar]
        return relax.transform.CanonicalizeBindings()(relax.transform.Normalize()(mod))


@relax.expr_functor.mutator
class _Outliner(relax.PyExprMutator):
    """Puts a call in the place of each dataflow block."""

    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.name = ""

    def function(self, gvar: tvm.ir.GlobalVar, function: relax.Function) -> None:
        self.name = gvar.name_hint
        self.builder_.update_func(gvar, self.visit_expr(function))

    def visit_dataflow_block_(self, block: relax.DataflowBlock) -> relax.BindingBlock:
        results = [var for var in (b.var for b in block.bindings) if not isinstance(var, relax.DataflowVar)]
        part = _function_of(block, results)
        copy = relax.utils.copy_with_new_vars(part).with_attr(PART, True)
        callee = self.builder_.add_func(copy, f"{self.name}_part")
        self.builder_._begin_binding_block()
        every = self.builder_.emit(relax.Call(callee, list(part.params)))
        for at, var in enumerate(results):
            self.builder_.emit_normalized(relax.VarBinding(var, relax.TupleGetItem(every, at)))
        return self.builder_._end_block()


def _function_of(block: relax.DataflowBlock, results: list[tvm.ir.Var]) -> relax.Function:
    """The block as a function of what it reads, with a tuple of what it gives to others."""
    body = relax.SeqExpr([block], relax.Tuple(results))
    params = relax.analysis.free_vars(body)
    ty = relax.TupleType([var.ty for var in results])
    return relax.Function(params, body, ty, is_pure=True)


def _has_branches(function: relax.Function) -> bool:
    return _any(function, lambda expr: isinstance(expr, relax.If))


def _any(function: relax.Function, wanted: Callable[[relax.Expr], bool]) -> bool:
    found = False

    def visit(expr: relax.Expr) -> None:
        nonlocal found
        found = found or wanted(expr)

    relax.analysis.post_order_visit(function, visit)
    return found
