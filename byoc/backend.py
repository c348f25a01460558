"""The protocol between the passes and a backend: all that passes know of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.core.description import Description, Implementation
from tvm_mxplan.core.layout.layout_registry import LayoutRegistry
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program.program import Program
from tvm_mxplan.core.step_facts import StepFacts

Refuse: TypeAlias = Callable[[str, str], None]
"""Is told of an operator, as Relax calls it, that a check refused, and why."""

Fused: TypeAlias = Mapping[str, str]
"""Names of the steps that run inside others, by their own."""


class Translation(NamedTuple):
    """A region as a program, its constants by their index, and the steps that others took in."""

    program: Program
    constants: list[np.ndarray]
    fused: Fused = MappingProxyType({})


class Backend(Protocol):
    """What a library offers to the planner.

    Attributes
    ----------
    library : what targets, options and reports call it.
    name : name of the external code generator, which regions bear as their attribute ``Codegen``.
    block : channels in one block of its blocked layouts on this machine.
    takes_arena : its modules work in an arena that the caller lends, behind inputs and outputs.
    """

    @property
    def library(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def block(self) -> int: ...

    def layouts(self) -> LayoutRegistry:
        """The layouts it knows by name, with converters between them."""
        ...

    @property
    def takes_arena(self) -> bool: ...

    def patterns(self, refuse: Refuse) -> list[relax.transform.FusionPattern]:
        """Composites in order of preference; a check that refuses an operator tells ``refuse`` why."""
        ...

    def translate(self, region: relax.Function, name: str) -> Translation:
        """The region as a program in plain layouts, fused as this library fuses."""
        ...

    def describe(self, program: Program) -> Description:
        """What the library would do: implementations, layouts, bytes; nothing is executed."""
        ...

    def implementation(self, name: str) -> Implementation:
        """What the name of one of its implementations says of it."""
        ...

    def cost(self, facts: StepFacts, machine: MachineRates) -> float:
        """Microseconds of a step on a machine, by the library's own model; nothing is executed.

        A reorder takes what its conversion takes, a concatenation or slice what copying all its pieces does.
        ``byoc.roofline`` has the beginnings of a model.
        """
        ...

    def refuse(self, descriptor: str, implementation: str, reason: str) -> None:
        """Keep steps of this descriptor (``StepInfo.descriptor``) from running an implementation from now on.

        It holds for the process that answers; the next best implementation is taken there.
        """
        ...

    def create_module(
        self, symbol: str, program: Program, constants: list[tvm.runtime.Tensor]
    ) -> tvm.runtime.Module:
        """The runtime module that executes the program under the name ``symbol``."""
        ...

    def trial(self, program: Program, constants: list[np.ndarray]) -> Callable[..., object]:
        """A function that executes the program on inputs, then outputs, of their physical shapes.

        It is for a few calls: what it packs is kept for nobody else.
        """
        ...

    def modules_to_export(self, module: tvm.runtime.Module) -> list[tvm.runtime.Module]:
        """A module of :meth:`create_module`, and what is exported beside it: say, its weights as data."""
        ...
