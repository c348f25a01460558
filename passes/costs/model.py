"""``ModelCost``: costs by a library's own model at a machine's rates, used where nothing was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.machine import MachineRates, default_rates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.step_facts import Layouts, StepFacts, reorder_facts

from .source import CostSource, Reader


@dataclass(frozen=True)
class ModelCost:
    """Costs by the model of ``backend`` on ``machine``."""

    backend: Backend
    machine: MachineRates = field(default_factory=default_rates)
    measured: bool = False

    def __call__(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
        return self.modelled(program, step, layouts, info)

    def modelled(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
        return self.backend.cost(StepFacts(program, step, layouts, info), self.machine)

    def knows(self, _program: ir.Program, _step: ir.Step, _layouts: Layouts) -> bool:
        return False

    def reorder(
        self, program: ir.Program, value: int, layout: str, sources: Sequence[str], _reader: Reader | None
    ) -> float:
        shape, dtype = program.values[value].shape, program.values[value].dtype
        source = sources[0] if sources else plain_layout(len(shape))
        facts = reorder_facts(shape, dtype, source, layout)  # type: ignore[arg-type]
        return self.backend.cost(facts, self.machine)

    def copies(self, program: ir.Program, step: ir.Step, layouts: Layouts) -> float:
        return self.backend.cost(StepFacts(program, step, layouts), self.machine)


def cost_or_model(cost: CostSource | None, backend: Backend) -> CostSource:
    """``cost``, or where there is none the model of ``backend`` on a machine that nobody described."""
    return ModelCost(backend) if cost is None else cost


def region_us(program: ir.Program, backend: Backend, machine: MachineRates) -> float:
    """Microseconds of one call of a region, planned to the end, its shapes of numbers."""
    return sum(planned_step_us(program, step, backend, machine) for step in program.steps)


def planned_step_us(program: ir.Program, step: ir.Step, backend: Backend, machine: MachineRates) -> float:
    """Microseconds of a step as it is planned; none for one that stands in place."""
    if not step.implementation:
        return 0.0
    layouts = tuple(program.values[value].layout for _, value in operands_of(step))
    info = StepInfo("", 0, 0, "").running(backend.implementation(step.implementation))
    return backend.cost(StepFacts(program, step, layouts, info), machine)
