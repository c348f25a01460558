"""Regions told of each other while their layouts are chosen: what each may assume is in ``border_hints``."""

from __future__ import annotations

import tvm
from tvm import relax

from tvm_mxplan.core.program import program as ir

from ..region.attached import program_of, regions
from .border_analysis import RegionCall, analyse
from .border_hints import Hints, assume
from .border_programs import borders_of


class Neighbours:
    """Knowledge that regions share while their layouts are chosen, one region after the other."""

    def __init__(self, mod: tvm.IRModule, backend: str) -> None:
        found = dict(regions(mod, backend))
        borders = {gvar: borders_of(program_of(region)) for gvar, region in found.items()}
        self._calls: dict[str, list[tuple[Hints, RegionCall, dict[int, str]]]] = {}
        for gvar, function in mod.functions.items():
            if isinstance(function, relax.Function) and gvar not in found:
                read = analyse(function, borders)
                hints, given = Hints(read.graph), dict[int, str]()
                for call in read.calls.values():
                    self._calls.setdefault(call.gvar.name_hint, []).append((hints, call, given))

    def seen_by(self, program: ir.Program) -> ir.Program:
        """``program`` with what it may assume of its borders; as it is if it is called more than once."""
        calls = self._calls.get(program.name, [])
        if len(calls) != 1:
            return program
        hints, call, given = calls[0]
        graph = hints.graph
        inputs = {}
        for number, take in enumerate(call.takes):
            layout = hints.layout_of(graph.takes[take].value, given)
            if layout is not None:
                inputs[number] = layout
        outputs = {number for number, give in enumerate(call.gives) if graph.gives[give].value in hints.free}
        return assume(program, inputs, frozenset(outputs))

    def chosen(self, program: ir.Program) -> None:
        """Note the layouts in which a region has its results."""
        for hints, call, given in self._calls.get(program.name, []):
            for give, layout in zip(call.gives, borders_of(program).gives, strict=True):
                given[hints.graph.gives[give].value] = layout
