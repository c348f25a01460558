"""A backend that takes every program as it is, for tests of decisions on plain data."""

from __future__ import annotations

from tvm_mxplan.byoc.onednn.layout_rules import layout_rules
from tvm_mxplan.byoc.roofline import moving_us
from tvm_mxplan.core.description import Description, Implementation, StepInfo, ValueInfo
from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts


class Agreeable:
    """Describes a program as the program describes itself."""

    def describe(self, program: ir.Program) -> Description:
        steps = tuple(StepInfo(step.implementation, 0, 0, "") for step in program.steps)
        values = tuple(ValueInfo(value.layout, value.nbytes) for value in program.values)
        return Description(steps, values)

    def implementation(self, name: str) -> Implementation:
        return Implementation(name)

    def cost(self, facts: StepFacts, machine: MachineRates) -> float:
        return moving_us(facts, machine)


def rules(_step: ir.Step) -> LayoutRules:
    """oneDNN's, in blocks of 16."""
    return layout_rules(16)
