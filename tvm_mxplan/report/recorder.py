"""``Recorder``: passes that change nothing and note what the report needs, between those that work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import tvm
from tvm import relax

from ..byoc import registry
from ..byoc.backend import Backend
from ..core import multiply_adds as step_multiply_adds
from ..core.decisions.journal import Journal
from ..core.decisions.origin import Origins
from ..core.decisions.precision import SHORT_NAMES
from ..core.decisions.stored_state import StoredState
from ..core.decisions.verification import Verification
from ..core.element_types import dense_bytes
from ..core.layout.layout import plain_layout
from ..core.layout.layout_decision import LayoutDecision
from ..core.machine import MachineRates, default_rates
from ..core.program import program as ir
from ..core.program.dims import is_static
from ..core.program.specialize import typical
from ..execution.determinism import Determinism
from ..passes.borders import CONVERTING, stored_state
from ..passes.costs import multiply_adds
from ..passes.costs.kept_times import KeptCall, kept_calls
from ..passes.costs.model import planned_step_us, region_us
from ..passes.dispatch.implementations import NO_PATTERN, Preference, preference_of
from ..passes.origins import origin_table
from ..passes.region.attached import constants_of, fused_of, program_of, regions
from ..passes.storage.relax_aliases import name_of
from ..passes.storage.storage_plan import StoragePlan
from ..tuning.report import TuningReport
from .arena import memory_report
from .dispatch_report import PlannedRegion, dispatch_report
from .function_arena import function_report
from .kept_operators import Fallback, KeptOperator
from .memory_report import MemoryReport
from .report import RegionReport, ReorderReport, Report, StepReport


class Recorder:
    """Collects one compilation's facts; ``report`` gives them, ``constants`` those of each region.

    Attributes
    ----------
    journal : what passes decided, which the report is a view of.
    preference : who is asked for operators, and in which order.
    origins : what in the user's model operators come from, by their names.
    machine : what the machine that is compiled for can do, by which times are estimated.

    Parameters
    ----------
    threads : of libraries on the machine that is compiled for; the most of any in this process by default.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads
        self.journal = Journal()
        self.origins: Mapping[str, Origins] = {}
        self.machine: MachineRates = default_rates()
        self._kept: tuple[KeptOperator, ...] = ()
        self.preference = preference_of([])
        self._planned: list[PlannedRegion] = []
        self._multiply_adds = 0
        self._regions: list[RegionReport] = []
        self._memory: list[MemoryReport] = []
        self._fallbacks: tuple[Fallback, ...] = ()
        self._state: tuple[StoredState, ...] = ()
        self._converting: tuple[str, ...] = ()
        self.constants: dict[str, list[tvm.runtime.Tensor]] = {}
        self.seconds: dict[str, float] = {}
        self.determinism: Determinism | None = None
        self.tuning: TuningReport | None = None
        self.verification: Verification | None = None

    @property
    def report(self) -> Report:
        return Report(
            tuple(self._regions),
            self._fallbacks,
            self._multiply_adds,
            dict(self.seconds),
            tuple(self._memory),
            self.determinism,
            dispatch=dispatch_report(
                self.preference,
                self.journal.dispatched,
                self._planned,
                self.journal.weighed,
                self.journal.refused,
                self.origins,
            ),
            tuning=self.tuning,
            verification=self.verification,
            kept=self._kept,
            machine=str(self.machine),
            state=self._state,
            converting=self._converting,
            tvm_failures=tuple(f"{name}: {reason}" for name, reason in self.journal.failures.items()),
        )

    @property
    def programs(self) -> list[ir.Program]:
        """Those of all regions, planned to the end."""
        return [region.program for region in self._planned]

    def programs_of(self, library: str) -> list[ir.Program]:
        """Those of the regions of one library."""
        return [region.program for region in self._planned if region.library == library]

    def before_dispatch(self, preference: Preference) -> tvm.transform.Pass:
        def note(mod: tvm.IRModule) -> None:
            self.preference = preference
            self.origins = origin_table(mod)
            self._multiply_adds = sum(multiply_adds.of_function(f) for f in _plain_functions(mod))

        return _observer("RecordModel", note)

    def stored_state(self) -> tvm.transform.Pass:
        """Notes how state is stored, as long as all regions stand that it is stored for."""

        def note(mod: tvm.IRModule) -> None:
            self._state = tuple(stored_state(mod))

        return _observer("RecordState", note)

    def left_to_tvm(self, why: str = NO_PATTERN) -> tvm.transform.Pass:
        """Notes the operators that stand outside of regions; ``why``, where nobody gave a reason."""

        def note(mod: tvm.IRModule) -> None:
            self._converting = tuple(_texts(mod, CONVERTING))
            threads = self._threads
            if threads is None:
                threads = max(engine.threads() for engine in registry.engines())
            calls = kept_calls(mod, threads, self.machine)
            counts = Counter(f"relax.{call.kind}" for call in calls)
            refused = self.journal.refused
            kernels = {kind: [call for call in calls if f"relax.{call.kind}" == kind] for kind in counts}
            self._fallbacks = tuple(
                Fallback(kind, count, refused.get(kind) or _kernels(kernels[kind]) or why)
                for kind, count in sorted(counts.items())
            )
            self._kept = tuple(
                KeptOperator(
                    call.operator,
                    f"relax.{call.kind}",
                    self._reason(call, why),
                    self.origins.get(call.operator, ()),
                    call.us,
                )
                for call in calls
            )

        return _observer("RecordFallbacks", note)

    def _reason(self, call: KeptCall, why: str) -> str:
        """Returns the reason why no library runs an operator: what was said of it, or else of its kind.

        Of what libraries said it is the last one's that has the operator at all: those before it take less.
        """
        decision = self.journal.dispatched.get(call.operator)
        said = {one.backend: one.out for one in decision.candidates} if decision else {}
        out = [said[one.name] for one in reversed(self.preference.libraries) if said.get(one.name)]
        telling = [reason for reason in out if reason != NO_PATTERN]
        refused = self.journal.refused
        of_kind = refused.get(f"relax.{call.kind}")
        known = [refused.get(call.operator), _kernels([call]), *telling, *out, of_kind, why]
        return next(reason for reason in known if reason)

    def planned(self, backend: Backend) -> tvm.transform.Pass:
        def note(mod: tvm.IRModule) -> None:
            calls = _calls(mod)
            for gvar, function in regions(mod, backend.name):
                constants = constants_of(function)
                self.constants[str(function.attrs["global_symbol"])] = constants
                nbytes = sum(_nbytes(tensor) for tensor in constants)
                program = program_of(function)
                self._planned.append(PlannedRegion(backend.library, program, fused_of(function)))
                decision = self.journal.layouts.get(program.name)
                region = region_report(program, backend, self.machine, nbytes, decision)
                precision = self.journal.precisions.get(program.name)
                self._regions.append(replace(region, calls=calls[gvar.name_hint], precision=precision))
                memory = memory_report(program, self.journal.plans.get(program.name))
                if memory is not None:
                    self._memory.append(memory)

        return _observer("RecordRegions", note)

    def stored(self, function: str, planned: StoragePlan) -> None:
        """Notes the arena of a function, and which regions keep their values in it."""
        memory = function_report(function, planned)
        if memory is None:
            return
        calls = (*planned.problem.opened, *planned.problem.closed)
        held = {name_of(call.step.call) for call in calls}
        for at, region in enumerate(self._memory):
            if region.region in held:
                self._memory[at] = replace(region, stands_in=function)
        self._memory.append(memory)


