"""``EmitModules``: runtime modules in place of the regions that carry programs.

Before   lv = mxplan_onednn_0(x)
After    lv = R.call_dps_packed("mxplan_onednn_0", (x,), ...)     and an external module in the attributes

The modules own their constants, so none is handed to TVM a second time.  Where a function has more to keep
than one region's values, its regions work in an arena that it lends them (``lend_arenas``).
"""

from __future__ import annotations

import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import Backend

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
        mod = relax.transform.RunCodegen(entry_functions=_entry_functions(mod))(mod)
        if mod.attrs and "const_name_to_constant" in mod.attrs:
            mod = mod.with_attr("const_name_to_constant", {})
        return lend_arenas(mod, arenas)


def _entry_functions(mod: tvm.IRModule) -> list[str]:
    return [
        gvar.name_hint
        for gvar, function in mod.functions.items()
        if isinstance(function, relax.Function) and not (function.attrs and function.attrs.get("Codegen"))
    ]


def register_codegen(backend: Backend) -> None:
    """Register ``relax.ext.<name>``, which TVM's ``RunCodegen`` calls with the regions of a module."""

    def codegen(
        functions: list[relax.Function], _options: object, _constant_names: object
    ) -> list[tvm.runtime.Module]:
        modules: list[tvm.runtime.Module] = []
        for function in functions:
            symbol = str(function.attrs["global_symbol"])
            module = backend.create_module(symbol, program_of(function), constants_of(function))
            modules += backend.modules_to_export(module)
        return modules

    tvm.register_global_func(f"relax.ext.{backend.name}", codegen, override=True)
