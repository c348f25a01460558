"""``VerifyKernels``: plans whose kernels all agree with an independent implementation.

Before   programs of regions, nothing decided
After    the same as behind the passes that decide and plan, with no kernel that is refused

The passes in between run inside of this one: where a kernel of their plan turns out to be wrong, it is
refused in the library, and they run again on what came in.  Each turn refuses one kernel at least.  A region
that is not right after all turns goes back to TVM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import tvm

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.decisions.verification import Refusal
from tvm_mxplan.core.program import program as ir

from ..region.attached import program_of, regions
from ..region.dissolve import dissolve

TURNS = 16


class KernelVerifier(Protocol):
    """An object that checks kernels and remembers the results."""

    def refuse_known(self, backend: Backend) -> None:
        """Refuse in ``backend`` what was found to be wrong earlier."""
        ...

    def wrong(self, backend: Backend, programs: Sequence[ir.Program]) -> Mapping[str, Refusal]:
        """Refuse in ``backend`` the kernels of planned programs that are wrong; one for each, by its name."""
        ...


@tvm.transform.module_pass(opt_level=0, name="VerifyKernels")
class VerifyKernels:
    """Module pass; see the module's text.

    Parameters
    ----------
    backends : the libraries whose kernels are checked.
    plan : decides and plans, a turn of its own each time.
    journal : is told why regions went back to TVM.
    """

    def __init__(
        self,
        backends: Sequence[Backend],
        verifier: KernelVerifier,
        plan: Callable[[tvm.IRModule], tvm.IRModule],
        journal: Journal | None = None,
    ) -> None:
        self.backends = backends
        self.verifier = verifier
        self.plan = plan
        self.journal = Journal() if journal is None else journal

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        for backend in self.backends:
            self.verifier.refuse_known(backend)
        for _ in range(TURNS):
            planned = self.plan(mod)
            wrong = self._wrong(planned)
            if not wrong:
                return planned
        reasons = {gvar: f"{refusal}; still wrong after {TURNS} plans" for gvar, refusal in wrong.items()}
        mod, refused = dissolve(planned, reasons)
        self.journal.refuse(refused)
        return mod

    def _wrong(self, planned: tvm.IRModule) -> dict[tvm.ir.GlobalVar, Refusal]:
        """The regions, of any library, in which a kernel was refused."""
        found: dict[tvm.ir.GlobalVar, Refusal] = {}
        for backend in self.backends:
            programs = {gvar: program_of(function) for gvar, function in regions(planned, backend.name)}
            wrong = self.verifier.wrong(backend, list(programs.values()))
            found |= {gvar: wrong[one.name] for gvar, one in programs.items() if one.name in wrong}
        return found