def _texts(mod: tvm.IRModule, attribute: str) -> Iterator[str]:
    """Texts in a list that is an attribute of functions."""
    for function in mod.functions.values():
        attrs = getattr(function, "attrs", None)
        if attrs and attribute in attrs:
            yield from map(str, attrs[attribute])


def _kernels(calls: Sequence[KeptCall]) -> str:
    """Returns the reason why calls of kernels are left to TVM; empty for operators."""
    named = sorted({call.kernel for call in calls if call.kernel})
    more = f" and {len(named) - _MOST_KERNELS} more" if len(named) > _MOST_KERNELS else ""
    return f"written as a kernel: {', '.join(named[:_MOST_KERNELS])}{more}" if named else ""


_MOST_KERNELS = 5
"""Kernels that the reason of a kind names."""


def region_report(
    program: ir.Program,
    backend: Backend,
    machine: MachineRates,
    constant_bytes: int,
    decision: LayoutDecision | None = None,
) -> RegionReport:
    """Reports one region program."""
    steps = tuple(
        StepReport(
            step.name,
            step.kind,
            step.implementation,
            tuple(program.values[o.value].layout for o in step.operands if o.role in ("src", "dst")),
            tuple(_post_op(post_op) for post_op in step.post_ops),
            tuple(str(dim) for dim in program.values[step.dst].shape),
            backend.implementation(step.implementation).is_reference,
            _types(program, step),
        )
        for step in program.steps
    )
    work = step_multiply_adds.of_program(program)
    return RegionReport(
        program.name,
        backend.name,
        steps,
        program.arena_bytes,
        constant_bytes,
        work,
        _reorders(program, backend, machine),
        decision,
        _crossing(program),
        estimated_us=region_us(typical(program), backend, machine),
    )


