"""``OutlineBlocks`` and ``InlineBlocks``: functions cut up so that their parts can be partitioned.

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

TVM's ``MergeCompositeFunctions`` knows no `if`; composites stand in dataflow blocks, which have none.  It
does not know either that shapes with a symbol depend on the ``match_cast`` that defines it: blocks end
before one (``split_blocks``).  Functions without both are left alone.
"""

from __future__ import annotations

from collections.abc import Callable

import tvm
from tvm import relax

from .inlining import without_calls
from .split_blocks import defines_symbols, split_blocks

PART = "mxplan.part"
_SYMBOLS = "mxplan.symbols"


@tvm.transform.module_pass(opt_level=0, name="OutlineBlocks")
class OutlineBlocks:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        outliner = _Outliner(mod)
        for gvar, function in list(mod.functions.items()):
            if isinstance(function, relax.Function) and _needs_cutting(function):
                outliner.function(gvar, split_blocks(function))
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
            if isinstance(function, relax.Function) and _calls_any(function, set(parts)):
                mod.update_func(gvar, without_calls(function, bodies))
        for gvar in parts:
            del mod[gvar]
        tidy = [
            relax.transform.Normalize(),
            relax.transform.CanonicalizeBindings(),
            relax.transform.DeadCodeElimination(),  # the tuples of the parts' results
        ]
        return tvm.transform.Sequential(tidy)(mod)


@relax.expr_functor.mutator
class _Outliner(relax.PyExprMutator):
    """Puts a call in the place of each dataflow block."""

    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.name = ""
        self.count = 0

    def function(self, gvar: tvm.ir.GlobalVar, function: relax.Function) -> None:
        self.name = gvar.name_hint
        self.builder_.update_func(gvar, self.visit_expr(function))

    def visit_dataflow_block_(self, block: relax.DataflowBlock) -> relax.BindingBlock:
        results = [var for var in (b.var for b in block.bindings) if not isinstance(var, relax.DataflowVar)]
        read, part = _function_of(block, results)
        # The number keeps equal parts apart, which would become one function.
        copy = relax.utils.copy_with_new_vars(part).with_attr(PART, self.count)
        self.count += 1
        callee = self.builder_.add_func(copy, f"{self.name}_part")
        self.builder_._begin_binding_block()
        symbols = [relax.ShapeExpr(param.ty.values) for param in part.params[len(read) :]]
        every = self.builder_.emit(relax.Call(callee, [*read, *symbols]))
        for at, var in enumerate(results):
            self.builder_.emit_normalized(relax.VarBinding(var, relax.TupleGetItem(every, at)))
        return self.builder_._end_block()


def _function_of(
    block: relax.DataflowBlock, results: list[tvm.ir.Var]
) -> tuple[list[tvm.ir.Var], relax.Function]:
    """Returns the variables that the block reads, and the block as a function that gives a tuple of results.

    Symbols come as a shape, the last parameter: others may have them inside expressions only, or not at all.
    """
    body = relax.SeqExpr([block], relax.Tuple(results))
    read = [var for var in relax.analysis.free_vars(body) if not isinstance(var.ty, tvm.ir.PrimType)]
    ty = relax.TupleType([var.ty for var in results])
    used = relax.analysis.free_symbolic_vars(relax.Function([], body, ty, is_pure=True))
    given = [symbol for var in read for symbol in relax.analysis.free_symbolic_vars(var)]
    symbols = list(dict.fromkeys([*used, *given]))
    shapes = [relax.Var(_SYMBOLS, relax.ShapeType(values=symbols))] if symbols else []
    return read, relax.Function([*read, *shapes], body, ty, is_pure=True)


def _needs_cutting(function: relax.Function) -> bool:
    return _has_branches(function) or defines_symbols(function)


def _has_branches(function: relax.Function) -> bool:
    return _any(function, lambda expr: isinstance(expr, relax.If))


def _calls_any(function: relax.Function, callees: set[tvm.ir.GlobalVar]) -> bool:
    """True if the function refers to one of ``callees``."""
    return _any(function, lambda expr: isinstance(expr, tvm.ir.GlobalVar) and expr in callees)


def _any(function: relax.Function, wanted: Callable[[relax.Expr], bool]) -> bool:
    found = False

    def visit(expr: relax.Expr) -> None:
        nonlocal found
        found = found or wanted(expr)

    relax.analysis.post_order_visit(function, visit)
    return found
