"""The protocol between the passes and a backend: all that passes know of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.core.description import Description
from tvm_mxplan.core.program import Program, Step


class Backend(Protocol):
    """What a library offers to the planner.

    Attributes
    ----------
    name : name of the external code generator; ``relax.ext.<name>`` must be registered under it.
    """

    name: str

    def patterns(self, rejections: dict[str, str]) -> list[relax.transform.FusionPattern]:
        """Composites in order of preference; checks note why an operator was refused, by operator."""
        ...

    def translate(self, region: relax.Function, name: str) -> tuple[Program, list[np.ndarray]]:
        """The region as a program in plain layouts, fused as this library fuses, and its constants."""
        ...

    def layouts(self, step: Step, program: Program) -> Sequence[str]:
        """Layouts worth asking for on the image operands of ``step``, best guess first."""
        ...

    def describe(self, program: Program) -> Description:
        """What the library would do: implementations, layouts, bytes; nothing is executed."""
        ...

    def create_module(self, symbol: str, program: Program, constants: list[np.ndarray]) -> tvm.runtime.Module:
        """The runtime module that executes the program under the name ``symbol``."""
        ...
