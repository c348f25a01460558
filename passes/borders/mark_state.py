"""``MarkState``: values of region programs that outlive a call say so, by the number of their state.

Before   g = mxplan_onednn_0(x, w);  w1 = mxplan.update(w, g, rate)  v1 input w,          v4 output g
After    the same                                                    v1 input w, state 0, v4 output g, state 0

A step of training keeps its weights from call to call; a region that takes a weight reads the state, and one
that gives its gradient changes the state.  A region that is called several times has state only where every
call agrees on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import tvm
from tvm import relax

from tvm_mxplan.core.decisions.stored_state import StoredState
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.program import program as ir

from ..region.attached import attach, carries_program, program_of
from .propagate_layouts import calls_of_functions
from .state_weights import Weight, storable_weights, weights_of


@tvm.transform.module_pass(opt_level=0, name="MarkState")
class MarkState:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        found = _regions(mod)
        marks: dict[tvm.ir.GlobalVar, list[dict[int, int]]] = defaultdict(list)
        for function in _callers(mod).values():
            for region, states in _states(weights_of(function, found)):
                marks[region].append(_marks(program_of(found[region]), states))
        if not marks:
            return mod
        mod, calls = mod.clone(), calls_of_functions(mod)
        for region, every in marks.items():
            if len(every) == calls[region] and all(one == every[0] for one in every):
                program = program_of(found[region])
                for value, state in every[0].items():
                    program = program.with_value(value, state=state)
                mod.update_func(region, attach(found[region], program))
        return mod


def functions_with_state(
    mod: tvm.IRModule, found: dict[tvm.ir.GlobalVar, relax.Function]
) -> list[tvm.ir.GlobalVar]:
    """The functions that call regions with state, of those found."""
    marked = {region for region, function in found.items() if program_of(function).states()}
    functions = []
    for gvar, function in _callers(mod).items() if marked else ():
        bindings = [binding for block in function.body.blocks for binding in block.bindings]
        values = [binding.value for binding in bindings if isinstance(binding, relax.VarBinding)]
        if any(isinstance(value, relax.Call) and value.op in marked for value in values):
            functions.append(gvar)
    return functions


def stored_state(mod: tvm.IRModule) -> list[StoredState]:
    """The parameters whose state, as the programs of regions say, stands in a layout of its own."""
    found, stored = _regions(mod), []
    for function in _callers(mod).values():
        for weight in storable_weights(function, found):
            port = weight.ports[-1]
            program = program_of(found[port.region])
            value = program.values[port.value(program)]
            if value.state >= 0 and value.layout != plain_layout(len(value.shape)):
                shape = tuple(int(extent) for extent in value.shape)  # type: ignore[arg-type]
                at = [number for number, param in enumerate(function.params) if param in weight.params]
                stored += [StoredState(number, shape, value.layout) for number in at]
    return sorted(stored, key=lambda one: one.parameter)


def _regions(mod: tvm.IRModule) -> dict[tvm.ir.GlobalVar, relax.Function]:
    return {gvar: function for gvar, function in mod.functions.items() if carries_program(function)}


def _callers(mod: tvm.IRModule) -> dict[tvm.ir.GlobalVar, relax.Function]:
    every = mod.functions.items()
    return {gvar: one for gvar, one in every if isinstance(one, relax.Function) and not carries_program(one)}


def _states(
    weights: Iterable[Weight],
) -> Iterable[tuple[tvm.ir.GlobalVar, list[tuple[ir.ValueKind, int, int]]]]:
    """For each call the region, and of its inputs and outputs those with state: kind, number, which state."""
    calls: dict[tvm.ir.Var, list[tuple[ir.ValueKind, int, int]]] = defaultdict(list)
    called: dict[tvm.ir.Var, tvm.ir.GlobalVar] = {}
    for number, weight in enumerate(weights):
        for port in weight.ports:
            calls[port.call].append((port.kind, port.number, number))
            called[port.call] = port.region
    return [(called[call], states) for call, states in calls.items()]


def _marks(program: ir.Program, states: Iterable[tuple[ir.ValueKind, int, int]]) -> dict[int, int]:
    """The states of values, numbered from 0 in the region.

    A gradient in another type than its weight's is cast before it counts, so the region's output is no state.
    """
    marks: dict[int, int] = {}
    numbers: dict[int, int] = {}
    first: dict[int, ir.Value] = {}
    for kind, number, state in states:
        value = program.of_kind(kind)[number]
        stands = program.values[value]
        like = first.setdefault(state, stands)
        if (stands.shape, stands.dtype, stands.layout) == (like.shape, like.dtype, like.layout):
            marks[value] = numbers.setdefault(state, len(numbers))
    return marks
