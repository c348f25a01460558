"""oneDNN's planner side as the library would answer on another machine."""

from __future__ import annotations

import numpy as np
import tvm

from tvm_mxplan.byoc.engine import Ask
from tvm_mxplan.core.description import Description
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir

from . import library
from .backend import OneDNN

_KEPT = 4096
"""Of a plan that is sent to be measured, how many numbers of each constant stand in for all."""


class OneDNNElsewhere(OneDNN):
    """oneDNN at the other end of ``ask``; equal programs are asked about once.

    Attributes
    ----------
    repeats_weights : whether modules get weights that repeat their own first numbers: they take as long, and
        a library with them is sent in a small part of the time.
    """

    def __init__(self, ask: Ask, isa: str) -> None:
        self._ask = ask
        self._isa = isa
        self._answers: dict[bytes, Description] = {}
        self.repeats_weights = False

    @property
    def isa(self) -> str:
        return self._isa

    def describe(self, program: ir.Program) -> Description:
        data = codec.encode(program)
        if data not in self._answers:
            self._answers[data] = library.read_description(self._ask("describe", data))
        return self._answers[data]

    def refuse(self, descriptor: str, implementation: str, reason: str) -> None:
        self._ask("refuse", descriptor, implementation, reason)
        self._answers.clear()

    def create_module(
        self, symbol: str, program: ir.Program, constants: list[tvm.runtime.Tensor]
    ) -> tvm.runtime.Module:
        if self.repeats_weights:
            constants = [_repeating(constant) for constant in constants]
        return super().create_module(symbol, program, constants)


def _repeating(constant: tvm.runtime.Tensor) -> tvm.runtime.Tensor:
    array = constant.numpy()
    return tvm.runtime.tensor(np.resize(array.reshape(-1)[:_KEPT], array.shape))
