"""What a region may assume of its borders before its layouts are chosen, on plain data.

    region A  v: read by region B and by s = sin(v), which only B reads       free: any layout will do
    region B  takes s: comes in the layout that A chose for v

Without it a region would pay for the way from and to plain at every border, also where nobody needs that,
and its first elementwise steps would stand in plain.  An assumption that turns out wrong costs a reorder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tvm_mxplan.core import program as ir

from .border_choice import BorderGraph
from .elementwise import is_clean


def free_tensors(graph: BorderGraph) -> frozenset[int]:
    """Tensors that nothing needs plain, and that some region reads, if behind operators only."""
    physical = _physical(graph)
    taken = {take.value for take in graph.takes}
    readers: dict[int, list[int]] = {}
    for operator in graph.operators:
        for value in operator.operands:
            readers.setdefault(value, []).append(operator.result)
    free: set[int] = set()
    # Operators come after what they read, so results are decided before operands.
    order = [operator.result for operator in reversed(graph.operators)] + [give.value for give in graph.gives]
    for value in order:
        results = readers.get(value, [])
        wanted = value in taken or bool(results)
        if value in physical and value not in graph.pinned and wanted and free.issuperset(results):
            free.add(value)
    return frozenset(free)


def layout_of(graph: BorderGraph, value: int, given: Mapping[int, str]) -> str | None:
    """The layout in which a region will find ``value``, if regions give tensors as in ``given``.

    None where it will be plain, or where that is not known yet.
    """
    if value not in _physical(graph):
        return None
    made_of = {operator.result: operator.operands[0] for operator in graph.operators}
    source = value
    while source in made_of:
        source = made_of[source]
    layout = given.get(source)
    tensor = graph.tensors[value]
    if layout in (None, tensor.plain) or (tensor.pads(layout) and not is_clean(tensor.tail)):
        return None
    return layout


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
            values[value] = replace(values[value], kind="local", index=-1)
    return replace(program, values=tuple(values))


def _physical(graph: BorderGraph) -> set[int]:
    """What regions give, and what operators make of nothing else and nobody needs plain."""
    physical = {give.value for give in graph.gives}
    for operator in graph.operators:
        if operator.result not in graph.pinned and physical.issuperset(operator.operands):
            physical.add(operator.result)
    return physical
