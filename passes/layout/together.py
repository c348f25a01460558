"""``Together``: one choice of layouts for all regions of a function whose state changes.

Forward and backward are regions of their own, and backward reads what forward left: the layouts that are
best for forward alone may cost more behind it than they gain.  Such regions become one program
(``borders.whole_program``), with the weights that the function updates in forms of their own
(``stored_weights``); each region then gets its part of the choice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import tvm

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import is_static
from tvm_mxplan.errors import UnsupportedError

from ..borders.border_analysis import FunctionBorders, RegionCall, analyse
from ..borders.border_hints import Hints
from ..borders.border_programs import borders_of
from ..borders.mark_state import functions_with_state
from ..borders.state_programs import wishes_of
from ..borders.state_weights import Weight, storable_weights
from ..borders.whole_program import Part, RegionUse, joined
from ..costs.source import CostSource
from ..region.attached import program_of, regions
from .choose import LayoutChoice, LayoutChooser
from .overrides import forced_layouts
from .queries import StepQueries


@dataclass(frozen=True)
class _Function:
    """A function with state, its regions that are called once, and what changes in it."""

    borders: FunctionBorders
    calls: tuple[RegionCall, ...]
    programs: Mapping[str, ir.Program]
    weights: tuple[Weight, ...]


class Together:
    """The choices for regions of functions whose state changes; see the module's text."""

    def __init__(
        self, mod: tvm.IRModule, backend: Backend, cost: CostSource, layers: Mapping[str, str]
    ) -> None:
        self._backend, self._cost, self._layers = backend, cost, layers
        self._functions = _functions_with_state(mod, backend.name)

    def given(self, program: ir.Program, alone: bytes) -> bytes:
        """All that the choice for a region depends on: what it does alone, or all regions beside it."""
        for function in self._functions:
            if program.name in function.programs:
                return b"".join(codec.encode(one) for one in function.programs.values())
        return alone

    def choice_of(self, program: ir.Program) -> LayoutChoice | None:
        """A region's part of a choice; None for a region that is chosen alone."""
        return self._choices.get(program.name)

    @cached_property
    def _choices(self) -> dict[str, LayoutChoice]:
        found: dict[str, LayoutChoice] = {}
        for function in self._functions:
            # A step that the library has no code for sends its region back alone.
            with contextlib.suppress(UnsupportedError):
                found |= self._chosen(function)
        return found

    def _chosen(self, function: _Function) -> dict[str, LayoutChoice]:
        queries = StepQueries(self._backend)
        graph = function.borders.graph
        free = Hints(graph).free
        names = [call.gvar.name_hint for call in function.calls]
        uses = [
            RegionUse(
                function.programs[name],
                tuple(graph.takes[take].value for take in call.takes),
                tuple(graph.gives[give].value for give in call.gives),
                free,
            )
            for name, call in zip(names, function.calls, strict=True)
        ]
        program, parts = joined(uses)
        rules = self._backend.layout_rules
        forced = forced_layouts(program, self._layers, queries, rules)
        gradients = self._gradients(function, dict(zip(names, parts, strict=True)), queries)
        whole = LayoutChooser(program, queries, self._cost, rules, forced, gradients).choose()
        if whole.assignment is None or not whole.assignment.is_bounded:
            return {}  # The solver found nothing in its time; in each region alone it does better.
        return {name: _part(whole, part) for name, part in zip(names, parts, strict=True)}

    def _gradients(
        self, function: _Function, parts: Mapping[str, Part], queries: StepQueries
    ) -> dict[int, int]:
        """Weights that steps alone read, in whatever form, and the values that are their gradients."""
        found: dict[int, int] = {}
        for weight in function.weights:
            here = [port for port in weight.ports if port.region.name_hint in parts]
            if len(here) != len(weight.ports):
                continue
            values = []
            for port in here:
                program = function.programs[port.region.name_hint]
                value = port.value(program)
                if wishes_of(program, value, queries) is None:
                    break
                values.append((port.kind, parts[port.region.name_hint].values[value]))
            inputs = {value for kind, value in values if kind == "input"}
            outputs = {value for kind, value in values if kind == "output"}
            if len(values) == len(here) and len(inputs) == len(outputs) == 1:
                found[inputs.pop()] = outputs.pop()
        return found


def _part(whole: LayoutChoice, part: Part) -> LayoutChoice:
    steps = whole.steps[part.steps]
    names = {step.name for step in steps}
    return LayoutChoice(
        steps,
        whole.layouts[part.steps],
        None,
        {name: weighed for name, weighed in whole.weighed.items() if name in names},
        {own: whole.views[value] for own, value in enumerate(part.values) if value in whole.views},
    )


def _functions_with_state(mod: tvm.IRModule, backend: str) -> list[_Function]:
    """Functions whose regions have state: those with several regions of static shapes, each called once."""
    found = dict(regions(mod, backend))
    programs = {gvar.name_hint: program_of(region) for gvar, region in found.items()}
    borders = {gvar: borders_of(programs[gvar.name_hint]) for gvar in found}
    functions = []
    for function in [mod[gvar] for gvar in functions_with_state(mod, found)]:
        read = analyse(function, borders)
        calls = tuple(read.calls.values())
        names = [call.gvar.name_hint for call in calls]
        own = {name: programs[name] for name in names}
        static = all(is_static(value.shape) for program in own.values() for value in program.values)
        if len(own) == len(names) > 0 and static:
            functions.append(_Function(read, calls, own, tuple(storable_weights(function, found))))
    return functions
