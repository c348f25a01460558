"""TVM's default pipeline with ``StorageRewrite`` in the place of ``StaticPlanBlockMemory``.

    tvm.compile(mod, target, relax_pipeline=default_pipeline(target))

Where tensors of a CPU's function are on a device ``beside`` it, the passes are those of that device: they
leave kernels alone that are the CPU's.

Without ``reuse`` nobody plans, and every tensor has memory of its own, for comparison and for finding
faults of a plan.

Only for targets where a byte offset is pointer arithmetic: CPUs, CUDA and ROCm. TVM's own pipeline serves
the others, where ``ensure_zero_offset`` would copy.
"""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import relax
from tvm.relax.backend.cpu_generic import pipeline as cpu_generic
from tvm.relax.backend.cuda import pipeline as cuda
from tvm.relax.backend.rocm import pipeline as rocm

from tvm_mxplan.core.decisions.journal import Journal

from ..kernels import EmptyReductions, FusedScalarsInShapes, ScheduleKernels, TargetKernels
from ..kernels.schedule_kernels import RULES
from ..relax_types import is_arithmetic
from .order_bindings import smaller_order
from .rows_in_place import RowsInPlace
from .storage_rewrite import Observer, StorageRewrite

_CPU = "llvm"
_PIPELINES = {_CPU: cpu_generic, "cuda": cuda, "rocm": rocm}
_REPLACED = "StaticPlanBlockMemory"
_FUSING, _FUSED = "FuseOps", "FuseTIR"


def finalize_passes(
    target: tvm.target.Target, reuse: bool = True, observe: Observer | None = None
) -> list[tvm.transform.Pass]:
    """TVM's last passes for ``target``, which turn lowered Relax into what the VM executes."""
    passes = relax.pipeline.finalize_passes(target)
    if target.kind.name not in _PIPELINES:
        return passes
    planner = [StorageRewrite(observe)] if reuse else []
    return [new for old in passes for new in (planner if old.info.name == _REPLACED else [old])]


def _legalize_passes(
    target: tvm.target.Target,
    mod: tvm.IRModule,
    beside: tvm.target.Target | None = None,
    journal: Journal | None = None,
) -> list[tvm.transform.Pass]:
    """TVM's passes from operators to fused kernels, with ``FusedScalarsInShapes`` before the last of these.

    For GPUs ``ScheduleKernels`` applies TVM's schedules.  A module whose shapes have conditions inside
    (``if_then_else``) is not fused: ``FuseOps`` fails there.
    """
    passes = _PIPELINES[(beside or target).kind.name].legalize_passes(target)
    passes = [
        ScheduleKernels(*one.rules, journal=journal) if one.info.name == RULES else one for one in passes
    ]
    if _has_conditions(mod):
        return [one for one in passes if one.info.name not in (_FUSING, _FUSED)]
    scalars = FusedScalarsInShapes()
    placed = [TargetKernels(beside)] if beside else []
    return [new for old in passes for new in ([scalars, old, *placed] if old.info.name == _FUSED else [old])]


def _has_conditions(mod: tvm.IRModule) -> bool:
    found: list[relax.Call] = []

    def visit(call: relax.Call) -> None:
        if is_arithmetic(call):
            found.append(call)

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            tvm_ffi.structural_walk(function, (relax.Call, visit))
    return bool(found)


def default_pipeline(
    target: tvm.target.Target,
    reuse: bool = True,
    reorder: bool = False,
    observe: Observer | None = None,
    beside: tvm.target.Target | None = None,
    journal: Journal | None = None,
) -> tvm.transform.Pass:
    """``relax.get_default_pipeline`` with ``StorageRewrite``, which tells ``observe`` its plans.

    The journal is told what TVM's schedules fail on.  With ``reorder`` kernels and regions may change places
    where the plan gets smaller by it.
    """
    if target.kind.name not in _PIPELINES:
        return relax.get_default_pipeline(target)
    stages = _PIPELINES[(beside or target).kind.name]

    @tvm.transform.module_pass(opt_level=0, name="default_pipeline")
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        legalize = [*stages.library_dispatch_passes(target), *_legalize_passes(target, mod, beside, journal)]
        legalize += [EmptyReductions(target)] if target.kind.name == _CPU else []
        lower = tvm.transform.Sequential(stages.dataflow_lower_passes(target))
        with target:
            mod = tvm.transform.Sequential(legalize)(mod)
            mod = smaller_order(mod, lower) if reuse and reorder else lower(mod)
            return tvm.transform.Sequential([RowsInPlace(), *finalize_passes(target, reuse, observe)])(mod)

    return run
