"""Costs of the host library's kernels: they move bytes, and a few compute as long as they move.

Read off with ``scripts/bench host``, which times each kernel against TVM's.
"""

from __future__ import annotations

import math

from tvm_mxplan.byoc.roofline import moving_us
from tvm_mxplan.core.description import Implementation
from tvm_mxplan.core.machine.rates import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

FAMILY = "host"
_OPERATIONS = {"erf": 40.0, "exp": 25.0}
"""Operations of an element, where they may take longer than its bytes."""
_SETS = {"base": "sse41"}
"""Instruction sets that machines' rates call otherwise."""
_SHARE = 0.25
"""Of the processor's peak, what loops like these reach."""


def implementation_named(name: str) -> Implementation:
    """Reads the properties that a name such as ``host:avx512`` states."""
    isa = name.partition(":")[2]
    return Implementation(name, FAMILY, _SETS.get(isa, isa))


def cost(facts: StepFacts, machine: MachineRates) -> float:
    """Microseconds of a step."""
    attrs = facts.step.attrs
    if isinstance(attrs, ir.Gather):
        # Elements that no index asks for are not read.
        moved = facts.moved_bytes - facts.operand_bytes[0] + facts.operand_bytes[-1]
        return machine.start_us + machine.copying_us(moved)
    operations = 0.0
    if isinstance(attrs, ir.Eltwise):
        operations = _OPERATIONS.get(attrs.algorithm, 0.0)
    elif isinstance(attrs, ir.Resize) and attrs.algorithm != "nearest":
        operations = 16.0 if attrs.algorithm == "linear" else 64.0
    if not operations:
        return moving_us(facts, machine)
    peak = _SHARE * machine.gflops("float32", facts.info.instruction_set)
    computing = operations * math.prod(facts.padded("dst")) / peak / 1e3
    return machine.start_us + max(machine.copying_us(facts.moved_bytes), computing)
