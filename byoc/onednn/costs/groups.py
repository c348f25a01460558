"""Efficiency of convolutions in groups, whose kernels load something for each product of vectors.

How much a load costs differs by processor more than anything else here, so these kernels are measured with
the machine's rates where they can be (``rate_in_groups``): sixteen channels to a group, a window of 3x3.
"""

from __future__ import annotations

import math

from tvm_mxplan.core.description import Implementation
from tvm_mxplan.core.element_types import item_bytes
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from .names import ANY_WINDOW, GEMM
from .vectors import VECTOR, VECTORS, positions, vector_of, whole

NARROW = "grouped"
"""The family of our own kernels for narrow groups."""
MEASURED_CHANNELS, MEASURED_WINDOW = 16, 3
"""Channels of a group and the extent of the window in the convolution that is measured."""
STORED = 16
"""Inputs that could be multiplied while a vector of results is begun, put through post-ops and stored, in
oneDNN's kernel for any window: a few do not hide it, as in groups and on images of three channels."""
_MEASURED_FAMILIES, _MEASURED_SETS = (ANY_WINDOW, "brgconv", NARROW), ("avx512", "avx2")
_LOADED = 0.65
"""The reach of kernels of oneDNN that were not measured: a share of the vectors that the machine multiplies
in a second with the instruction set that multiplies most of them."""
_SCATTERED = 3.0
"""Times as long as an image is read from memory, kernels wait for one of which a group takes a line of each
pixel: every group goes over the whole by lines that are far apart, which are not fetched ahead. Of two lines
side by side the second one is, and parts of ``_FETCHED_AHEAD`` bytes are not waited for at all."""
_LINE, _FETCHED_AHEAD = 64, 256
_KEPT = 0.25
"""Of the last cache, what holds such an image from step to step."""
_NARROW_SHARE, _NARROW_PIXEL = 0.9, 2200.0
"""The reach of sums of our kernels, and the operations that could be done while one pixel of a group, or of
the groups in a vector, is fetched and put away; scaled to what was measured."""


def rate_in_groups(implementation: Implementation) -> str:
    """The name of a kernel's rate in narrow groups, '' where none is measured."""
    family, instruction_set = implementation.family, implementation.instruction_set
    measured = family in _MEASURED_FAMILIES and instruction_set in _MEASURED_SETS
    return _rate(implementation.name) if measured else ""


def narrowed(facts: StepFacts, attrs: ir.Convolution | ir.Deconvolution) -> str:
    """The instruction set whose vectors a kernel fills: groups of few channels take narrow ones."""
    info = facts.info
    if attrs.groups == 1 or info.family != ANY_WINDOW or info.instruction_set in VECTORS:
        return info.instruction_set
    outputs, inputs = facts.shape("weights")[1:3]
    fitting = (name for name, lanes in VECTORS.items() if inputs % lanes == 0 and outputs % lanes == 0)
    return info.instruction_set if max(inputs, outputs) >= VECTOR else next(fitting, info.instruction_set)


def loaded(facts: StepFacts, instructions: str, machine: MachineRates, share: float) -> float:
    """Of the rate of an instruction set, what kernels reach that load something for each product.

    Parameters
    ----------
    share : what they reach in one group.
    """
    info, dtype = facts.info, facts.dtype("src")
    if info.family == GEMM or info.instruction_set == "sse41":  # which multiplies and adds apart
        return share * _LOADED
    measured = machine.kernel_gflops(_rate(info.implementation))
    if measured is not None:
        reached = min(1.0, measured / _peak(machine, info.instruction_set))
        if info.family == ANY_WINDOW:
            terms = MEASURED_CHANNELS * MEASURED_WINDOW**2  # beside which results were stored as well
            return reached * (terms + STORED) / terms
        # Products of matrices wait when they begin: the less, the more channels a group has.
        dense = max(share, reached)
        waiting = (1 / reached - 1 / dense) * MEASURED_CHANNELS / facts.shape("weights")[2]
        return 1 / (1 / dense + waiting)
    rates = {lanes: machine.gflops(dtype, name) / lanes for name, lanes in VECTORS.items()}
    rates[VECTOR] = machine.gflops(dtype) / VECTOR
    own = VECTORS.get(instructions, VECTOR)
    return share * min(1.0, _LOADED * max(rates.values()) / rates[own])


def scattered_us(facts: StepFacts, machine: MachineRates) -> float:
    """Microseconds in which kernels of grouped convolutions wait for images with channels last."""
    attrs = facts.step.attrs
    if not isinstance(attrs, ir.Convolution) or attrs.groups == 1 or facts.layout("src").blocks:
        return 0.0
    inputs = facts.shape("weights")[2]
    part = inputs * item_bytes(facts.dtype("src"))
    if inputs == 1 or part >= _FETCHED_AHEAD or facts.layout("src").order[-1] != 1:
        return 0.0
    last = max((level.nbytes or 0 for level in machine.levels), default=0)
    far = max(facts.image_bytes - _KEPT * last, 0.0)
    return _SCATTERED * far / machine.memory.read / 1e3 * _LINE / max(part, _LINE)


def narrow_groups(facts: StepFacts, groups: int, machine: MachineRates) -> float:
    """Operations of a convolution by our kernels: a group's channels fill vectors, or groups one vector."""
    _, outputs, inputs, *window = facts.shape("weights")
    vector, instruction_set = vector_of(facts.info), facts.info.instruction_set
    together = max(vector // outputs, 1)
    pixel = _narrow_pixel(inputs, whole(together * outputs, vector), math.prod(window))
    measured = machine.kernel_gflops(_rate(facts.info.implementation))
    if measured is not None:
        window_there = MEASURED_WINDOW**2
        there = _narrow_pixel(MEASURED_CHANNELS, MEASURED_CHANNELS, window_there)
        useful = 2.0 * MEASURED_CHANNELS**2 * window_there
        pixel *= useful / there * _peak(machine, instruction_set) / measured
    return positions(facts.shape("dst")) * (groups / together) * pixel


def _narrow_pixel(inputs: int, channels: int, window: int) -> float:
    return 2.0 * inputs * channels * window / _NARROW_SHARE + _NARROW_PIXEL


def _peak(machine: MachineRates, instruction_set: str) -> float:
    """The rate that ``kernels.computing_us`` divides operations by, narrow vectors excepted the fastest."""
    return machine.gflops("float32", instruction_set if instruction_set in VECTORS else "")


def _rate(implementation: str) -> str:
    return f"{implementation} in groups"
