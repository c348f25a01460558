"""The order of the passes, written once.

canonicalize   RecoverOperators, SimplifyInference between two FoldConstants and two NameSymbols,
               then SplitLongSums
dispatch       NameOperators; TuneDispatch, where something is measured
               DispatchOperators: who runs each of them, and why others do not
               PartitionRegions: what a library takes becomes regions
lower          BuildPrograms: a region program for each region
tuning         TunePlans, where something is measured
verification   VerifyKernels, which runs the next three again where a kernel of theirs is wrong
algorithms     ChooseAlgorithms
layouts        InferLayouts, PropagateLayouts
memory         PlanMemory
emit           EmitModules
TVM            its own pipeline for everything that is left
kernels        SerialSmallKernels
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import tvm
from tvm import relax

from . import environment, errors
from .byoc.backend import Backend
from .core.choices import Choices
from .core.policies import Policy, Rule
from .operator_options import with_operators
from .options import Options
from .passes.canonicalize import (
    FoldConstants,
    NameSymbols,
    RecoverOperators,
    SimplifyInference,
    SplitLongSums,
)
from .passes.dispatch import ChooseAlgorithms, DispatchOperators, VerifyKernels, WeighCandidates
from .passes.dispatch.implementations import Preference, Trial, preference_of
from .passes.kernels import CheckIndices, SerialSmallKernels
from .passes.layout import InferLayouts, PropagateLayouts
from .passes.layout.costs import BY_MODEL, CostSource
from .passes.memory import PlanMemory
from .passes.memory.tvm_pipeline import default_pipeline
from .passes.origins import keep_origins
from .passes.region import (
    BuildPrograms,
    EmitModules,
    InlineBlocks,
    NameOperators,
    OutlineBlocks,
    PartitionRegions,
)
from .pipeline_registration import NAME
from .recorder import Recorder
from .tuning.candidates import Candidate
from .tuning.place import Here
from .tuning.tune_dispatch import TuneDispatch, Variants
from .tuning.tune_plans import Stages, TunePlans
from .tuning.tuning import Tuning
from .verify.verifier import Verifier, verifier_of


def canonicalize_passes() -> list[tvm.transform.Pass]:
    return [
        NameSymbols(),
        FoldConstants(),
        RecoverOperators(),
        SimplifyInference(),
        keep_origins(relax.transform.DecomposeOpsForInference()),
        NameSymbols(),
        FoldConstants(),
        SplitLongSums(),
        relax.transform.CanonicalizeBindings(),
    ]


def dispatch_passes(preference: Preference, recorder: Recorder) -> list[tvm.transform.Pass]:
    """From canonical Relax with named operators to regions of the libraries that take them."""
    return [
        recorder.before_dispatch(preference),
        DispatchOperators(preference, recorder.rejections, recorder.dispatched),
        OutlineBlocks(),
        PartitionRegions(),
        InlineBlocks(),
    ]


def region_passes(backend: Backend, options: Options, recorder: Recorder) -> list[tvm.transform.Pass]:
    """Everything between canonical Relax and runtime modules, for one library."""
    preference = preference_of([backend], first=options.prefer, off=options.layers_off)
    return [*dispatch_passes(preference, recorder), *lowering_passes(backend, options, recorder)]


def lowering_passes(
    backend: Backend,
    options: Options,
    recorder: Recorder,
    choices: Choices | None = None,
    tuning: Tuning | None = None,
    last: Callable[[Recorder], tvm.transform.Pass] | None = None,
    verifier: Verifier | None = None,
) -> list[tvm.transform.Pass]:
    """From regions of one library to runtime modules.

    Parameters
    ----------
    tuning : measures, or knows what was measured.
    last : the pass that lowers what is left, for the plans that tuning builds.
    verifier : checks the kernels of the plan; None leaves them unchecked.
    """
    choices = Choices() if choices is None else choices
    measured = BY_MODEL if tuning is None else tuning.cost(backend)
    known = BY_MODEL if tuning is None else tuning.known_cost(backend)

    def decide(candidate: Candidate, noted: Choices, own: Recorder) -> list[tvm.transform.Pass]:
        ways = (candidate.rule, candidate.policy)
        by_rule = measured if candidate.timed_rule else BY_MODEL
        by_policy = measured if candidate.timed_policy else BY_MODEL
        return deciding_passes(backend, options, ways, (by_rule, by_policy), own, noted)

    def finish(own: Recorder) -> list[tvm.transform.Pass]:
        tail = [] if last is None else [last(own)]
        return [*planning_passes(backend, options, own), own.planned(backend), EmitModules(backend), *tail]

    compared: list[tvm.transform.Pass] = []
    if tuning:
        stages = Stages(decide, finish)
        compared = [TunePlans(backend, options, tuning, choices, recorder.weighed, stages)]

    def plan() -> list[tvm.transform.Pass]:
        ways = (options.rule, options.policy)
        return [
            *deciding_passes(backend, options, ways, (measured, measured), recorder, choices),
            WeighCandidates(backend, options.rule, known, recorder.decisions, recorder.weighed),
            *planning_passes(backend, options, recorder),
        ]

    def turn() -> list[tvm.transform.Pass]:
        recorder.begin_turn()
        choices.begin_turn()
        return plan()

    planned = plan() if verifier is None else [VerifyKernels(backend, verifier, turn, recorder.rejections)]
    return [
        BuildPrograms(backend, recorder.rejections),
        *compared,
        *planned,
        recorder.planned(backend),
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
    rejections, weighed = recorder.rejections, recorder.weighed
    return [
        ChooseAlgorithms(
            backend, ways[0], options.max_relative_error, costs[0], rejections, choices, weighed
        ),
        InferLayouts(
            backend,
            ways[1],
            costs[1],
            options.layer_layouts,
            rejections,
            recorder.decisions,
            choices,
            weighed,
        ),
    ]


def planning_passes(backend: Backend, options: Options, recorder: Recorder) -> list[tvm.transform.Pass]:
    """Borders between regions, and memory."""
    return [
        *([] if options.layouts == "naive" else [PropagateLayouts(backend)]),
        PlanMemory(backend, options.memory == "reuse", options.order == "memory", recorder.proofs),
    ]


def build_pipeline(
    backends: list[Backend],
    options: Options,
    target: tvm.target.Target,
    recorder: Recorder | None = None,
    choices: Choices | None = None,
    tuning: Tuning | None = None,
    *,
    verifier: Verifier | None = None,
    order: Sequence[str] = (),
    absent: Mapping[str, str] = MappingProxyType({}),
) -> tvm.transform.Pass:
    """The whole pipeline for one compilation, TVM's own part included.

    Parameters
    ----------
    choices : as for InferLayouts.
    tuning, verifier : as the options ask for them, unless they are given.
    order, absent : implementations by preference, and why some are not here; see ``preference_of``.
    """
    errors.register()
    recorder = Recorder() if recorder is None else recorder
    if not backends or environment.disabled():
        recorder.preference = preference_of(backends, order, absent, options.prefer, options.layers_off)
        why = "TVM_MXPLAN_DISABLE is set" if backends else "the target names no library that is here"
        noted = [NameOperators(), recorder.before_dispatch(recorder.preference), recorder.left_to_tvm(why)]
        by_tvm = [*noted, CheckIndices(), relax.get_default_pipeline(target)]
        return tvm.transform.Sequential(by_tvm, name=NAME)
    preference_of(backends, order, absent, options.prefer)  # wishes that cannot be are told before all else
    if tuning is None and options.tunes:
        tuning = Tuning(options, target)
    if verifier is None:
        verifier = verifier_of(options, Here())
    choices = Choices() if choices is None else choices
    named = tvm.transform.Sequential([*canonicalize_passes(), NameOperators()])

    @tvm.transform.module_pass(opt_level=0, name=NAME)
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        mod = named(mod)
        meant = with_operators(options, mod)
        trials: dict[str, Trial] = {}
        preference = preference_of(backends, order, absent, meant.prefer, meant.layers_off, trials)
        passes = _passes_of_named(
            backends, meant, target, _Shared(recorder, choices, tuning, verifier, preference, trials)
        )
        return tvm.transform.Sequential(passes)(mod)

    return run


@dataclass(frozen=True)
class _Shared:
    """What the passes of one compilation share."""

    recorder: Recorder
    choices: Choices
    tuning: Tuning | None
    verifier: Verifier | None
    preference: Preference
    trials: dict[str, Trial]


def _passes_of_named(
    backends: list[Backend], options: Options, target: tvm.target.Target, shared: _Shared
) -> list[tvm.transform.Pass]:
    """From operators with names to what the VM executes; ``options`` speak of operators by these names."""
    reuse, reorder = options.memory == "reuse", options.order == "memory"
    recorder, choices, tuning = shared.recorder, shared.choices, shared.tuning

    def last(recorder: Recorder) -> tvm.transform.Pass:
        lower = default_pipeline(target, reuse, reorder, recorder.stored)
        return tvm.transform.Sequential([CheckIndices(), lower, SerialSmallKernels()])

    def lower_by_model(own: Recorder) -> list[tvm.transform.Pass]:
        lowered = [one for backend in backends for one in lowering_passes(backend, options, own)]
        return [*lowered, last(own)]

    passes = []
    if tuning:
        variants = Variants(dispatch_passes, lower_by_model)
        passes.append(TuneDispatch(shared.preference, options, tuning, choices, shared.trials, variants))
    passes += dispatch_passes(shared.preference, recorder)
    for backend in backends:
        passes += lowering_passes(backend, options, recorder, choices, tuning, last, shared.verifier)
    return [*passes, last(recorder)]
