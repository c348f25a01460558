"""Dense products in bfloat16 by tiles, ours and oneDNN's: what takes time beside the products themselves.

Ours (``byoc/runtime/onednn/tiles``) computes functions as exactly as bfloat16 needs.  Cycles of a core, for
each vector of 16 numbers of a result:

    finished    sums become results: by ours 7, by oneDNN's 6
    function    logistic, swish, GELU by tanh: by ours 10, by oneDNN's 22; others by either 20
    copied      windows whose rows are no whole steps, for each pixel: by ours 22, and 5 for each step; by
                oneDNN's 22
    lines       by themselves or, where that takes fewer tiles of 16 pixels, with those between them that are
                no pixels; tiles that are not full take half of the time that is missing less

Read off a Xeon with AMX, one thread, pointwise convolutions of 16 to 2048 channels and windows of 3x3 to 7x7,
with operands in caches.
"""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from ..kernels import is_function
from ..vectors import whole

POINTWISE, WINDOWS = "tiles_1x1", "tiles_windows"
"""The families of this kernel."""
_FINISHED, _FINISHED_THERE = 7.0, 6.0
_QUICK = frozenset(("logistic", "swish", "gelu_tanh"))
_FUNCTION, _FUNCTION_THERE, _OTHER = 10.0, 22.0, 20.0
_COPIED, _COPIED_STEP = 22.0, 5.0
_OF_ROWS = 0.5
_THEIRS = {POINTWISE: "brgconv_1x1", WINDOWS: "brgconv"}


def is_own_tiles(info: StepInfo) -> bool:
    """Whether a step runs in this kernel."""
    return info.family in (POINTWISE, WINDOWS)


def finished(facts: StepFacts) -> float:
    """Cycles in which a vector of sums becomes one of results."""
    ours = is_own_tiles(facts.info)
    cycles = _FINISHED if ours else _FINISHED_THERE
    for post_op in facts.step.post_ops:
        if is_function(post_op):
            quick = _FUNCTION if ours else _FUNCTION_THERE
            cycles += quick if post_op.algorithm in _QUICK else _OTHER
    return cycles


def copied(facts: StepFacts, steps: int) -> float:
    """Cycles for each pixel to copy a window of so many steps."""
    return _COPIED + _COPIED_STEP * steps if is_own_tiles(facts.info) else _COPIED


def unfilled(facts: StepFacts, tile: int) -> float:
    """The time of tiles of `tile` rows of which lines fill a part, as a multiple of that of full ones."""
    attrs, (_, _, lines, line) = facts.step.attrs, facts.shape("dst")
    assert isinstance(attrs, ir.Convolution)
    if lines * line == 0:
        return 1.0
    rows = lines * whole(line, tile)
    if attrs.strides == (1, 1):
        pitch = line + facts.shape("weights")[3] - 1
        rows = min(rows, whole((lines - 1) * pitch + line, tile))
    return 1.0 - _OF_ROWS + _OF_ROWS * rows / (lines * line)


def theirs_of_tiles(info: StepInfo) -> StepInfo:
    """oneDNN's implementation in float32 that is as far from the peak."""
    return replace(info, family=_THEIRS[info.family])
