"""Derives the layouts that a region may assume at its borders before its own are chosen, on plain data.

    region A  v: read by region B and by s = sin(v), which only B reads       free: any layout will do
    region B  takes s: comes in the layout that A chose for v

Without it a region would pay for the way from and to plain at every border, also where nobody needs that,
and its first elementwise steps would stand in plain.  An assumption that turns out wrong costs a reorder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from tvm_mxplan.core.program import program as ir

from .border_choice import BorderGraph
from .elementwise import is_clean


class Hints:
    """Properties of one function's tensors; each is found once, however many regions ask."""

    def __init__(self, graph: BorderGraph) -> None:
        self.graph = graph

    @cached_property
    def free(self) -> frozenset[int]:
        """Tensors that nothing needs plain, and that some region reads, if behind operators only."""
        graph = self.graph
        taken = {take.value for take in graph.takes}
        readers: dict[int, list[int]] = {}
        for operator in graph.operators:
            for value in operator.operands:
                readers.setdefault(value, []).append(operator.result)
        free: set[int] = set()
        # Operators come after what they read, so results are decided before operands.
        order = [operator.result for operator in reversed(graph.operators)]
        for value in [*order, *(give.value for give in graph.gives)]:
            results = readers.get(value, [])
            wanted = value in taken or bool(results)
            if value in self._physical and value not in graph.pinned and wanted and free.issuperset(results):
                free.add(value)
        return frozenset(free)

    def layout_of(self, value: int, given: Mapping[int, str]) -> str | None:
        """The layout in which a region will find ``value``, if regions give tensors as in ``given``.

        None where it will be plain, or where that is not known yet.
        """
        if value not in self._physical:
            return None
        layout = given.get(self._sources.get(value, value))
        tensor = self.graph.tensors[value]
        if layout in (None, tensor.plain) or (tensor.pads(layout) and not is_clean(tensor.tail)):
            return None
        return layout

    @cached_property
    def _physical(self) -> frozenset[int]:
        """Values that regions give, and what operators make of only those and nobody needs plain."""
        physical = {give.value for give in self.graph.gives}
        for operator in self.graph.operators:
            if operator.result not in self.graph.pinned and physical.issuperset(operator.operands):
                physical.add(operator.result)
        return frozenset(physical)

    @cached_property
    def _sources(self) -> dict[int, int]:
        """For each result of an operator the tensor that its first operands go back to."""
        sources: dict[int, int] = {}
        for operator in self.graph.operators:
            first = operator.operands[0]
            sources[operator.result] = sources.get(first, first)
        return sources


def assume(program: ir.Program, inputs: Mapping[int, str], free: frozenset[int]) -> ir.Program:
    """``program`` with inputs in the layouts in which they will come and free outputs that are no borders.

    For choosing only: inputs and outputs go by their number.
    """
    viewed = {value.alias_of for value in program.values}
    values = list(program.values)
    for number, value in enumerate(program.of_kind("input")):
        if number in inputs and value not in viewed:
            values[value] = replace(values[value], layout=inputs[number])
    for number, value in enumerate(program.of_kind("output")):
        if number in free:
            values[value] = values[value].inside()
    return replace(program, values=tuple(values))
