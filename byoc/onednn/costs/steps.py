"""Computes a oneDNN step's cost, in microseconds: the roofline of a machine with what each family reaches.

reorders         their bytes at the speed of memory, and waking the threads
concat, slice    copies of all their pieces; ``passes/costs/movement`` says which are none
Winograd's       ``winograd``
other types      what the step takes in float32, times a share: ``types``
all others       moving operands, or the arithmetic of ``kernels``, whichever takes longer
"""

from __future__ import annotations

from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from .kernels import arithmetic_us, exposed_us, reread_weights_us
from .types import in_float, is_float, time_share
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
    if not is_float(facts):
        return time_share(facts, machine) * cost(in_float(facts), machine)
    moved, near = facts.moved_bytes, machine.levels[0].nbytes or 0
    transfer = (moved - min(moved, near) / 2) / speed / 1e3
    if isinstance(attrs, ir.Convolution) and attrs.algorithm != "direct":
        return max(transfer, winograd_cost(facts, attrs, machine))
    busy = max(arithmetic_us(facts, machine), reread_weights_us(facts, machine))
    spent = max(transfer, busy + exposed_us(facts, machine))
    # A recurrent layer's reference code is made of matrix products, fast ones.
    slow = facts.info.is_reference and not isinstance(attrs, ir.Recurrent)
    return spent * _REFERENCE_PENALTY if slow else spent