def _types(program: ir.Program, step: ir.Step) -> tuple[str, ...]:
    """Precisions of the step's sources and its result; nothing where all are float32."""
    named = [program.values[o.value].dtype for o in step.operands if o.role in ("src", "dst")]
    types = tuple(SHORT_NAMES.get(dtype, dtype) for dtype in named)
    return () if set(types) == {"f32"} else types


def _crossing(program: ir.Program) -> tuple[str, ...]:
    """Inputs and outputs whose tensors have a physical shape."""
    ports = [program.values[value] for kind in ("input", "output") for value in program.of_kind(kind)]
    return tuple(
        f"{port.name} {port.layout}" for port in ports if port.layout != plain_layout(len(port.shape))
    )


def _reorders(program: ir.Program, backend: Backend, machine: MachineRates) -> tuple[ReorderReport, ...]:
    """Conversions of activations, each with the step before and the first step after it."""
    writers = {value: step.name for step in program.steps for value in step.results}
    found = []
    for at, step in enumerate(program.steps):
        if not isinstance(step.attrs, ir.Reorder):
            continue
        source, target = program.values[step.operand("src")], program.values[step.dst]
        root = program.root(step.dst)
        readers = [
            later.name
            for later in program.steps[at + 1 :]
            if any(program.root(value) == root for value in later.reads())
        ]
        static = is_static(source.shape)
        found.append(
            ReorderReport(
                writers.get(step.operand("src"), source.name),
                readers[0] if readers else program.values[root].name,
                _stored_as(source, target),
                _stored_as(target, source),
                source.nbytes + target.nbytes if static else -1,
                planned_step_us(program, step, backend, machine) if static else -1.0,
            )
        )
    return tuple(found)


def _stored_as(value: ir.Value, other: ir.Value) -> str:
    """The layout of a value, and its type where that of the other one differs."""
    if value.dtype == other.dtype:
        return value.layout
    return f"{value.layout} {SHORT_NAMES.get(value.dtype, value.dtype)}"


def _post_op(post_op: ir.PostOp) -> str:
    if isinstance(post_op, ir.EltwisePostOp):
        return post_op.algorithm
    if isinstance(post_op, ir.DepthwisePostOp):
        return f"depthwise {post_op.kernel}x{post_op.kernel}"
    return f"binary {post_op.algorithm}" if isinstance(post_op, ir.BinaryPostOp) else "sum"


def _plain_functions(mod: tvm.IRModule) -> list[relax.Function]:
    return [
        function
        for function in mod.functions.values()
        if isinstance(function, relax.Function) and not (function.attrs and function.attrs.get("Codegen"))
    ]


def _calls(mod: tvm.IRModule) -> Counter[str]:
    """Counts the calls of each function of the module, by name."""
    calls: Counter[str] = Counter()

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.GlobalVar):
            calls[expr.op.name_hint] += 1

    for function in _plain_functions(mod):
        relax.analysis.post_order_visit(function, visit)
    return calls


def _nbytes(tensor: tvm.runtime.Tensor) -> int:
    return dense_bytes([int(dim) for dim in tensor.shape], str(tensor.dtype))


def _observer(name: str, note: Callable[[tvm.IRModule], None]) -> tvm.transform.Pass:
    @tvm.transform.module_pass(opt_level=0, name=name)
    def observe(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        note(mod)
        return mod

    return observe
