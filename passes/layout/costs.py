"""What a step costs in given layouts: a model in microseconds, used where nothing was measured.

The model is a roofline with an efficiency for each implementation, so it answers two questions only: which
of a library's kernels suits a shape, and whether a reorder pays.  The efficiencies were read off oneDNN 3.2
on a two-core AVX-512 machine (scripts/bench_layouts measures them again); ratios carry over to others far
better than absolute times do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from tvm_mxplan.core import program as ir
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.layout import parse_layout

from .candidates import Layouts, operands_of
from .winograd_costs import winograd_cost

# Waking the threads, and what a reorder drives out of the caches; less than that is the error of the model.
REORDER_OVERHEAD_US = 6.0
_REFERENCE_PENALTY = 50.0
# oneDNN's first choice for depthwise convolutions on channels last, against its second on wider images.
_BRDGMM_PENALTY, _BRDGMM_WIDTH = 1.2, 14


@dataclass(frozen=True)
class Machine:
    """Peak arithmetic and memory speed of the threads that run a region."""

    gflops: float = 480.0
    gbytes_per_s: float = 40.0


class StepCost(Protocol):
    """What a step costs in given layouts, in microseconds."""

    def __call__(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo, /) -> float: ...


class CostSource(StepCost, Protocol):
    """Costs and where they come from: ``measured`` on this machine as far as can be, or by a model."""

    @property
    def measured(self) -> bool: ...


@dataclass(frozen=True)
class ModelCost:
    """Costs by the model; see the module's text."""

    machine: Machine = Machine()
    measured: bool = False

    def __call__(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
        return step_cost(program, step, layouts, info, self.machine)


def step_cost(
    program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo, machine: Machine
) -> float:
    """Microseconds for one step."""
    moved = sum(
        value_bytes(program.values[value].shape, layout)
        for (_, value), layout in zip(operands_of(step), layouts, strict=True)
    )
    transfer = moved / machine.gbytes_per_s / 1e3
    if isinstance(step.attrs, ir.Convolution) and step.attrs.algorithm != "direct":
        channels, dst = program.values[step.operand("src")].shape[1], program.values[step.dst].shape
        peak = (machine.gflops, machine.gbytes_per_s)
        return max(transfer, winograd_cost(step.attrs.algorithm, channels, dst, *peak))  # type: ignore[arg-type]
    arithmetic = _operations(program, step, layouts) / machine.gflops / 1e3
    cost = max(transfer, arithmetic / _efficiency(info))
    if info.implementation.startswith("brdgmm_dw") and program.values[step.dst].shape[-1] >= _BRDGMM_WIDTH:  # type: ignore[operator]
        cost *= _BRDGMM_PENALTY
    return cost * _REFERENCE_PENALTY if info.is_reference else cost


BY_MODEL = ModelCost()


def reorder_cost(shape: tuple[int, ...], source: str, target: str, machine: Machine) -> float:
    """Microseconds to convert a value of ``shape`` from one layout into another."""
    moved = value_bytes(shape, source) + value_bytes(shape, target)
    return REORDER_OVERHEAD_US + moved / machine.gbytes_per_s / 1e3


def value_bytes(shape: tuple[object, ...], layout: str) -> int:
    """Bytes of a float32 value, padding included."""
    return 4 * parse_layout(layout).elements(shape)  # type: ignore[arg-type]


def _operations(program: ir.Program, step: ir.Step, layouts: Layouts) -> float:
    """Floating-point operations, those on padded channels included."""
    if not isinstance(step.attrs, ir.Convolution | ir.Deconvolution | ir.MatMul | ir.InnerProduct):
        return 0.0
    shapes = {
        role: parse_layout(layout).padded_shape(program.values[value].shape)  # type: ignore[arg-type]
        for (role, value), layout in zip(operands_of(step), layouts, strict=True)
        if role in ("src", "dst")
    }
    if isinstance(step.attrs, ir.MatMul):
        return 2.0 * math.prod(shapes["dst"]) * shapes["src"][-1]
    if isinstance(step.attrs, ir.InnerProduct):
        return 2.0 * math.prod(shapes["dst"]) * math.prod(shapes["src"][1:])
    kernel = program.values[step.operand("weights")].shape[2 + (step.attrs.groups > 1) :]
    if any(isinstance(post_op, ir.DepthwisePostOp) for post_op in step.post_ops):
        # A pointwise convolution at every position of its source; what follows hides behind memory.
        return 2.0 * math.prod(shapes["src"]) * shapes["dst"][1]
    positions = "src" if isinstance(step.attrs, ir.Deconvolution) else "dst"
    depth = "dst" if positions == "src" else "src"
    channels = shapes[depth][1] / step.attrs.groups
    return 2.0 * math.prod(shapes[positions]) * max(channels, 1.0) * math.prod(kernel)  # type: ignore[arg-type]


def _efficiency(info: StepInfo) -> float:
    """Share of the peak that an implementation reaches when memory is no limit."""
    name = info.implementation
    if "gemm" in name:
        return 0.3
    if "dw" in name:
        return 0.25
    if name.startswith(("jit_1x1", "brgconv_1x1")):
        return 0.88
    if name.startswith("jit"):
        return 0.85
    return 0.93
