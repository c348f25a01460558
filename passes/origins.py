"""The origins of an operator, on the IR.

    frontend         a span on each call, one entry for each origin
    canonicalize     rules hand spans on; ``keep_origins`` restores those that passes of TVM lose
    NameOperators    spans become names of operators; a table by names on the function takes their place:

    R.func_attr({"mxplan.origins": {"clip_0": [["/layer1/max", "Max", ""], ["/layer1/min", "Min", ""]]}})

An operator that a pass makes comes from what that pass took in for it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping

import tvm
from tvm import relax

from tvm_mxplan.core.decisions.origin import Origin, Origins

ORIGINS = "mxplan.origins"
_SOURCE = "mxplan origin "


def with_origins(call: relax.Call, origins: Origins) -> relax.Call:
    """The call with a span that names its origins; as it is where there are none."""
    if not origins:
        return call
    return relax.Call(call.op, call.args, call.attrs, call.ty_args, _spans(origins))


def origins_of(expr: relax.Expr) -> Origins:
    """The origins in the span of an expression; none in spans of others."""
    span = getattr(expr, "span", None)
    if not isinstance(span, tvm.ir.SequentialSpan):
        return ()
    found = [_origin(str(one.source_name.name)) for one in span.spans]
    return tuple(one for one in found if one is not None)


@functools.lru_cache(maxsize=1024)
def _spans(origins: Origins) -> tvm.ir.SequentialSpan:
    """Shared by the operators that come from the same, which stand close together."""
    texts = [_SOURCE + json.dumps([origin.name, origin.kind, origin.computes]) for origin in origins]
    return tvm.ir.SequentialSpan([tvm.ir.Span(tvm.ir.SourceName(text), 0, 0, 0, 0) for text in texts])


@functools.lru_cache(maxsize=1024)
def _origin(text: str) -> Origin | None:
    return Origin(*json.loads(text.removeprefix(_SOURCE))) if text.startswith(_SOURCE) else None


def with_origin_table(function: relax.Function, table: Mapping[str, Origins]) -> relax.Function:
    """``function`` saying what its operators come from, by their names."""
    known = {
        name: [[one.name, one.kind, one.computes] for one in origins]
        for name, origins in table.items()
        if origins
    }
    return function.with_attr(ORIGINS, known) if known else function


def origin_table(mod: tvm.IRModule) -> dict[str, Origins]:
    """Returns the origins of a module's operators, by their names; unknown ones are left out."""
    found: dict[str, Origins] = {}
    for function in mod.functions.values():
        written = function.attrs.get(ORIGINS) if function.attrs else None
        for name, origins in written.items() if written else ():
            found[str(name)] = tuple(Origin(*map(str, one)) for one in origins)
    return found


def keep_origins(inner: tvm.transform.Pass) -> tvm.transform.Pass:
    """``inner``; calls that it makes come from the binding in whose place they stand.

    That is the next binding, in the order of the block, that the module had before under the same name.
    """

    @tvm.transform.module_pass(opt_level=0, name=inner.info.name)
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        bindings = _Bindings()
        bindings.visit(mod)
        after = inner(mod)
        if not bindings.origins or after.same_as(mod):
            return after
        restorer = _Restorer(after, bindings.origins)
        restorer.rewrite(after)
        return restorer.module()

    return run


@relax.expr_functor.visitor
class _Bindings(relax.PyExprVisitor):
    """Origins of the bindings of a module, by the names of function and variable."""

    def __init__(self) -> None:
        self.origins: dict[tuple[str, str], Origins] = {}
        self._function = ""

    def visit(self, mod: tvm.IRModule) -> None:
        for gvar, function in mod.functions.items():
            if isinstance(function, relax.Function):
                self._function = gvar.name_hint
                self.visit_expr(function)

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        self.visit_expr(binding.value)
        origins = origins_of(binding.value)
        if origins:
            self.origins[self._function, binding.var.name] = origins


@relax.expr_functor.mutator
class _Restorer(relax.PyExprMutator):
    def __init__(self, mod: tvm.IRModule, known: Mapping[tuple[str, str], Origins]) -> None:
        super().__init__(mod)
        self._known = known
        self._function = ""
        self._missing: dict[tvm.ir.Var, Origins] = {}

    def rewrite(self, mod: tvm.IRModule) -> None:
        for gvar, function in mod.functions.items():
            if isinstance(function, relax.Function):
                self._function = gvar.name_hint
                self.builder_.update_func(gvar, self.visit_expr(function))

    def module(self) -> tvm.IRModule:
        return self.builder_.get()

    def visit_binding_block_(self, block: relax.BindingBlock) -> relax.BindingBlock:
        self._look_back(block)
        return super().visit_binding_block_(block)

    def visit_dataflow_block_(self, block: relax.DataflowBlock) -> relax.DataflowBlock:
        self._look_back(block)
        return super().visit_dataflow_block_(block)

    def _look_back(self, block: relax.BindingBlock) -> None:
        """Note what the calls of a block that have no origins come from."""
        current: Origins = ()
        for binding in reversed(block.bindings):
            own = origins_of(binding.value) if isinstance(binding, relax.VarBinding) else ()
            current = own or self._known.get((self._function, binding.var.name), current)
            if not own and current:
                self._missing[binding.var] = current

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        origins, value = self._missing.get(binding.var, ()), binding.value
        if origins and isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.Op):
            labelled = with_origins(value, origins)
            binding = relax.VarBinding(binding.var, self.builder_.normalize(labelled))
        super().visit_var_binding_(binding)
