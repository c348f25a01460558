"""Our own kernel for windows over few channels in bfloat16 as a share of oneDNN's.

``byoc/runtime/onednn/windows``: a row of a window is numbers side by side, which ours multiplies two by two,
and oneDNN's pixel by pixel, each of four channels and more.  Beside these products stands what takes as long
as

    28 of them, of ours, for each number of a result, and 21 of oneDNN's

Read off a processor of the Zen 4 kind, one thread, the least time of many runs of windows of 3x3 to 16x16
over 3 to 12 channels, with 32 to 384 in the result: measured shares are within 0.1 of these.
"""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.step_facts import StepFacts

from ..vectors import whole

WINDOWS = "windows"
"""The family of this kernel."""
_THEIRS = "jit_bf16"
_PAIR, _PIXEL = 2, 4
_BESIDE, _BESIDE_THERE = 28.0, 21.0


def is_own_window(info: StepInfo) -> bool:
    """Whether a step runs in this kernel."""
    return info.family == WINDOWS


def window_share(facts: StepFacts) -> float:
    """Time of a step in this kernel as a share of its time in oneDNN's."""
    channels = facts.shape("src")[1]
    *_, rows, columns = facts.shape("weights")
    ours = rows * whole(columns * channels, _PAIR)
    theirs = rows * columns * whole(channels, _PIXEL)
    return (ours + _BESIDE) / (theirs + _BESIDE_THERE)


def theirs_of_windows(info: StepInfo) -> StepInfo:
    """oneDNN's implementation, whose time the share is one of."""
    return replace(info, family=_THEIRS)
