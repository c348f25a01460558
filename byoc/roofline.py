"""The beginnings of a model of costs, for any library: what moving a step's operands takes."""

from __future__ import annotations

from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.step_facts import StepFacts


def moving_us(facts: StepFacts, machine: MachineRates) -> float:
    """Microseconds to start a kernel that reads and writes every operand once."""
    return machine.start_us + machine.copying_us(facts.moved_bytes)
