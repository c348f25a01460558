"""The order of the passes, written once.

canonicalize   RecoverOperators, SimplifyInference between two FoldConstants
dispatch       PartitionRegions: what the library takes; the reasons for what it does not
lower          BuildPrograms: a region program for each region
layouts        InferLayouts
memory         PlanMemory
emit           EmitModules
TVM            its own pipeline for everything that is left
"""

from __future__ import annotations

import tvm
from tvm import relax

from . import environment
from .byoc.backend import Backend
from .options import Options
from .passes.canonicalize import FoldConstants, RecoverOperators, SimplifyInference
from .passes.layout import InferLayouts
from .passes.memory import PlanMemory
from .passes.memory.tvm_pipeline import default_pipeline
from .passes.region import BuildPrograms, EmitModules, PartitionRegions
from .passes.region.emit_modules import register_codegen
from .pipeline_registration import NAME
from .recorder import Recorder


def canonicalize_passes() -> list[tvm.transform.Pass]:
    return [
        FoldConstants(),
        RecoverOperators(),
        SimplifyInference(),
        relax.transform.DecomposeOpsForInference(),
        FoldConstants(),
        relax.transform.CanonicalizeBindings(),
    ]


def region_passes(backend: Backend, options: Options, recorder: Recorder) -> list[tvm.transform.Pass]:
    """Everything between canonical Relax and runtime modules."""
    tune_seconds = options.tune_seconds if options.tune == "measure" else 0.0
    return [
        recorder.before_partition(),
        PartitionRegions(backend, recorder.rejections),
        BuildPrograms(backend, recorder.rejections),
        InferLayouts(backend, options.layouts, tune_seconds, recorder.rejections),
        PlanMemory(backend, options.memory == "reuse", options.order == "memory", recorder.proofs),
        recorder.planned(backend),
        recorder.left_to_tvm(),
        EmitModules(backend),
    ]


def build_pipeline(
    backends: list[Backend], options: Options, target: tvm.target.Target, recorder: Recorder | None = None
) -> tvm.transform.Pass:
    """The whole pipeline for one compilation, TVM's own part included."""
    recorder = Recorder() if recorder is None else recorder
    if not backends or environment.disabled():
        return tvm.transform.Sequential([relax.get_default_pipeline(target)], name=NAME)
    passes = canonicalize_passes()
    for backend in backends:
        register_codegen(backend)
        passes += region_passes(backend, options, recorder)
    reuse, reorder = options.memory == "reuse", options.order == "memory"
    passes.append(default_pipeline(target, reuse, reorder, recorder.stored))
    return tvm.transform.Sequential(passes, name=NAME)
