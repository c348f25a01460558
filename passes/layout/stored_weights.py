"""Options of weights that a function changes: any form that their steps want, shared with the gradient.

    convolution            wants  w as ABcd16b16a
    data gradient          wants  w as BAcd16a16b     by a conversion, once in a call
    weight gradient        gives  g as ABcd16b16a
    update of w            wants  g, gives w, both as ABcd16b16a

``StoreState`` stores them so after layouts are chosen; here the choice reckons with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tvm_mxplan.core.assignment import Option
from tvm_mxplan.core.layout.layout import plain_layout, same_bytes
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.graph import Graph
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.step_facts import Layouts, reorder_facts

from ..borders.state_programs import SeenValue, views_of, wanted_form
from ..costs.source import CostSource
from .queries import StepQueries


@dataclass
class StoredWeights:
    """Forms of weights and their gradients in one program.

    Attributes
    ----------
    gradients : of each weight, an input, the output that its gradient is.
    """

    program: ir.Program
    queries: StepQueries
    cost: CostSource
    gradients: Mapping[int, int]
    _forms: dict[int, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = Graph(self.program)
        self._seen: dict[int, tuple[int, SeenValue]] = {}
        for weight, gradient in self.gradients.items():
            for port in (weight, gradient):
                self._forms[port] = [plain_layout(len(self.program.values[port].shape))]
                for value, seen in views_of(graph, port).items():
                    assert seen is not None
                    self._seen[value] = port, seen

    def holds(self, value: int) -> bool:
        """Whether a value is such a weight or gradient, or a view of one."""
        return value in self._seen

    def form(self, step: ir.Step, layouts: Layouts, at: int) -> tuple[int, str]:
        """The form in which a step in these layouts wants, or gives, its operand of that number."""
        value = operands_of(step)[at][1]
        port, seen = self._seen[value]
        shape = self.program.values[port].shape
        found = wanted_form(self.program, step, layouts, value, seen, self.queries)
        layout = found.layout if found is not None and found.shape == shape else self._forms[port][0]
        for known in self._forms[port]:
            if same_bytes(known, layout, shape):
                return port, known
        self._forms[port].append(layout)
        return port, layout

    def updates(self) -> list[tuple[Option, ...]]:
        """For each weight the options of its update: the forms that its steps were found to want."""
        found = []
        for weight, gradient in self.gradients.items():
            forms = dict.fromkeys([*self._forms[weight], *self._forms[gradient]])
            options = (Option(0.0, ((gradient, form),), ((weight, form),)) for form in forms)
            found.append(tuple(options))
        return found

    def conversion(self, port: int, source: str, layout: str) -> float:
        """Microseconds of a conversion, by the implementation that the library has for it."""
        value = self.program.values[port]
        facts = self.queries.converting(reorder_facts(value.shape, value.dtype, source, layout))  # type: ignore[arg-type]
        return self.cost(facts.program, facts.step, facts.layouts, facts.info)
