"""The protocols that choices ask what steps, reorders and copies cost; who answers them is elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import Layouts

Reader: TypeAlias = tuple[ir.Step, Layouts]
"""A step with the layouts of its operands."""


class StepCost(Protocol):
    """Microseconds of a step in given layouts, ``measured`` as far as can be, or by a model."""

    @property
    def measured(self) -> bool: ...

    @property
    def machine(self) -> MachineRates:
        """The rates of the machine that costs are for."""
        ...

    def __call__(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo, /) -> float: ...

    def modelled(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo, /) -> float:
        """The same by the model alone, whatever is measured."""
        ...

    def knows(self, program: ir.Program, step: ir.Step, layouts: Layouts, /) -> bool:
        """Whether what it said of this step was measured, and no estimate."""
        ...


class CostSource(StepCost, Protocol):
    """The costs of everything that a plan is made of: steps, reorders, copies."""

    def reorder(
        self, program: ir.Program, value: int, layout: str, sources: Sequence[str], reader: Reader | None, /
    ) -> float:
        """Microseconds to have ``value`` in ``layout`` too.

        Parameters
        ----------
        sources : the layouts in which it may be given, the likeliest first.
        reader : a step that would read the result.
        """
        ...

    def copies(self, program: ir.Program, step: ir.Step, layouts: Layouts, /) -> float:
        """Microseconds of a concatenation or slice that copies all its pieces."""
        ...
