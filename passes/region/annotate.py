"""Notes in a program the backend's answers about its steps: who runs each step, and in how many bytes.

Before   steps without implementations, or with those of an earlier form of the program
After    implementations, also refused ones, and scratchpads of every step, bytes of every value

A step that has nothing left to run, such as a concat whose pieces stand in place, has no implementation and
no scratchpad.
"""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import is_static
from tvm_mxplan.core.program.specialize import typical


def annotate(program: ir.Program, backend: Backend) -> ir.Program:
    """Fill in implementations, bytes and scratchpads from the backend's own answer.

    Programs with symbolic shapes get implementations only: those of typical shapes.
    """
    description = backend.describe(typical(program))
    if not all(is_static(value.shape) for value in program.values):
        steps = tuple(
            replace(step, implementation=info.implementation, refused=_names(info))
            for step, info in zip(program.steps, description.steps, strict=True)
        )
        return replace(program, steps=steps)
    steps = tuple(
        replace(
            step,
            implementation=info.implementation,
            scratchpad_bytes=info.scratchpad_bytes,
            refused=_names(info),
        )
        for step, info in zip(program.steps, description.steps, strict=True)
    )
    values = tuple(
        replace(value, nbytes=info.nbytes)
        for value, info in zip(program.values, description.values, strict=True)
    )
    return replace(program, steps=steps, values=values)


def _names(info: StepInfo) -> tuple[str, ...]:
    return tuple(refused.implementation for refused in info.refused)
