"""Products of bfloat16 and of 8-bit integers on processors that multiply tiles: AMX.

Tiles multiply faster than caches bring what they multiply, so what a product takes no longer follows from
its time in float32.  Cycles of a core, for each vector of 16 numbers of a result:

    step        64 bytes of the left operand by tiles 2.8; the same by vectors of 8-bit integers 9
    finished    sums become results: by our kernel 7.5, by oneDNN's 10.5, by vectors of ours 6.5; in
                bfloat16 see ``own_tiles``
    post-op     one more, on integers: by ours 1.5, by oneDNN's 3.5; logistic, GELU and the like by ours 38
                more, by oneDNN's 32
    copied      windows whose rows are no whole steps, for each pixel: by ours 5 for each row and 1 for each
                step, as often as 64 channels are multiplied; by oneDNN's 8; in bfloat16 see ``own_tiles``

Read off a Xeon with AMX, one thread, pointwise convolutions of 64 to 2048 channels and windows of 3x3 to 7x7,
with operands in caches.
"""

from __future__ import annotations

import math

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.element_types import item_bytes
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from .kernels import functions_behind
from .own_integers import is_own
from .own_tiles import copied, finished, is_own_tiles, unfilled
from .vectors import VECTOR, positions, whole

TILES = "amx"
"""The instruction set, as machines' rates and implementations name it."""
_STEP_BYTES, _ROWS = 64, 16
_STEP, _STEP_OF_VECTORS = 2.8, 9.0
_FINISHED, _FINISHED_THERE, _FINISHED_BY_VECTORS = 7.5, 10.5, 6.5
_POST_OP, _POST_OP_THERE = 1.5, 3.5
_FUNCTION, _FUNCTION_THERE = 38.0, 32.0
_COPIED_ROW, _COPIED_STEP, _COPIED_THERE = 5.0, 1.0, 8.0
_BYTES = ("uint8", "int8")
_TYPES = (*_BYTES, "bfloat16")


def has_tiles(machine: MachineRates) -> bool:
    """Whether a machine's rates state what its tiles reach."""
    return any(one.instruction_set == TILES for one in machine.compute)


def by_tiles(facts: StepFacts, machine: MachineRates) -> bool:
    """Whether `tiles_us` tells what a step computes: dense products, on integers also those by vectors."""
    attrs = facts.step.attrs
    if not has_tiles(machine) or facts.dtype("src") not in _TYPES or facts.info.is_reference:
        return False
    if not isinstance(attrs, ir.MatMul | ir.InnerProduct | ir.Convolution) or facts.step.has_depthwise:
        return False
    if isinstance(attrs, ir.Convolution):
        if attrs.algorithm != "direct" or facts.shape("src")[1] == attrs.groups > 1:
            return False
        if attrs.groups > 1:
            return _of_tiles(facts.info)
    return _of_tiles(facts.info) or facts.dtype("src") in _BYTES


def pairs_by_vectors(facts: StepFacts, machine: MachineRates) -> bool:
    """Whether a step's dense products in bfloat16 are by vectors where there are tiles."""
    attrs = facts.step.attrs
    if not has_tiles(machine) or facts.dtype("src") != "bfloat16" or facts.info.is_reference:
        return False
    if isinstance(attrs, ir.Convolution | ir.Deconvolution):
        return facts.shape("src")[1] != attrs.groups or attrs.groups == 1
    return isinstance(attrs, ir.MatMul | ir.InnerProduct)


def tiles_us(facts: StepFacts, machine: MachineRates) -> float:
    """Microseconds of a step's products and of finishing its results, with operands in caches."""
    dst, integers = facts.shape("dst"), facts.dtype("src") in _BYTES
    matrix = isinstance(facts.step.attrs, ir.MatMul)
    channels, pixels = (dst[-1], math.prod(dst[:-1])) if matrix else (dst[1], positions(dst))
    groups = facts.step.attrs.groups if isinstance(facts.step.attrs, ir.Convolution) else 1
    vectors = groups * whole(channels // groups, VECTOR) / VECTOR
    steps, copies = -(-_depth(facts) // _STEP_BYTES), 0.0
    if _of_tiles(facts.info):
        cycles = _STEP * steps * _unfilled(facts)
        cycles += (_FINISHED if is_own(facts) else _FINISHED_THERE) if integers else finished(facts)
        copies = _copied(facts, steps)
    else:
        cycles = _STEP_OF_VECTORS * _depth(facts) / _STEP_BYTES
        cycles += _FINISHED_BY_VECTORS if is_own(facts) else _FINISHED_THERE
    if integers:
        cycles += (_POST_OP if is_own(facts) else _POST_OP_THERE) * len(facts.step.post_ops)
        cycles += (_FUNCTION if is_own(facts) else _FUNCTION_THERE) * functions_behind(facts)
    return pixels * (vectors * cycles + copies) / machine.cycles_per_us(machine.threads) / machine.threads


def _of_tiles(info: StepInfo) -> bool:
    return TILES in info.implementation


def _depth(facts: StepFacts) -> int:
    """Bytes of the left operand that a number of the result is made of."""
    attrs, src = facts.step.attrs, facts.shape("src")
    numbers = src[-1]
    if isinstance(attrs, ir.Convolution):
        numbers = math.prod(facts.shape("weights")[1 + (attrs.groups > 1) :])
    elif isinstance(attrs, ir.InnerProduct):
        numbers = math.prod(src[1:])
    return numbers * item_bytes(facts.dtype("src"))


def _copied(facts: StepFacts, steps: int) -> float:
    """Cycles for each pixel to copy windows in front of their products."""
    attrs = facts.step.attrs
    if not isinstance(attrs, ir.Convolution) or attrs.groups > 1:
        return 0.0
    rows, *others = facts.shape("weights")[2:]
    pointwise = rows * math.prod(others) == 1
    if pointwise or _depth(facts) // rows % _STEP_BYTES == 0:
        return 0.0
    if facts.dtype("src") not in _BYTES:
        return copied(facts, steps)
    if not is_own(facts):
        return _COPIED_THERE
    panels = -(-facts.shape("dst")[1] // (4 * VECTOR))
    return panels * (_COPIED_ROW * rows + _COPIED_STEP * steps)


def _unfilled(facts: StepFacts) -> float:
    """The time of tiles that rows do not fill, as a multiple of that of full ones."""
    if is_own(facts) or is_own_tiles(facts.info):
        return unfilled(facts, _ROWS)
    dst = facts.shape("dst")
    rows = positions(dst) if isinstance(facts.step.attrs, ir.Convolution) else math.prod(dst[:-1])
    return whole(rows, _ROWS) / max(rows, 1)
