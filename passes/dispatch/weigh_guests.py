"""Finds operators that a guest had better leave to TVM, by what they cost there and here.

Before   gv = fused_relax_take(x, i)      a composite of a library whose steps stand in regions of another
After    {"take_0": "TVM's kernel is estimated at 1.2 us, the library's at 2.6 us"}

Operators of the guest that hand tensors to each other are weighed together.  A kernel of TVM's between two
operators of the leader would cut its region in two; one of the guest's that touches nothing of the leader
is a region of its own.  Both count as much as calling a region takes on the machine, the first also the
conversions of images between their layouts and plain ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import Backend, Sharing
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.program.specialize import typical
from tvm_mxplan.core.step_facts import StepFacts
from tvm_mxplan.errors import MxplanError

from ..costs.kept_times import SURE, kept_calls
from ..relax_types import OPERATOR, RESHAPES

_VIEWS = {f"relax.{name}" for name in (*RESHAPES, "permute_dims")}
"""Operators that a library takes for what stands before or behind them."""


@dataclass(frozen=True)
class Worth:
    """The question whether operators pay in a guest.

    Attributes
    ----------
    machine : what the machine that is compiled for can do.
    leaders : code generators of guests with those that lead regions of both.
    """

    machine: MachineRates
    leaders: Mapping[str, str]

    def unpaid(
        self, before: tvm.IRModule, after: tvm.IRModule, guest: Backend, wanted: AbstractSet[str]
    ) -> dict[str, str]:
        """Names of operators that TVM had better keep, and why.

        Parameters
        ----------
        before : without the guest's composites.
        after : with them.
        wanted : names of operators that the guest is to have whatever they cost.
        """
        taken = any(_owned(function, guest.name) for function in after.functions.values())
        if guest.name not in self.leaders or not taken:
            return {}
        times = {call.operator: call.us for call in kept_calls(before, self.machine.threads, self.machine)}
        costs = _Costs(after, guest, self.machine)
        found: dict[str, str] = {}
        for function in after.functions.values():
            if isinstance(function, relax.Function) and not _composite(function):
                for part in _parts(after, function, guest.name, self.leaders[guest.name]):
                    if not wanted.isdisjoint(part.operators):
                        continue
                    reason = _reason(part, costs, times, self.machine.region_us, costs.turning_us(part))
                    if reason:
                        found |= dict.fromkeys(part.operators, reason)
        return found


@dataclass
class _Part:
    """Operators of a guest that hand tensors to each other.

    Attributes
    ----------
    composites : those that compute something, by name.
    operators : names of all.
    behind, before : whether operators of the leader write what these read, and read what these write.
    """

    composites: list[tvm.ir.GlobalVar] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    behind: bool = False
    before: bool = False


def _reason(
    part: _Part,
    costs: _Costs,
    times: Mapping[str, float | None],
    region_us: float,
    turning_us: float = 0.0,
) -> str:
    """The reason for leaving a part to TVM; '' for one that pays, or that nothing is known of.

    Parameters
    ----------
    region_us, turning_us : microseconds of calling a region once more, and of the conversions at its ends.
    """
    known = [times.get(name) for name in part.operators]
    ours = math.fsum(costs[composite] for composite in part.composites)
    if None in known or math.isinf(ours):
        return ""
    theirs = math.fsum(us for us in known if us is not None)
    saved = part.behind and part.before
    if saved:
        theirs += region_us + turning_us
    elif not (part.behind or part.before):
        ours += region_us
    if (1.0 if saved else SURE) * ours <= theirs and (part.composites or saved):
        return ""
    kernels = "kernel is" if len(part.operators) == 1 else f"kernels for {', '.join(part.operators)} are"
    return f"TVM's {kernels} estimated at {theirs:.1f} us, the library's at {ours:.1f} us"


class _Costs(dict[tvm.ir.GlobalVar, float]):
    """Microseconds of composites, infinite where the library turns out not to take one."""

    def __init__(self, mod: tvm.IRModule, guest: Backend, machine: MachineRates) -> None:
        super().__init__()
        self._mod, self._guest, self._machine = mod, guest, machine
        assert guest.shares is not None
        self._sharing: Sharing = guest.shares

    def __missing__(self, composite: tvm.ir.GlobalVar) -> float:
        try:
            program = typical(self._sharing.program_of(self._mod[composite]))
        except MxplanError:
            self[composite] = math.inf
        else:
            self[composite] = math.fsum(self._step_us(program, step) for step in program.steps)
        return float(self[composite])

    def turning_us(self, part: _Part) -> float:
        """Microseconds of making images plain for TVM's kernels and back; the guest takes them as they are.

        Of two such conversions one is counted: who stands there may work on plain images as well.
        """
        nbytes = 0
        for composite in part.composites:
            if not math.isinf(self[composite]):
                program = typical(self._sharing.program_of(self._mod[composite]))
                for step in program.steps:
                    if isinstance(step.attrs, self._guest.layout_rules(step).images):
                        nbytes += self._facts(program, step).image_bytes
        return self._machine.copying_us(nbytes)

    def _step_us(self, program: ir.Program, step: ir.Step) -> float:
        return self._guest.cost(self._facts(program, step), self._machine)

    def _facts(self, program: ir.Program, step: ir.Step) -> StepFacts:
        shapes = (program.values[value].shape for _, value in operands_of(step))
        layouts = tuple(plain_layout(len(shape)) for shape in shapes)
        return StepFacts(program, step, layouts)


def _parts(mod: tvm.IRModule, function: relax.Function, guest: str, leader: str) -> Iterator[_Part]:
    """The parts of a function, in the order of their first operators."""
    values = dict(relax.analysis.get_var2val(function).items())
    owners = {variable: _owner(mod, value) for variable, value in values.items()}
    parts: dict[tvm.ir.Var, _Part] = {}
    read_by_leader: list[tvm.ir.Var] = []
    for variable, value in values.items():
        sources = [
            source
            for one in _read(value)
            for source in _behind_views(mod, values, one)
            if owners.get(source) == guest or not _is_view(mod, values.get(source))
        ]
        if owners[variable] == leader and not _is_view(mod, value):
            read_by_leader += sources
        if owners[variable] != guest:
            continue
        part = _Part()
        for source in sources:
            if source in parts and parts[source] is not part:
                part = _merged(parts, parts[source], part)
            part.behind |= owners.get(source) == leader
        if not _is_view(mod, value):
            part.composites.append(value.op)
        part.operators.append(str(mod[value.op].attrs.get(OPERATOR, "")))
        parts[variable] = part
    for variable in read_by_leader:
        if variable in parts:
            parts[variable].before = True
    yield from {id(part): part for part in parts.values()}.values()


def _merged(parts: dict[tvm.ir.Var, _Part], kept: _Part, other: _Part) -> _Part:
    """One part of two."""
    kept.composites += other.composites
    kept.operators += other.operators
    kept.behind |= other.behind
    for variable, part in parts.items():
        if part is other:
            parts[variable] = kept
    return kept


def _behind_views(
    mod: tvm.IRModule, values: Mapping[tvm.ir.Var, relax.Expr], variable: tvm.ir.Var
) -> Iterator[tvm.ir.Var]:
    """The variable itself, and behind views and fields of tuples what these are of."""
    seen: set[tvm.ir.Var] = set()
    waiting = [variable]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        value = values.get(one)
        if isinstance(value, relax.TupleGetItem | relax.Tuple | tvm.ir.Var) or _is_view(mod, value):
            waiting += _read(value)
        yield one


def _is_view(mod: tvm.IRModule, value: relax.Expr | None) -> bool:
    """True for a composite that is nothing but a view."""
    if not isinstance(value, relax.Call) or not isinstance(value.op, tvm.ir.GlobalVar):
        return False
    callee = mod[value.op]
    return bool(_composite(callee)) and {str(op.name) for op in _called(callee)} <= _VIEWS


def _called(function: relax.Function) -> list[tvm.ir.Op]:
    found: list[tvm.ir.Op] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op):
            found.append(expr.op)

    relax.analysis.post_order_visit(function, visit)
    return found


def _owner(mod: tvm.IRModule, value: relax.Expr) -> str:
    """The code generator of a composite that is called, '' of anything else."""
    called = isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.GlobalVar)
    return _composite(mod[value.op]).partition(".")[0] if called else ""


def _owned(function: tvm.ir.BaseFunc, library: str) -> bool:
    """Whether a function is a composite of the library with this code generator."""
    return _composite(function).partition(".")[0] == library


def _composite(function: tvm.ir.BaseFunc) -> str:
    return str(function.attrs.get("Composite") or "") if function.attrs else ""


def _read(value: relax.Expr) -> list[tvm.ir.Var]:
    """Variables that an expression reads."""
    found: list[tvm.ir.Var] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.Var) and not isinstance(expr, tvm.ir.GlobalVar):
            found.append(expr)

    if not isinstance(value, relax.Function | relax.If):
        relax.analysis.post_order_visit(value, visit)
    return found
