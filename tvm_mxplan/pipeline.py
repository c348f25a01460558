"""The order of the passes, written once.

canonicalize   RecoverOperators, SimplifyInference between two FoldConstants
dispatch       NameOperators; DispatchOperators: who runs each of them, and why others do not
               PartitionRegions: what a library takes becomes regions
lower          BuildPrograms: a region program for each region
algorithms     ChooseAlgorithms
layouts        InferLayouts, PropagateLayouts
memory         PlanMemory
emit           EmitModules
TVM            its own pipeline for everything that is left
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import tvm
from tvm import relax

from . import environment, errors
from .byoc.backend import Backend
from .core.choices import Choices
from .options import Options
from .passes.canonicalize import FoldConstants, RecoverOperators, SimplifyInference
from .passes.dispatch import ChooseAlgorithms, DispatchOperators
from .passes.dispatch.convolutions import Rule
from .passes.dispatch.implementations import Preference, preference_of
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


def dispatch_passes(preference: Preference, recorder: Recorder) -> list[tvm.transform.Pass]:
    """From canonical Relax with named operators to regions of the libraries that take them."""
    return [
        recorder.before_dispatch(preference),
        DispatchOperators(preference, recorder.rejections, recorder.dispatched),
        PartitionRegions(),
    ]


def region_passes(
    backend: Backend, options: Options, recorder: Recorder, choices: Choices | None = None
) -> list[tvm.transform.Pass]:
    """Everything between canonical Relax and runtime modules, for one library."""
    preference = preference_of([backend], first=options.prefer, off=options.layers_off)
    return [*dispatch_passes(preference, recorder), *lowering_passes(backend, options, recorder, choices)]


def lowering_passes(
    backend: Backend, options: Options, recorder: Recorder, choices: Choices | None = None
) -> list[tvm.transform.Pass]:
    """From regions of one library to runtime modules."""
    cost: CostSource = BY_MODEL
    if options.tune == "measure":
        cost = StepTimer(backend, cost, options.tune_seconds)
    # Winograd's algorithms have no code for plain images.
    rule: Rule = "direct" if options.layouts == "plain" else options.convolutions
    return [
        BuildPrograms(backend, recorder.rejections),
        ChooseAlgorithms(
            backend,
            rule,
            options.max_relative_error,
            cost,
            recorder.rejections,
            choices,
            recorder.weighed,
        ),
        InferLayouts(
            backend,
            options.layouts,
            cost,
            options.layer_layouts,
            recorder.rejections,
            recorder.decisions,
            choices,
            recorder.weighed,
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
    *,
    order: Sequence[str] = (),
    absent: Mapping[str, str] = MappingProxyType({}),
) -> tvm.transform.Pass:
    """The whole pipeline for one compilation, TVM's own part included; ``choices`` as for InferLayouts.

    Parameters
    ----------
    order, absent : implementations by preference, and why some are not here; see ``preference_of``.
    """
    errors.register()
    recorder = Recorder() if recorder is None else recorder
    preference = preference_of(backends, order, absent, options.prefer, options.layers_off)
    if not backends or environment.disabled():
        recorder.preference = preference
        return tvm.transform.Sequential([relax.get_default_pipeline(target)], name=NAME)
    spoken_of = {"layers": options.layers, "prefer": options.preferred_operators}
    passes = [*canonicalize_passes(), NameOperators(spoken_of)]
    passes += dispatch_passes(preference, recorder)
    for backend in backends:
        register_codegen(backend)
        passes += lowering_passes(backend, options, recorder, choices)
    reuse, reorder = options.memory == "reuse", options.order == "memory"
    passes.append(default_pipeline(target, reuse, reorder, recorder.stored))
    return tvm.transform.Sequential(passes, name=NAME)
