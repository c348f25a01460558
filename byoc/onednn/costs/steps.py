"""What a step of oneDNN's costs, in microseconds: the roofline of a machine with what each family reaches.

reorders         their bytes at the speed of memory, and waking the threads
concat, slice    copies of all their pieces; ``passes/costs/movement`` says which are none
Winograd's       ``winograd``
all others       moving operands, or the arithmetic of ``kernels``, whichever takes longer
"""

from __future__ import annotations

from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from .kernels import arithmetic_us, exposed_us, reread_weights_us
from .winograd import winograd_cost

# Waking the threads, and what a reorder drives out of the caches; less than that is the error of the model.
_REORDER_US = 6.0
_REFERENCE_PENALTY = 50.0


def cost(facts: StepFacts, machine: MachineRates) -> float:
    """Microseconds of one step on a machine."""
    attrs = facts.step.attrs
    speed = machine.memory.copied
    if isinstance(attrs, ir.Reorder):
        return _REORDER_US + facts.moved_bytes / speed / 1e3
    if isinstance(attrs, ir.Concat | ir.Slice):
        start = _REORDER_US if isinstance(attrs, ir.Slice) else 0.0
        return start + 2 * facts.pieces_bytes / speed / 1e3
    moved, near = facts.moved_bytes, machine.levels[0].nbytes or 0
    transfer = (moved - min(moved, near) / 2) / speed / 1e3
    if isinstance(attrs, ir.Convolution) and attrs.algorithm != "direct":
        return max(transfer, winograd_cost(facts, attrs, machine))
    busy = max(arithmetic_us(facts, machine), reread_weights_us(facts, machine))
    cost = max(transfer, busy + exposed_us(facts, machine))
    return cost * _REFERENCE_PENALTY if facts.info.is_reference else cost
