"""``ScheduleKernels``: threads of a GPU for every kernel, whatever becomes of a rule of TVM's schedules.

    rules of dlight, the first whose schedule can be lowered  ->  a plain schedule

TVM tries its rules in their order and takes the first that does not refuse.  Some fail on kernels that they
should leave to the next one: ``Reduction`` on a sum that reads nothing by an index, as in the gradient of a
loss.  Others make a schedule that fails where it is lowered, ``GeneralReduction`` for the gradient of a
pool.  Here a failure is a refusal.  A kernel that all rules refuse gets the schedule of ``plain_schedules``;
TVM would compile it for the CPU, which then reads addresses of the GPU.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir.dlight.gpu import Fallback

from .plain_schedules import has_threads, plain_schedule

RULES = "ApplyDefaultSchedule"
"""The name of TVM's pass that this one stands in the place of."""
_SCHEDULED = "tirx.is_scheduled"


@tvm.transform.module_pass(opt_level=0, name="ScheduleKernels")
class ScheduleKernels:
    """Module pass; ``rules`` are dlight's, in their order."""

    def __init__(self, *rules: Any) -> None:
        self.rules = rules

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        made = mod.clone()
        for name, kernel in mod.functions_items():
            if isinstance(kernel, tirx.PrimFunc) and _SCHEDULED not in kernel.attrs:
                target = kernel.attrs.get("target") or tvm.target.Target.current()
                if "gpu" in target.keys:
                    made.update_func(name, self._scheduled(kernel, target).with_attr(_SCHEDULED, True))
        return made

    def _scheduled(self, kernel: tirx.PrimFunc, target: tvm.target.Target) -> tirx.PrimFunc:
        for rule in self.rules:
            found = _by(rule, kernel, target)
            if found is not None:
                return found
        return kernel if has_threads(kernel) else plain_schedule(kernel)


def _by(rule: Any, kernel: tirx.PrimFunc, target: tvm.target.Target) -> tirx.PrimFunc | None:
    """The kernel as a rule schedules it; None where the rule refuses or fails, at once or in lowering."""
    try:
        schedule = rule.apply(kernel, target, False)
        if schedule is None:
            return None
        (found,) = schedule if isinstance(schedule, list | tuple) else (schedule,)
        scheduled = found.mod["main"]
        if not isinstance(rule, Fallback):  # binds loops, and nothing else that could fail
            _lower(scheduled, target)
        return scheduled
    except Exception:  # assertions, index errors, errors of schedules and of passes
        return None


def _lower(kernel: tirx.PrimFunc, target: tvm.target.Target) -> None:
    lower, *_ = tirx.get_default_tir_pipeline(target)
    bound = tirx.transform.BindTarget(target)(
        tvm.IRModule({"main": kernel.with_attr("global_symbol", "main")})
    )
    lower(bound)
