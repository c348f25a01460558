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

from tvm_mxplan.byoc.backend import Backend, Rejections
from tvm_mxplan.core import program as ir
from tvm_mxplan.core.verification import Refusal

from ..region.attached import program_of, regions
from ..region.dissolve import dissolve

TURNS = 16


class Verifier(Protocol):
    """Who checks kernels, and remembers them."""

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
    plan : gives the passes that decide and plan, for a turn of their own.
    rejections : filled with the reasons for which regions went back to TVM.
    """

    def __init__(
        self,
        backend: Backend,
        verifier: Verifier,
        plan: Callable[[], Sequence[tvm.transform.Pass]],
        rejections: Rejections | None = None,
    ) -> None:
        self.backend = backend
        self.verifier = verifier
        self.plan = plan
        self.rejections = {} if rejections is None else rejections

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        self.verifier.refuse_known(self.backend)
        for _ in range(TURNS):
            planned = tvm.transform.Sequential(list(self.plan()))(mod)
            found = {gvar: program_of(function) for gvar, function in regions(planned, self.backend.name)}
            wrong = self.verifier.wrong(self.backend, list(found.values()))
            if not wrong:
                return planned
        reasons = {
            gvar: f"{wrong[program.name]}; still wrong after {TURNS} plans"
            for gvar, program in found.items()
            if program.name in wrong
        }
        return dissolve(planned, reasons, self.rejections)
