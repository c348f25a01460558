"""What a step costs in given layouts: a model in microseconds, used where nothing was measured.

The model is a roofline with what each family of kernels reaches (``kernel_costs``), so it answers two
questions only: which of a library's kernels suits a shape, and whether a reorder pays.  Absolute times are
those of one machine, ratios carry over to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.element_types import stored_bytes
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.program import program as ir

from .candidates import Layouts, is_cast, operands_of
from .kernel_costs import arithmetic_us, exposed_us, reread_weights_us
from .processor import narrow_share
from .type_shares import time_share, widened
from .winograd_costs import winograd_cost

# Waking the threads, and what a reorder drives out of the caches; less than that is the error of the model.
REORDER_OVERHEAD_US = 6.0
_REFERENCE_PENALTY = 50.0


@dataclass(frozen=True)
class Machine:
    """Peak arithmetic and memory speed of the threads that run a region, and the caches of their own.

    Attributes
    ----------
    cache_bytes : that much of what a step touches moves at twice the speed of memory.
    narrow_share : what AVX2 reaches of the peak; None for what it does on this machine.
    """

    gflops: float = 480.0
    gbytes_per_s: float = 40.0
    cache_bytes: int = 2 << 20
    narrow_share: float | None = None


Reader: TypeAlias = tuple[ir.Step, Layouts]
"""A step with the layouts of its operands."""


class StepCost(Protocol):
    """Microseconds of a step in given layouts, ``measured`` as far as can be, or by a model."""

    @property
    def measured(self) -> bool: ...

    def __call__(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo, /) -> float: ...

    def knows(self, program: ir.Program, step: ir.Step, layouts: Layouts, /) -> bool:
        """Whether what it said of this step was measured, and no estimate."""
        ...


class CostSource(StepCost, Protocol):
    """What everything costs that a plan is made of: steps, reorders, copies."""

    def reorder(
        self, program: ir.Program, value: int, layout: str, sources: Sequence[str], reader: Reader | None, /
    ) -> float:
        """Microseconds to have ``value`` in ``layout`` too.

        Parameters
        ----------
        sources : the layouts in which it may be given, the likeliest first.
        reader : a step that would read the result.
        """
        ...

    def copies(self, program: ir.Program, step: ir.Step, layouts: Layouts, /) -> float:
        """Microseconds of a concatenation or slice that copies all its pieces."""
        ...


@dataclass(frozen=True)
class ModelCost:
    """Costs by the model; see the module's text."""

    machine: Machine = Machine()
    measured: bool = False

    def __call__(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
        return step_cost(program, step, layouts, info, self.machine)

    def knows(self, _program: ir.Program, _step: ir.Step, _layouts: Layouts) -> bool:
        return False

    def reorder(
        self, program: ir.Program, value: int, layout: str, _sources: Sequence[str], _reader: Reader | None
    ) -> float:
        moved, plain = program.values[value], plain_layout(len(program.values[value].shape))
        return reorder_cost(value_bytes(moved, plain) + value_bytes(moved, layout), self.machine)

    def copies(self, program: ir.Program, step: ir.Step, layouts: Layouts) -> float:
        moved = pieces_bytes(program, step, layouts)
        start = REORDER_OVERHEAD_US if isinstance(step.attrs, ir.Slice) else 0.0
        return start + 2 * moved / self.machine.gbytes_per_s / 1e3


def step_cost(
    program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo, machine: Machine
) -> float:
    """Microseconds for one step."""
    wide = widened(program, step)
    if wide is not None:
        return time_share(program, step) * step_cost(wide, wide.steps[0], layouts, info, machine)
    moved = sum(
        value_bytes(program.values[value], layout)
        for (_, value), layout in zip(operands_of(step), layouts, strict=True)
    )
    transfer = (moved - min(moved, machine.cache_bytes) / 2) / machine.gbytes_per_s / 1e3
    if isinstance(step.attrs, ir.Convolution) and step.attrs.algorithm != "direct":
        return max(transfer, _winograd_cost(program, step, step.attrs, machine))
    reread = reread_weights_us(program, step, info, machine.cache_bytes, machine.gbytes_per_s)
    narrow = narrow_share() if machine.narrow_share is None else machine.narrow_share
    busy = max(arithmetic_us(program, step, layouts, info, machine.gflops, narrow), reread)
    if is_cast(program, step):
        return REORDER_OVERHEAD_US + transfer
    cost = max(transfer, busy + exposed_us(program, step, layouts, machine.gbytes_per_s))
    return cost * _REFERENCE_PENALTY if info.is_reference else cost


def _winograd_cost(program: ir.Program, step: ir.Step, attrs: ir.Convolution, machine: Machine) -> float:
    src, weights, dst = (program.values[step.operand(role)].shape for role in ("src", "weights", "dst"))
    return winograd_cost(
        attrs.algorithm,
        src[1],  # type: ignore[arg-type]
        dst,  # type: ignore[arg-type]
        machine.gflops,
        machine.gbytes_per_s,
        filter_size=weights[-1],  # type: ignore[arg-type]
        groups=attrs.groups,
    )


BY_MODEL = ModelCost()


def reorder_cost(moved: int, machine: Machine) -> float:
    """Microseconds of a conversion into another layout or type that reads and writes so many bytes."""
    return REORDER_OVERHEAD_US + moved / machine.gbytes_per_s / 1e3


def value_bytes(value: ir.Value, layout: str) -> int:
    """Bytes of a value in a layout, padding included."""
    return stored_bytes(value.shape, layout, value.dtype)


def pieces_bytes(program: ir.Program, step: ir.Step, layouts: Layouts) -> int:
    """Bytes that a concatenation or slice reads: those of its pieces, of which a slice has one."""
    pairs = list(zip(operands_of(step), layouts, strict=True))
    pieces = pairs[-1:] if isinstance(step.attrs, ir.Slice) else pairs[:-1]
    return sum(value_bytes(program.values[value], layout) for (_, value), layout in pieces)
