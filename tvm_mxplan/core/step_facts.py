"""``StepFacts``: a step in given layouts as a library would run it, all that its cost depends on.

    facts = StepFacts(program, step, layouts, info)
    facts.shape("src"), facts.padded("dst"), facts.moved_bytes, facts.info.family

``layouts`` has one entry for each of :func:`operands_of`, in that order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from .description import NOTHING_KNOWN, StepInfo
from .element_types import stored_bytes
from .layout.layout import Layout, parse_layout
from .program import program as ir
from .program.operands import operands_of, reorder

Layouts: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class StepFacts:
    """One step; see the module's text.  Shapes are of numbers."""

    program: ir.Program
    step: ir.Step
    layouts: Layouts
    info: StepInfo = NOTHING_KNOWN

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """Roles of what the step touches, in the order of ``layouts``."""
        return tuple(role for role, _ in operands_of(self.step))

    def has(self, role: str) -> bool:
        """Whether the step has an operand with a role."""
        return role in self.roles

    def shape(self, role: str) -> tuple[int, ...]:
        """Logical shape of the operand with a role."""
        return self.program.values[self.step.operand(role)].shape  # type: ignore[return-value]

    def is_constant(self, role: str) -> bool:
        """Whether the operand with a role is the same in every call."""
        return self.program.values[self.program.root(self.step.operand(role))].kind == "constant"

    def layout(self, role: str) -> Layout:
        """Layout of the operand with a role."""
        return parse_layout(self.layouts[self.roles.index(role)])

    def padded(self, role: str) -> tuple[int, ...]:
        """Shape of the operand with a role, as it is stored."""
        return self.layout(role).padded_shape(self.shape(role))

    def dtype(self, role: str) -> str:
        """Element type of the operand with a role."""
        return self.program.values[self.step.operand(role)].dtype

    @cached_property
    def operand_bytes(self) -> tuple[int, ...]:
        """Bytes of each operand as it is stored, in the order of ``layouts``."""
        values = (self.program.values[number] for _, number in operands_of(self.step))
        return tuple(
            stored_bytes(value.shape, layout, value.dtype)
            for value, layout in zip(values, self.layouts, strict=True)
        )

    @property
    def moved_bytes(self) -> int:
        """Bytes of all operands together."""
        return sum(self.operand_bytes)

    @cached_property
    def constant_bytes(self) -> int:
        """Bytes of weights and parameters, which are the same in every call."""
        return sum(
            nbytes
            for (_, number), nbytes in zip(operands_of(self.step), self.operand_bytes, strict=True)
            if self.program.values[self.program.root(number)].kind == "constant"
        )

    @property
    def image_bytes(self) -> int:
        """Bytes of all that is no constant."""
        return self.moved_bytes - self.constant_bytes

    @property
    def pieces_bytes(self) -> int:
        """Bytes that a concatenation or slice reads: those of its pieces, of which a slice has one."""
        sliced = isinstance(self.step.attrs, ir.Slice)
        return sum(self.operand_bytes[1:] if sliced else self.operand_bytes[:-1])


def reorder_facts(shape: tuple[int, ...], dtype: str, source: str, target: str) -> StepFacts:
    """The conversion of a value from one layout into another."""
    values = (
        ir.Value("", shape, dtype, "input", source, 0),
        ir.Value("", shape, dtype, "local", target),
    )
    step = reorder("", 0, 1)
    return StepFacts(ir.Program("", values, (step,)), step, (source, target))
