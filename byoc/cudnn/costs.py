"""Costs of steps on a GPU: the roofline of its rates.

    starting    a kernel
    moving      operands and result, at the speed of the level of memory that holds them
    computing   multiply-adds, in place of moving where they take longer

Nobody has measured a GPU for this project yet: the rates are worked out from its properties (``rates``), and
a kernel reaches a share of them.  So costs tell plans that move more from those that move less, and what is
far slower on a GPU from what is not; they are no times to be relied on.
"""

from __future__ import annotations

from tvm_mxplan.core import multiply_adds
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from .rates import TF32

_PEAK_SHARE = 0.5
"""Of the arithmetic's peak, what is taken to be reached."""


def cost(facts: StepFacts, gpu: MachineRates, tf32: bool) -> float:
    """Microseconds of a step on a GPU of these rates."""
    moved = facts.moved_bytes
    if isinstance(facts.step.attrs, ir.Concat | ir.Slice):
        moved = 2 * facts.pieces_bytes
    operations = 2 * multiply_adds.of_step(facts.program, facts.step)
    dtype = facts.dtype("src")
    rate = gpu.gflops(TF32 if tf32 and dtype == "float32" and operations else dtype)
    return gpu.start_us + max(gpu.copying_us(moved), operations / (_PEAK_SHARE * rate) / 1e3)
