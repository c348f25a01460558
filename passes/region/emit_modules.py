"""``EmitModules``: runtime modules in place of the regions that carry programs.

Before   lv = mxplan_onednn_0(x)
After    lv = R.call_dps_packed("mxplan_onednn_0", (x,), ...)     and an external module in the attributes

The modules own their constants, so none is handed to TVM a second time.  Where a function has more to keep
than one region's values, its regions work in an arena that it lends them (``lend_arenas``).
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import Backend

from ..canonicalize.rewriter import rewrite_bindings
from .attached import constants_of, program_of, regions
from .lend_arenas import lend_arenas


@tvm.transform.module_pass(opt_level=0, name="EmitModules")
class EmitModules:
    """Module pass; see the module's text."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        arenas = {}
        if self.backend.takes_arena:
            arenas = {
                str(function.attrs["global_symbol"]): program_of(function).arena_bytes
                for _, function in regions(mod, self.backend.name)
            }
        return lend_arenas(self._emitted(mod), arenas)

    def _emitted(self, mod: tvm.IRModule) -> tvm.IRModule:
        """The module with calls of packed functions in place of calls of regions.

        TVM's ``RunCodegen`` does the same for all libraries at once, and follows calls without end where a
        function calls itself.
        """
        taken = list(regions(mod, self.backend.name))
        if not taken:
            return mod
        symbols = {gvar: str(function.attrs["global_symbol"]) for gvar, function in taken}
        modules: list[tvm.runtime.Module] = []
        for gvar, function in taken:
            module = self.backend.create_module(symbols[gvar], program_of(function), constants_of(function))
            modules += self.backend.modules_to_export(module)
        emitted = rewrite_bindings(mod, lambda _site, value: _packed_call(value, symbols))
        for gvar in symbols:
            if gvar in emitted.functions:
                del emitted[gvar]
        before = list(mod.attrs["external_mods"]) if "external_mods" in mod.attrs else []
        return emitted.with_attr("external_mods", before + modules)


def _packed_call(value: relax.Expr, symbols: Mapping[tvm.ir.GlobalVar, str]) -> relax.Expr | None:
    """The call of a packed function in place of a region's call; None for all else."""
    symbol = symbols.get(value.op) if isinstance(value, relax.Call) else None
    if symbol is None:
        return None
    results = list(value.ty.fields) if isinstance(value.ty, tvm.ir.TupleType) else value.ty
    return relax.call_dps_packed(symbol, tvm.ir.Tuple(list(value.args)), results)
