"""Products of bfloat16 and of 8-bit integers on processors that multiply tiles: AMX.

Tiles multiply faster than caches bring what they multiply, so what a product takes no longer follows from
its time in float32.  Cycles of a core, for each vector of 16 numbers of a result; those in bfloat16 that are
not told here are in ``own.tiles``:

    step        64 bytes of the left operand by tiles: in bfloat16 2.8; of integers by oneDNN's kernels 2.5,
                by ours 2.8 in windows and 3.4 of single pixels, whose weights come from beyond the nearest
                caches more often; of integers by vectors 10.5
    finished    sums of integers become results: by our kernel 7, by oneDNN's 9.5; by vectors 6
    post-op     one more that is no function, on integers: by ours 1.5, by oneDNN's 4; a relu is free
    function    logistic, GELU and the like, on integers: by ours 42, by vectors 32; by oneDNN's vectors 22,
                by its tiles as the table of its families says
    copied      windows of integers whose rows are no whole steps, for each pixel: by ours 7.5 for each 64
                bytes of each row, as often as 64 channels are multiplied; by oneDNN's 20

Read off a Xeon with AMX, one thread, pointwise convolutions of 32 to 2048 channels and windows of 3x3 to 7x7,
with operands in caches: ``scripts/bench implementations``.
"""

from __future__ import annotations

import math

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.element_types import item_bytes
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from .kernels import functions_behind, is_function
from .own.integers import WINDOWS, is_own
from .own.tiles import copied, finished, is_own_tiles, unfilled
from .vectors import VECTOR, positions, whole

TILES = "amx"
"""The instruction set, as machines' rates and implementations name it."""
_STEP_BYTES, _ROWS = 64, 16
_STEP = 2.8
_STEP_OF_BYTES, _STEP_OF_WINDOWS, _STEP_OF_PIXELS, _STEP_OF_VECTORS = 2.5, 2.8, 3.4, 10.5
_FINISHED, _FINISHED_THERE, _FINISHED_BY_VECTORS = 7.0, 9.5, 6.0
_POST_OP, _POST_OP_THERE = 1.5, 4.0
_FUNCTION, _FUNCTION_BY_VECTORS, _FUNCTION_BY_VECTORS_THERE = 42.0, 32.0, 22.0
_FUNCTION_THERE = {"brgconv_1x1": 30.0, "jit_1x1": 50.0, "jit": 36.0, "brgconv": 90.0}
_OTHER_FUNCTION_THERE = 32.0
_COPIED_PIECE, _COPIED_THERE = 7.5, 20.0
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
        step = _step_of_bytes(facts) if integers else _STEP
        cycles = step * steps * _unfilled(facts)
        copies = _copied(facts, steps)
    else:
        cycles = _STEP_OF_VECTORS * _depth(facts) / _STEP_BYTES
    cycles += _finished_bytes(facts) if integers else finished(facts)
    return pixels * (vectors * cycles + copies) / machine.cycles_per_us(machine.threads) / machine.threads


def _step_of_bytes(facts: StepFacts) -> float:
    if not is_own(facts):
        return _STEP_OF_BYTES
    return _STEP_OF_WINDOWS if facts.info.family == WINDOWS else _STEP_OF_PIXELS


def _finished_bytes(facts: StepFacts) -> float:
    """Cycles in which a vector of sums of integers becomes one of results."""
    ours, functions = is_own(facts), functions_behind(facts)
    others = sum(not (is_function(one) or _is_relu(one)) for one in facts.step.post_ops)
    cycles = (_POST_OP if ours else _POST_OP_THERE) * others
    if not _of_tiles(facts.info):
        function = _FUNCTION_BY_VECTORS if ours else _FUNCTION_BY_VECTORS_THERE
        return cycles + _FINISHED_BY_VECTORS + function * functions
    if ours:
        return cycles + _FINISHED + _FUNCTION * functions
    function = _FUNCTION_THERE.get(facts.info.family, _OTHER_FUNCTION_THERE)
    return cycles + _FINISHED_THERE + function * functions


def _is_relu(post_op: ir.PostOp) -> bool:
    return isinstance(post_op, ir.EltwisePostOp) and post_op.algorithm == "relu"


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
    row = _depth(facts) // rows
    if rows * math.prod(others) == 1 or row % _STEP_BYTES == 0:
        return 0.0
    if facts.dtype("src") not in _BYTES:
        return copied(facts, steps)
    if not is_own(facts):
        return _COPIED_THERE
    panels = -(-facts.shape("dst")[1] // (4 * VECTOR))
    return _COPIED_PIECE * panels * rows * -(-row // _STEP_BYTES)


def _unfilled(facts: StepFacts) -> float:
    """The time of tiles that rows do not fill, as a multiple of that of full ones."""
    if is_own(facts) or is_own_tiles(facts.info):
        return unfilled(facts, _ROWS)
    dst = facts.shape("dst")
    rows = positions(dst) if isinstance(facts.step.attrs, ir.Convolution) else math.prod(dst[:-1])
    return whole(rows, _ROWS) / max(rows, 1)
