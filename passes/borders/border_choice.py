"""Chooses the tensors that cross the borders of regions in a physical layout, on plain data.

    region A  gives v in acdb;  plain costs a reorder          (the same for every other layout)
    operator  s = sin(v)        all in one layout, whichever
    region B  takes s in acdb;  plain costs a reorder

All in acdb: no reorder.  It is the assignment problem of ``core/assignment.py``, so exact: the reorders that
are left cost the least that is possible over the whole function.  Only a region converts what it gives.
Plain is taken where nothing is gained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tvm_mxplan.core.assignment import AssignmentProblem, Form, Option, solve_assignment
from tvm_mxplan.core.element_types import stored_bytes
from tvm_mxplan.core.layout.layout import parse_layout, plain_layout
from tvm_mxplan.core.machine import MachineRates

from .elementwise import Number, is_clean

ReorderCost: TypeAlias = Callable[[tuple[int, ...], str, str, str], float]
"""Microseconds of a conversion: shape, element type, layout before and after."""

_TIE_US = 1e-3
"""The least gain, in microseconds, that a physical layout must bring."""


@dataclass(frozen=True)
class BorderTensor:
    """A tensor between regions.

    Attributes
    ----------
    shape : logical shape, at typical numbers where it is symbolic.
    tail : what stands in the tail of its channels where it is stored padded; None if that is unknown.
    """

    shape: tuple[int, ...]
    dtype: str
    tail: Number | None

    @property
    def plain(self) -> str:
        return plain_layout(len(self.shape))

    def nbytes(self, layout: str) -> int:
        """Bytes of the tensor in ``layout``, padding included."""
        return stored_bytes(self.shape, layout, self.dtype)

    def pads(self, layout: str) -> bool:
        return parse_layout(layout).pads(self.shape)


@dataclass(frozen=True)
class BorderOperator:
    """An elementwise operator of TVM: ``operands`` have the shape of ``result``."""

    operands: tuple[int, ...]
    result: int


@dataclass(frozen=True)
class Take:
    """An input of a region, and every layout in which the region reads it."""

    value: int
    layouts: tuple[str, ...]


@dataclass(frozen=True)
class Give:
    """A result of a region, and the layout in which the region has it before any reorder."""

    value: int
    layout: str


@dataclass(frozen=True)
class BorderGraph:
    """Tensors of one function by number, and all that reads or writes them.

    Attributes
    ----------
    pinned : tensors that something else reads, which has to find them plain.
    """

    tensors: tuple[BorderTensor, ...]
    operators: tuple[BorderOperator, ...]
    takes: tuple[Take, ...]
    gives: tuple[Give, ...]
    pinned: frozenset[int]


@dataclass(frozen=True)
class BorderChoice:
    """The layout of every operator, and layouts of every input and result of a region: often only one."""

    operators: tuple[str, ...]
    takes: tuple[tuple[str, ...], ...]
    gives: tuple[tuple[str, ...], ...]


def choose_layouts(graph: BorderGraph, reorder_us: ReorderCost, machine: MachineRates) -> BorderChoice:
    """The layouts with the least cost of reorders.

    Parameters
    ----------
    reorder_us : microseconds to convert a tensor: its shape, element type, and both layouts.
    """
    return _Chooser(graph, reorder_us, machine).choose()


class _Chooser:
    def __init__(self, graph: BorderGraph, reorder_us: ReorderCost, machine: MachineRates) -> None:
        self.graph = graph
        self.reorder_us = reorder_us
        self.machine = machine
        self.layouts = _reachable(graph)

    def choose(self) -> BorderChoice:
        graph = self.graph
        operators = [self._operator(operator) for operator in graph.operators]
        numbers = [number for number, take in enumerate(graph.takes) for _ in take.layouts]
        readers = [self._take(take.value, layout) for take in graph.takes for layout in take.layouts]
        pinned = [(Option(0.0, ((value, self._plain(value)),), ()),) for value in sorted(graph.pinned)]
        given = {operator.result for operator in graph.operators} | {give.value for give in graph.gives}
        sources = [
            (Option(0.0, (), ((value, self._plain(value)),)),)
            for value in range(len(graph.tensors))
            if value not in given
        ]
        sources += [(Option(0.0, (), ((give.value, give.layout),)),) for give in graph.gives]
        steps = (*operators, *readers, *pinned, *sources)
        problem = AssignmentProblem(steps, self._conversions())
        chosen = [options[at] for options, at in zip(steps, solve_assignment(problem).choices, strict=True)]
        wanted: dict[int, dict[Form, None]] = {}
        for option in chosen:
            for form in option.wants:
                wanted.setdefault(form[0], {}).setdefault(form)
        taken: list[list[Form]] = [[] for _ in graph.takes]
        for number, option in zip(numbers, chosen[len(operators) :], strict=False):
            taken[number] += option.wants
        return BorderChoice(
            tuple(option.gives[0][1] for option in chosen[: len(operators)]),
            tuple(
                _distinct(self._plain(take.value), forms)
                for take, forms in zip(graph.takes, taken, strict=True)
            ),
            tuple(self._given(give, list(wanted.get(give.value, ()))) for give in graph.gives),
        )

    def _plain(self, value: int) -> str:
        return self.graph.tensors[value].plain

    def _given(self, give: Give, wanted: list[Form]) -> tuple[str, ...]:
        """Layouts of a result of which somebody wants the forms ``wanted``."""
        plain = self._plain(give.value)
        own = [(give.value, plain)] if give.layout == plain or not wanted else []
        return _distinct(plain, [*wanted, *own])

    def _operator(self, operator: BorderOperator) -> tuple[Option, ...]:
        result = self.graph.tensors[operator.result]
        return tuple(
            Option(
                self._extra(operator, layout),
                tuple(dict.fromkeys((value, layout) for value in operator.operands)),
                ((operator.result, layout),),
            )
            for layout in (result.plain, *self.layouts[operator.result])
            if not result.pads(layout) or result.tail is not None
        )

    def _extra(self, operator: BorderOperator, layout: str) -> float:
        """Microseconds that an operator takes longer on a physical buffer: its padding."""
        touched = [self.graph.tensors[value] for value in (*operator.operands, operator.result)]
        padding = sum(tensor.nbytes(layout) - tensor.nbytes(tensor.plain) for tensor in touched)
        tie = 0.0 if layout == touched[-1].plain else _TIE_US
        return padding / self.machine.memory.copied / 1e3 + tie

    def _take(self, value: int, layout: str) -> tuple[Option, ...]:
        tensor = self.graph.tensors[value]
        as_it_is = Option(self._reorder(value, layout), ((value, tensor.plain),), ())
        if layout == tensor.plain or (tensor.pads(layout) and not is_clean(tensor.tail)):
            return (as_it_is,)
        return (as_it_is, Option(0.0, ((value, layout),), ()))

    def _conversions(self) -> dict[Form, float]:
        """Returns the forms that regions can make of the tensors they give, each with its cost."""
        forms = {}
        for give in self.graph.gives:
            plain = self._plain(give.value)
            forms[give.value, plain] = self._reorder(give.value, give.layout)
            for layout in self.layouts[give.value]:
                forms[give.value, layout] = self._reorder(give.value, layout) + _TIE_US
        return forms

    def _reorder(self, value: int, layout: str) -> float:
        tensor = self.graph.tensors[value]
        if layout == tensor.plain:
            return 0.0
        return self.reorder_us(tensor.shape, tensor.dtype, tensor.plain, layout)


def _distinct(plain: str, forms: list[Form]) -> tuple[str, ...]:
    """Layouts of forms, the plain one first."""
    return tuple(sorted({layout for _, layout in forms}, key=lambda layout: (layout != plain, layout)))


def _reachable(graph: BorderGraph) -> list[tuple[str, ...]]:
    """For each tensor the physical layouts in which some region has or reads it, or what is made of it."""
    group = list(range(len(graph.tensors)))

    def find(value: int) -> int:
        while group[value] != value:
            group[value] = group[group[value]]  # halves the way for the next one
            value = group[value]
        return value

    for operator in graph.operators:
        for value in operator.operands:
            group[find(value)] = find(operator.result)
    found: dict[int, set[str]] = {}
    for give in graph.gives:
        found.setdefault(find(give.value), set()).add(give.layout)
    for take in graph.takes:
        found.setdefault(find(take.value), set()).update(take.layouts)
    return [
        tuple(sorted(found.get(find(value), set()) - {tensor.plain}))
        for value, tensor in enumerate(graph.tensors)
    ]
