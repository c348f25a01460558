"""``BuildPrograms``: a region program for every region, in plain layouts.

Before   mxplan_onednn_0: composites that call Relax operators
After    the same, carrying ``mxplan.program``, ``mxplan.constants`` and ``mxplan.fused``

The region's body stays as it is: it says what the program must compute, and TVM can run it.  A region that
the backend cannot translate, or that only moves data, goes back to TVM.
"""

from __future__ import annotations

import tvm

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.machine import MachineRates, default_rates
from tvm_mxplan.core.program.program import Program, Reorder, Slice
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

from .attached import attach, regions, with_fused
from .contents import is_changed
from .dissolve import dissolve


@tvm.transform.module_pass(opt_level=0, name="BuildPrograms")
class BuildPrograms:
    """Module pass; see the module's text.

    Parameters
    ----------
    journal : is told why regions went back.
    machine : libraries fuse for it; by default one that nobody described.
    """

    def __init__(
        self, backend: Backend, journal: Journal | None = None, machine: MachineRates | None = None
    ) -> None:
        self.backend = backend
        self.machine = machine or default_rates()
        self.journal = Journal() if journal is None else journal

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        mod = mod.clone()
        refused: dict[tvm.ir.GlobalVar, str] = {}
        for gvar, function in list(regions(mod, self.backend.name)):
            try:
                program, constants, fused = self.backend.translate(function, gvar.name_hint, self.machine)
            except UnsupportedError as error:
                refused[gvar] = str(error)
                continue
            except Exception as error:
                if not is_changed(function):
                    raise
                raise InvalidInputError(
                    f"region {gvar.name_hint} is not as DispatchOperators left it; was a pass run in between?"
                    " Run BuildPrograms right behind PartitionRegions"
                ) from error
            if _only_moves_data(program):
                refused[gvar] = "only moves data, which no library does better"
            else:
                mod.update_func(gvar, with_fused(attach(function, program, constants), fused))
        mod, reasons = dissolve(mod, refused)
        self.journal.refuse(reasons)
        return mod


def _only_moves_data(program: Program) -> bool:
    return all(isinstance(step.attrs, Reorder | Slice) for step in program.steps)
