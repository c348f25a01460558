"""Costs of steps on a GPU: the bytes that they move, which is what layouts are chosen by.

Nobody has measured a GPU for this project yet, and every convolution runs channels last.  So costs tell a
plan with fewer reorders from one with more, and no time: the rates are those of the machine that the
compilation was given.
"""

from __future__ import annotations

from tvm_mxplan.byoc.roofline import moving_us
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.step_facts import StepFacts


def cost(facts: StepFacts, machine: MachineRates) -> float:
    """Returns the time that moving the operands of a step takes at the rates of ``machine``."""
    return moving_us(facts, machine)
