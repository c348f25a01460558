"""The pipeline: one table, read from top to bottom; see ``phases`` for how it is run.

Below it stand the passes of each phase, in the same order.  Each function gives them for all libraries of a
compilation at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import tvm
from tvm import relax

from . import environment, errors
from .byoc.backend import Backend, DeviceBackend
from .byoc.joined import joined, leaders
from .core.decisions.choices import Choices
from .core.machine import MachineRates, default_rates
from .operator_options import with_operators
from .options import Options
from .passes.borders import MarkState, NoteRowsInPlace, PropagateLayouts, StoreState
from .passes.canonicalize import (
    AttendCaches,
    FoldConstants,
    MergeAxes,
    MultiplyEinsums,
    NameSymbols,
    NarrowProducts,
    RecoverAttention,
    RecoverOperators,
    RecoverRmsNorms,
    RecoverRotary,
    RecoverScales,
    SimplifyInference,
    SplitLongSums,
    WidenFloats,
)
from .passes.devices import Beside, ChooseDevices, PlaceTensors, TakeHints
from .passes.dispatch import ChooseAlgorithms, DispatchOperators, WeighCandidates
from .passes.dispatch.implementations import preference_of
from .passes.dispatch.weigh_guests import Worth
from .passes.indices import CheckIndices, CountFromEitherEnd
from .passes.kernels import (
    ExactComparisons,
    ExactFunctions,
    InfiniteFills,
    NumbersInOrder,
    OwnResults,
    ReductionsFromInfinity,
    SerialSmallKernels,
    TrustedIndices,
    WideSums,
)
from .passes.layout import InferLayouts
from .passes.memory import PlanMemory
from .passes.origins import keep_origins
from .passes.precision import AssignPrecision
from .passes.precision.wishes import PrecisionWish
from .passes.region import (
    BuildPrograms,
    EmitModules,
    ForgetOrder,
    InlineBlocks,
    NameOperators,
    OutlineBlocks,
    PartitionRegions,
)
from .passes.sizes import DispatchSizes, NamedBatch, SpecializeSizes
from .passes.storage.tvm_pipeline import default_pipeline
from .phases import Compilation, Passes, Phase, check_names
from .pipeline_registration import NAME
from .rates.wanted import wanted_rates
from .report.phase_dump import ALL, PhaseDump
from .report.recorder import Recorder
from .targets import TVM
from .tuning.candidates import PlanCandidate
from .tuning.place import Here
from .tuning.tune_dispatch import TuneDispatch
from .tuning.tune_plans import TunePlans
from .tuning.tuning import Tuning
from .verify.verifier import Verifier, verifier_of


def canonicalize(c: Compilation) -> Passes:
    # Operators that an importer wrote as kernels are recovered first: kernels state their types themselves.
    # CPUs compute in float32, GPUs in the model's type with sums in float32.
    # Composites are matched, and TVM's kernels fused, in dataflow blocks alone.
    narrow = [RecoverOperators(), WidenFloats()] if _on_cpu_alone(c) else [NarrowProducts()]
    rows = [RecoverRmsNorms(), RecoverRotary()] if _on_cpu_alone(c) else []
    hints = [TakeHints(c.beside.name)] if c.beside else []
    sizes = [SpecializeSizes(c.batch)] if c.batch else []
    counted = [CountFromEitherEnd()] if _on_cpu(c) else []  # where indices are checked
    return [
        *sizes,
        relax.transform.ConvertToDataflow(1),
        *hints,
        NameSymbols(),
        *narrow,
        MultiplyEinsums(),
        FoldConstants(),
        RecoverOperators(),
        RecoverScales(),
        SimplifyInference(),
        keep_origins(relax.transform.DecomposeOpsForInference()),
        NameSymbols(),
        FoldConstants(),
        RecoverAttention(),
        AttendCaches(),
        FoldConstants(),  # masks that were joined
        *counted,
        *rows,
        MergeAxes(),
        SplitLongSums(),
        relax.transform.CanonicalizeBindings(),
    ]


def name_operators(_: Compilation) -> Passes:
    return [NameOperators()]


def tune_dispatch(c: Compilation) -> Passes:
    return [TuneDispatch(c, c.tuning)] if c.tuning else []


def choose_devices(c: Compilation) -> Passes:
    return [ChooseDevices(c.preference, c.beside, c.machine, c.recorder.journal)] if c.beside else []


def dispatch(c: Compilation) -> Passes:
    return [
        c.recorder.before_dispatch(c.preference),
        DispatchOperators(
            c.preference.with_trials(c.recorder.journal.trials),
            c.recorder.journal,
            Worth(c.machine, leaders(c.backends)),
        ),
    ]


def partition(c: Compilation) -> Passes:
    return [OutlineBlocks(), PartitionRegions(leaders(c.backends)), InlineBlocks(), ForgetOrder()]


def build_programs(c: Compilation) -> Passes:
    return [*(BuildPrograms(backend, c.recorder.journal, c.machine) for backend in c.backends), MarkState()]


def assign_precision(c: Compilation) -> Passes:
    options = c.options
    wish = PrecisionWish(options.precision, options.precision_for, options.max_relative_error, c.way.rule)
    return [
        AssignPrecision(backend, wish, c.cost(backend, timed=False), c.recorder.journal)
        for backend in c.backends
    ]


def tune_plans(c: Compilation) -> Passes:
    return [TunePlans(c, c.tuning)] if c.tuning else []


def choose_algorithms(c: Compilation) -> Passes:
    return [
        ChooseAlgorithms(
            backend,
            c.way.rule,
            c.options.max_relative_error,
            c.cost(backend, c.way.timed_rule),
            c.choices,
            c.recorder.journal,
        )
        for backend in c.backends
    ]


def infer_layouts(c: Compilation) -> Passes:
    return [
        InferLayouts(
            backend,
            c.way.policy,
            c.cost(backend, c.way.timed_policy),
            c.options.layer_layouts,
            c.choices,
            c.recorder.journal,
        )
        for backend in c.backends
    ]


def weigh_candidates(c: Compilation) -> Passes:
    return [
        WeighCandidates(backend, c.way.rule, c.known_cost(backend), c.recorder.journal)
        for backend in c.backends
    ]


def propagate_layouts(c: Compilation) -> Passes:
    crossing = [backend for backend in c.backends if c.options.layouts != "naive"]
    passes = [kind(backend, c.machine) for backend in crossing for kind in (PropagateLayouts, StoreState)]
    return [*passes, c.recorder.stored_state()]


def plan_memory(c: Compilation) -> Passes:
    reuse, reorder = c.options.memory == "reuse", c.options.order == "memory"
    planned = [PlanMemory(backend, reuse, reorder, c.recorder.journal) for backend in c.backends]
    return [*planned, NoteRowsInPlace()]


def report(c: Compilation) -> Passes:
    return [*(c.recorder.planned(backend) for backend in c.backends), c.recorder.left_to_tvm()]


def emit_modules(c: Compilation) -> Passes:
    return [EmitModules(backend) for backend in c.backends]


def check_indices(c: Compilation) -> Passes:
    return [CheckIndices()] if _on_cpu(c) else []  # its assertions cannot be raised from a GPU


def place_tensors(c: Compilation) -> Passes:
    kinds = {one.name for one in c.backends if isinstance(one, DeviceBackend)}
    return [PlaceTensors(c.beside, c.machine, kinds)] if c.beside else []


def dispatch_sizes(c: Compilation) -> Passes:
    return [DispatchSizes(c.batch)] if c.batch else []


def _exact_kernels() -> Passes:
    return [
        OwnResults(),
        ExactComparisons(),
        ExactFunctions(),
        NumbersInOrder(),
        InfiniteFills(),
        ReductionsFromInfinity(),
        TrustedIndices(),
    ]


def lower(c: Compilation) -> Passes:
    reuse, reorder = c.options.memory == "reuse", c.options.order == "memory"
    sums = [] if _on_cpu_alone(c) else [WideSums()]
    beside = c.beside.target if c.beside else None
    planned = default_pipeline(c.target, reuse, reorder, c.recorder.stored, beside, c.recorder.journal)
    return [*_exact_kernels(), *sums, planned]


def finish_kernels(c: Compilation) -> Passes:
    return [SerialSmallKernels()] if _on_cpu(c) else []


def _on_cpu(c: Compilation) -> bool:
    return str(c.target.kind.name) == TVM


def _on_cpu_alone(c: Compilation) -> bool:
    return _on_cpu(c) and c.beside is None


PHASES = (
    # name, what it takes, what it hands on, its passes
    Phase("canonicalize", "Relax", "canonical Relax: one form for each idea", canonicalize),
    Phase("name", "canonical Relax", "a name on each operator", name_operators),
    Phase("tune-dispatch", "named operators", "the same; kinds tried in TVM's kernels", tune_dispatch),
    Phase("devices", "named operators", "the same; the device of each, where there are two", choose_devices),
    Phase("dispatch", "named operators", "composites of the libraries that take them", dispatch),
    Phase("partition", "composites", "regions, each led by one library", partition),
    Phase("programs", "regions", "a region program on each, in plain layouts", build_programs),
    Phase("precision", "region programs", "the same, in element types", assign_precision, verified=True),
    Phase("tune-plans", "region programs", "the same; the best plan's choices", tune_plans, verified=True),
    Phase("algorithms", "region programs", "an algorithm for each step", choose_algorithms, verified=True),
    Phase("layouts", "algorithms", "layouts, reorders, implementations, bytes", infer_layouts, verified=True),
    Phase("weigh", "layouts", "the same; costs of what was not taken", weigh_candidates, verified=True),
    Phase("borders", "layouts", "layouts that cross between regions", propagate_layouts, verified=True),
    Phase("memory", "layouts and bytes", "views, results in place, offsets", plan_memory, verified=True),
    Phase("report", "planned programs", "the same; what the report says of them", report),
    Phase("emit", "planned programs", "calls of runtime modules", emit_modules),
    Phase("indices", "Relax for TVM", "checks of indices that vary", check_indices),
    Phase("copies", "Relax for TVM", "tensors on their devices, copies between two", place_tensors),
    Phase("sizes", "Relax for TVM", "the function that chooses a size of a named batch", dispatch_sizes),
    Phase("lower", "Relax for TVM", "kernels; one arena for each function", lower),
    Phase("kernels", "lowered Relax", "small kernels on one thread", finish_kernels),
)


@dataclass(frozen=True)
class Given:
    """All that a compilation may be given beside libraries, options and target.

    Attributes
    ----------
    recorder, choices : new ones unless they are given.
    tuning, verifier : None measures nothing, checks nothing, unless the options ask for it.
    machine : what the machine that is compiled for can do.
    beside : the device beside the CPU; None for one device.
    batch : a named batch that becomes functions of sizes; None leaves names as they are.
    order, absent : implementations by preference, and why some are not here; see ``preference_of``.
    """

    recorder: Recorder | None = None
    choices: Choices | None = None
    tuning: Tuning | None = None
    verifier: Verifier | None = None
    machine: MachineRates | None = None
    beside: Beside | None = None
    batch: NamedBatch | None = None
    order: Sequence[str] = ()
    absent: Mapping[str, str] = field(default_factory=dict)


NOTHING = Given()


def compilation(
    backends: Sequence[Backend], options: Options, target: tvm.target.Target, given: Given = NOTHING
) -> Compilation:
    """One compilation that runs through ``PHASES``; by stated rates unless others are given."""
    preference = preference_of(backends, given.order, given.absent, options.prefer, options.layers_off)
    wanted = options.dump_after
    check_names([name for name in wanted if name != ALL], PHASES)
    folder = None if options.dump_folder is None else Path(options.dump_folder)
    machine = default_rates() if given.machine is None else given.machine
    recorder = Recorder() if given.recorder is None else given.recorder
    recorder.machine = machine
    return Compilation(
        PHASES,
        tuple(joined(backends)),
        options,
        target,
        preference,
        PlanCandidate(options.policy, options.rule, timed_rule=True, timed_policy=True),
        recorder,
        Choices() if given.choices is None else given.choices,
        machine,
        given.beside,
        given.batch,
        given.tuning,
        given.verifier,
        PhaseDump(wanted, folder) if wanted else None,
    )


def build_pipeline(
    backends: Sequence[Backend], options: Options, target: tvm.target.Target, given: Given = NOTHING
) -> tvm.transform.Pass:
    """The whole pipeline for one compilation, TVM's own part included.

    What tunes, verifies and tells the machine's rates is as the options ask for it, unless it is given.
    """
    errors.register()
    works = bool(backends) and not environment.disabled()
    if given.machine is None:
        rates = wanted_rates(options, Here().threads, Here().rates, weighs=works)
        given = replace(given, machine=rates)
    made = compilation(backends, options, target, given)
    if not works:
        why = "the target names no library that is here" if not backends else "TVM_MXPLAN_DISABLE is set"
        if given.tuning is not None:
            given.tuning.skipped(f"nothing to tune: {why}")
        named = [
            CountFromEitherEnd(),
            NameOperators(),
            made.recorder.before_dispatch(made.preference),
            made.recorder.left_to_tvm(why),
        ]
        by_tvm = [*named, CheckIndices(), *_exact_kernels(), relax.get_default_pipeline(target)]
        return tvm.transform.Sequential(by_tvm, name=NAME)
    if given.tuning is None and options.tunes:
        given = replace(given, tuning=Tuning(options, target))
    if given.verifier is None:
        given = replace(given, verifier=verifier_of(options, Here()))
    made = made.but(tuning=given.tuning, verifier=given.verifier, dump=made.dump)
    return _Pipeline(made, given)


@tvm.transform.module_pass(opt_level=0, name=NAME)
class _Pipeline:
    """One compilation as a pass."""

    def __init__(self, made: Compilation, given: Given) -> None:
        self.made, self.given = made, given

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        named = self.made.run(mod, last="name")
        return self._meant(named).run(named, first="tune-dispatch")

    def _meant(self, named: tvm.IRModule) -> Compilation:
        """The compilation with options that name operators, where users named parts of their model."""
        made, options = self.made, with_operators(self.made.options, named)
        wishes = options.prefer, options.layers_off
        preference = preference_of(made.backends, self.given.order, self.given.absent, *wishes)
        return made.but(options=options, preference=preference, dump=made.dump)
