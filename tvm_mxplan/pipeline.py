"""The order of the passes, written once.

canonicalize   RecoverOperators, SimplifyInference between two FoldConstants
dispatch       NameOperators; PartitionRegions: what the library takes; the reasons for what it does not
lower          BuildPrograms: a region program for each region
tuning         TunePlans, where something is measured
algorithms     ChooseAlgorithms
layouts        InferLayouts, PropagateLayouts
memory         PlanMemory
emit           EmitModules
TVM            its own pipeline for everything that is left
"""

from __future__ import annotations

from collections.abc import Callable

import tvm
from tvm import relax

from . import environment, errors
from .byoc.backend import Backend
from .core.choices import Choices
from .options import Options
from .passes.canonicalize import FoldConstants, RecoverOperators, SimplifyInference
from .passes.dispatch import ChooseAlgorithms
from .passes.dispatch.convolutions import Rule
from .passes.layout import InferLayouts, PropagateLayouts
from .passes.layout.candidates import Policy
from .passes.layout.costs import BY_MODEL, CostSource
from .passes.memory import PlanMemory
from .passes.memory.tvm_pipeline import default_pipeline
from .passes.region import BuildPrograms, EmitModules, NameOperators, PartitionRegions
from .passes.region.emit_modules import register_codegen
from .pipeline_registration import NAME
from .recorder import Recorder
from .tuning.candidates import Candidate
from .tuning.tune_plans import Stages, TunePlans
from .tuning.tuning import Tuning


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
    backend: Backend,
    options: Options,
    recorder: Recorder,
    choices: Choices | None = None,
    tuning: Tuning | None = None,
    last: Callable[[Recorder], tvm.transform.Pass] | None = None,
) -> list[tvm.transform.Pass]:
    """Everything between canonical Relax and runtime modules.

    Parameters
    ----------
    tuning : measures, or knows what was measured.
    last : the pass that lowers what is left, for the plans that tuning builds.
    """
    choices = Choices() if choices is None else choices
    measured = BY_MODEL if tuning is None else tuning.cost(backend)

    def decide(candidate: Candidate, noted: Choices) -> list[tvm.transform.Pass]:
        costs = [measured if timed else BY_MODEL for timed in (candidate.timed_rule, candidate.timed_policy)]
        return deciding_passes(
            backend, options, (candidate.rule, candidate.policy), (costs[0], costs[1]), Recorder(), noted
        )

    def finish(own: Recorder) -> list[tvm.transform.Pass]:
        tail = [] if last is None else [last(own)]
        return [*planning_passes(backend, options, own), EmitModules(backend), *tail]

    return [
        recorder.before_partition(),
        PartitionRegions(backend, recorder.rejections, options.layers_off),
        BuildPrograms(backend, recorder.rejections),
        *([TunePlans(backend, options, tuning, choices, Stages(decide, finish))] if tuning else []),
        *deciding_passes(
            backend, options, (options.rule, options.policy), (measured, measured), recorder, choices
        ),
        *planning_passes(backend, options, recorder),
        recorder.left_to_tvm(),
        EmitModules(backend),
    ]


def deciding_passes(
    backend: Backend,
    options: Options,
    ways: tuple[Rule, Policy],
    costs: tuple[CostSource, CostSource],
    recorder: Recorder,
    choices: Choices,
) -> list[tvm.transform.Pass]:
    """Algorithms, then layouts: how each is decided, and by which costs."""
    rejections, decisions = recorder.rejections, recorder.decisions
    return [
        ChooseAlgorithms(backend, ways[0], options.max_relative_error, costs[0], rejections, choices),
        InferLayouts(backend, ways[1], costs[1], options.layer_layouts, rejections, decisions, choices),
    ]


def planning_passes(backend: Backend, options: Options, recorder: Recorder) -> list[tvm.transform.Pass]:
    """Borders between regions, and memory."""
    return [
        *([] if options.layouts == "naive" else [PropagateLayouts(backend)]),
        PlanMemory(backend, options.memory == "reuse", options.order == "memory", recorder.proofs),
        recorder.planned(backend),
    ]


def build_pipeline(
    backends: list[Backend],
    options: Options,
    target: tvm.target.Target,
    recorder: Recorder | None = None,
    choices: Choices | None = None,
    tuning: Tuning | None = None,
) -> tvm.transform.Pass:
    """The whole pipeline for one compilation, TVM's own part included.

    Parameters
    ----------
    choices : as for InferLayouts.
    tuning : as the options ask for it, unless it is given.
    """
    errors.register()
    recorder = Recorder() if recorder is None else recorder
    if not backends or environment.disabled():
        return tvm.transform.Sequential([relax.get_default_pipeline(target)], name=NAME)
    if tuning is None and options.tunes:
        tuning = Tuning(options, target)
    reuse, reorder = options.memory == "reuse", options.order == "memory"

    def last(recorder: Recorder) -> tvm.transform.Pass:
        return default_pipeline(target, reuse, reorder, recorder.stored)

    passes = [*canonicalize_passes(), NameOperators(options.layers)]
    for backend in backends:
        register_codegen(backend)
        passes += region_passes(backend, options, recorder, choices, tuning, last)
    passes.append(last(recorder))
    return tvm.transform.Sequential(passes, name=NAME)
