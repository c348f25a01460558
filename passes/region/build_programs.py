"""``BuildPrograms``: a region program for every region, in plain layouts.

Before   mxplan_onednn_0: composites that call Relax operators
After    the same, carrying ``mxplan.program`` and ``mxplan.constants``

The region's body stays as it is: it says what the program must compute, and TVM can run it.
"""

from __future__ import annotations

import tvm
from tvm_mxplan.byoc.backend import Backend

from .attached import attach, regions


@tvm.transform.module_pass(opt_level=0, name="BuildPrograms")
class BuildPrograms:
    """Module pass; see the module's text."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        mod = mod.clone()
        for gvar, function in list(regions(mod, self.backend.name)):
            program, constants = self.backend.translate(function, gvar.name_hint)
            mod.update_func(gvar, attach(function, program, constants))
        return mod
