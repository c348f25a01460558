"""Costs of the host library's kernels: they move bytes, and a few compute as long as they move.

Read off with ``scripts/bench host``, which times each kernel against TVM's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm_mxplan.core.description import Implementation
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.machine.rates import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

FAMILY = "host"
_OPERATIONS = {"erf": 40.0, "exp": 25.0, "log": 30.0, "cos": 30.0, "sin": 30.0}
"""Operations of an element, where they may take longer than its bytes."""
_TOUCHED_OPERATIONS = 2.0
"""Of any element; TVM's kernels take as long to load and store it (``passes/costs/kept_times.py``)."""
SHORT_ROW, _SHORT_OPERATIONS = 64, 6.0
"""Rows that are reduced side by side, and what one of their elements takes."""
_RESIZED_OPERATIONS, _NARROW_SHARE = {"linear": 25.0, "cubic": 40.0}, 1.5
"""Of an element of a result that is mixed of others, and how many times that it takes in a narrow image."""
_SAMPLED_OPERATIONS = {"nearest": (24.0, 14.0), "linear": (40.0, 23.0), "cubic": (100.0, 70.0)}
"""Of an element that is read at a place: where channels stand apart, and side by side in registers."""
_PLACE_OPERATIONS, _REGISTER = {"nearest": 60.0, "linear": 110.0, "cubic": 250.0}, 16
"""Of a place, for all channels; channels that a register holds."""
_TAKEN_OPERATIONS = 22.0
"""Of an element that is read by its index, where no neighbours come with it."""
_MOVED_APART = 1.15
"""Of a slice with steps, or whose elements are taken again and again, beside as many neighbours."""
_FARTHEST_OPERATIONS, _ROW_OPERATIONS = 2.0, 160.0
"""Of an element, and of a row, whose farthest element is looked for."""
_SUMMED_UP, _SUMMED_DOWN = 8.0, 4.0
"""Of an element of a row, and of a column, that is added to those before it."""
_SCANNED_OPERATIONS, _SORTED_OPERATIONS = 10.0, 16.0
"""Of an element that is held against a limit, and of each comparison of one that is sorted."""
_FEW, _CHOSEN_FROM = 6, 128
"""As ``runtime/host/steps/order.cc`` has it: the first of so many are chosen, of rows that are longer."""
_SETS = {"base": "sse41"}
"""Instruction sets that machines' rates call otherwise."""
_SERIAL_US = 15.0
"""Of work that is left to one thread, as ``runtime/host/parallel.h`` has it."""
_SHARE = 0.25
"""Of the processor's peak, what loops like these reach."""


def implementation_named(name: str) -> Implementation:
    """Reads the properties that a name such as ``host:avx512`` states."""
    isa = name.partition(":")[2]
    return Implementation(name, FAMILY, _SETS.get(isa, isa))


def cost(facts: StepFacts, machine: MachineRates) -> float:
    """Microseconds of a step, on one thread where waking the others would take longer."""
    moved = facts.moved_bytes
    if isinstance(facts.step.attrs, ir.Gather | ir.GatherNd | ir.GatherPlaces | ir.StridedSlice):
        # Elements that nobody asks for are not read.
        moved += min(facts.operand_bytes[-1] - facts.operand_bytes[0], 0)
    if isinstance(facts.step.attrs, ir.StridedSlice) and set(facts.step.attrs.steps) != {1}:
        moved = round(_MOVED_APART * moved)
    computing = _computing_us(facts, machine)
    alone = max(machine.copying_alone_us(moved), machine.threads * computing)
    if machine.threads == 1 or alone < _SERIAL_US:
        return machine.start_us + alone
    return machine.start_us + machine.fork_us + max(machine.copying_us(moved), computing)


def _sorting(src: Sequence[int], first: int, axis: int) -> float:
    """Operations of sorting, or of choosing the first elements and sorting these."""
    extent = max(1, src[axis])
    rows = math.prod(src) / extent
    chosen = first * _FEW <= extent and extent > _CHOSEN_FROM
    held = first + _CHOSEN_FROM if chosen else extent
    return rows * (_SCANNED_OPERATIONS * extent + _SORTED_OPERATIONS * held * math.log2(held + 1))


def _sampling(attrs: ir.GridSample, dst: Sequence[int], layout: str) -> float:
    """Operations of reading images at the places of a grid."""
    samples, channels, *points = dst
    apart, together = _SAMPLED_OPERATIONS[attrs.algorithm]
    of_channels = apart * channels
    if layout != plain_layout(len(dst)):
        of_channels = together * -(-channels // _REGISTER) * _REGISTER
    return samples * math.prod(points) * (_PLACE_OPERATIONS[attrs.algorithm] + of_channels)


def _computing_us(facts: StepFacts, machine: MachineRates) -> float:
    """Microseconds on all threads of the arithmetic, or of loading and storing elements out of a cache."""
    attrs = facts.step.attrs
    operations = 0.0
    if isinstance(attrs, ir.Eltwise):
        operations = _OPERATIONS.get(attrs.algorithm, 0.0) * math.prod(facts.padded("dst"))
    elif isinstance(attrs, ir.Resize) and attrs.algorithm != "nearest":
        dst = facts.padded("dst")
        narrow = _NARROW_SHARE if dst[-1] < SHORT_ROW else 1.0
        operations = narrow * _RESIZED_OPERATIONS[attrs.algorithm] * math.prod(dst)
    elif isinstance(attrs, ir.Reduction):
        src = facts.padded("src")
        operations = (_SHORT_OPERATIONS if src[-1] < SHORT_ROW else 2.0) * math.prod(src)
    elif isinstance(attrs, ir.Gather) and math.prod(facts.padded("src")[attrs.axis + 1 :]) == 1:
        operations = _TAKEN_OPERATIONS * math.prod(facts.padded("dst"))
    elif isinstance(attrs, ir.GatherNd):
        entry = facts.padded("src")[attrs.batch_axes + facts.shape("indices")[-1] :]
        operations = _TAKEN_OPERATIONS * math.prod(facts.padded("dst")) if math.prod(entry) == 1 else 0.0
    elif isinstance(attrs, ir.GridSample):
        operations = _sampling(attrs, facts.padded("dst"), facts.layouts[facts.roles.index("dst")])
    elif isinstance(attrs, ir.ExtremeIndex):
        src = facts.padded("src")
        rows = math.prod(src) / max(1, src[attrs.axis])
        along = math.prod(src[attrs.axis + 1 :]) > 1
        operations = _FARTHEST_OPERATIONS * math.prod(src) * (2.0 if along else 1.0) + _ROW_OPERATIONS * rows
    elif isinstance(attrs, ir.CumulativeSum):
        along = math.prod(facts.padded("src")[attrs.axis + 1 :]) > 1
        operations = (_SUMMED_DOWN if along else _SUMMED_UP) * math.prod(facts.padded("dst"))
    elif isinstance(attrs, ir.Ranking):
        operations = _sorting(facts.padded("src"), facts.padded("dst")[attrs.axis], attrs.axis)
    in_fours = isinstance(attrs, ir.Resize | ir.GridSample)  # on any processor
    isa = "avx2" if in_fours else facts.info.instruction_set
    peak = _SHARE * machine.gflops("float32", isa)
    touched = _TOUCHED_OPERATIONS * math.prod(facts.padded("dst"))
    return max(operations / peak, touched / _SHARE / machine.gflops("float32", "avx2")) / 1e3
