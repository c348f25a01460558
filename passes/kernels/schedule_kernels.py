"""``ScheduleKernels``: threads of a GPU for every kernel, whatever becomes of a rule of TVM's schedules.

    rules of dlight, the first whose schedule can be lowered  ->  a plain schedule

TVM tries its rules in their order and takes the first that does not refuse.  Some fail on kernels that they
should leave to the next one: ``Reduction`` on a sum that reads nothing by an index, as in the gradient of a
loss.  Others make a schedule that fails where it is lowered, ``GeneralReduction`` for the gradient of a
pool.  Here a failure is a refusal, and noted in the journal.  A kernel that all rules refuse gets the
schedule of ``plain_schedules``; TVM would compile it for the CPU, which then reads addresses of the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir.dlight.gpu import Fallback

from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.errors import last_line

from .plain_schedules import has_threads, plain_schedule

RULES = "ApplyDefaultSchedule"
"""The name of TVM's pass that this one stands in the place of."""
_SCHEDULED = "tirx.is_scheduled"


@tvm.transform.module_pass(opt_level=0, name="ScheduleKernels")
class ScheduleKernels:
    """Module pass.

    Parameters
    ----------
    rules : dlight's, in their order.
    journal : is told which rules fail on which kernels.
    """

    def __init__(self, *rules: Any, journal: Journal | None = None) -> None:
        self.rules = rules
        self.journal = Journal() if journal is None else journal

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        made = mod.clone()
        for name, kernel in mod.functions_items():
            if isinstance(kernel, tirx.PrimFunc) and _SCHEDULED not in kernel.attrs:
                target = kernel.attrs.get("target") or tvm.target.Target.current()
                if "gpu" in target.keys:
                    scheduled, failures = self._scheduled(kernel, target)
                    made.update_func(name, scheduled.with_attr(_SCHEDULED, True))
                    if failures:
                        self.journal.fail({name.name_hint: "; ".join(failures)})
        return made

    def _scheduled(
        self, kernel: tirx.PrimFunc, target: tvm.target.Target
    ) -> tuple[tirx.PrimFunc, Sequence[str]]:
        """The kernel with threads, and how rules failed on it."""
        failures = []
        for rule in self.rules:
            try:
                found = _by(rule, kernel, target)
            except Exception as error:  # assertions, index errors, errors of schedules and of passes
                said = f"{type(error).__name__}: {last_line(error)}"
                failures.append(f"schedule {type(rule).__name__} ({said})")
                continue
            if found is not None:
                return found, failures
        return kernel if has_threads(kernel) else plain_schedule(kernel), failures


def _by(rule: Any, kernel: tirx.PrimFunc, target: tvm.target.Target) -> tirx.PrimFunc | None:
    """The kernel as a rule schedules it; None where the rule refuses.  It fails at once, or in lowering."""
    schedule = rule.apply(kernel, target, False)
    if schedule is None:
        return None
    (found,) = schedule if isinstance(schedule, list | tuple) else (schedule,)
    scheduled = found.mod["main"]
    if not isinstance(rule, Fallback):  # binds loops, and nothing else that could fail
        _lower(scheduled, target)
    return scheduled


def _lower(kernel: tirx.PrimFunc, target: tvm.target.Target) -> None:
    lower, *_ = tirx.get_default_tir_pipeline(target)
    bound = tirx.transform.BindTarget(target)(
        tvm.IRModule({"main": kernel.with_attr("global_symbol", "main")})
    )
    lower(bound)
