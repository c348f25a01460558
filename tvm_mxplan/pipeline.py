"""The order of the passes, written once.

canonicalize   RecoverOperators, SimplifyInference between two FoldConstants
dispatch       NameOperators; PartitionRegions: what the library takes; the reasons for what it does not
lower          BuildPrograms: a region program for each region
algorithms     ChooseAlgorithms
layouts        InferLayouts, PropagateLayouts
memory         PlanMemory
emit           EmitModules
TVM            its own pipeline for everything that is left
"""

from __future__ import annotations

import tvm
from tvm import relax

from . import environment, errors
from .byoc.backend import Backend
from .core.choices import Choices
from .core.policies import Rule
from .options import Options
from .passes.canonicalize import FoldConstants, RecoverOperators, SimplifyInference
from .passes.dispatch import ChooseAlgorithms
from .passes.layout import InferLayouts, PropagateLayouts
from .passes.layout.costs import BY_MODEL, CostSource
from .passes.layout.measure import StepTimer
from .passes.memory import PlanMemory
from .passes.memory.tvm_pipeline import default_pipeline
from .passes.region import BuildPrograms, EmitModules, NameOperators, PartitionRegions
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


def region_passes(
    backend: Backend, options: Options, recorder: Recorder, choices: Choices | None = None
) -> list[tvm.transform.Pass]:
    """Everything between canonical Relax and runtime modules."""
    cost: CostSource = BY_MODEL
    if options.tune == "measure":
        cost = StepTimer(backend, cost, options.tune_seconds)
    # Winograd's algorithms have no code for plain images.
    rule: Rule = "direct" if options.layouts == "plain" else options.convolutions
    return [
        recorder.before_partition(),
        PartitionRegions(backend, recorder.rejections, options.layers_off),
        BuildPrograms(backend, recorder.rejections),
        ChooseAlgorithms(
            backend,
            rule,
            options.max_relative_error,
            cost,
            recorder.rejections,
            choices,
        ),
        InferLayouts(
            backend,
            options.layouts,
            cost,
            options.layer_layouts,
            recorder.rejections,
            recorder.decisions,
            choices,
        ),
        *([] if options.layouts == "naive" else [PropagateLayouts(backend)]),
        PlanMemory(backend, options.memory == "reuse", options.order == "memory", recorder.proofs),
        recorder.planned(backend),
        recorder.left_to_tvm(),
        EmitModules(backend),
    ]


def build_pipeline(
    backends: list[Backend],
    options: Options,
    target: tvm.target.Target,
    recorder: Recorder | None = None,
    choices: Choices | None = None,
) -> tvm.transform.Pass:
    """The whole pipeline for one compilation, TVM's own part included; ``choices`` as for InferLayouts."""
    errors.register()
    recorder = Recorder() if recorder is None else recorder
    if not backends or environment.disabled():
        return tvm.transform.Sequential([relax.get_default_pipeline(target)], name=NAME)
    passes = [*canonicalize_passes(), NameOperators(options.layers)]
    for backend in backends:
        register_codegen(backend)
        passes += region_passes(backend, options, recorder, choices)
    reuse, reorder = options.memory == "reuse", options.order == "memory"
    passes.append(default_pipeline(target, reuse, reorder, recorder.stored))
    return tvm.transform.Sequential(passes, name=NAME)
