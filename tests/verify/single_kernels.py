"""Kernels of one step, as a plan would have them, and backends that compute something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.kernel import Kernel, kernels_of
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.program import program as ir

Array = np.ndarray[Any, np.dtype[Any]]
RELU = ir.EltwisePostOp("relu", 0.0, 0.0)
RELU6 = ir.EltwisePostOp("clip_v2", 0.0, 6.0)
GELU = ir.EltwisePostOp("gelu_erf", 0.0, 0.0)
LAST = "acdb"


def kernel(
    attrs: ir.Attributes,
    dst: tuple[tuple[int, ...], str],
    post_ops: Sequence[ir.PostOp] = (),
    **operands: tuple[tuple[int, ...], str] | Sequence[tuple[tuple[int, ...], str]],
) -> Kernel:
    """A kernel by shapes and layouts ('' for plain); ``weights`` and ``bias`` are constants.

    ``added`` is what binary post-ops read, all of them; it is no role of the step.
    """
    values: list[ir.Value] = []

    def value(kind: ir.ValueKind, shape: tuple[int, ...], layout: str) -> int:
        index = sum(other.kind == kind for other in values)
        values.append(ir.Value("", shape, "float32", kind, layout or plain_layout(len(shape)), index))
        return len(values) - 1

    roles: list[ir.Operand] = []
    for role, given in operands.items():
        several = [given] if isinstance(given[0], tuple) and isinstance(given[1], str) else given
        constant = role not in ("src", "src1", "added")
        for shape, layout in several:  # type: ignore[misc]
            roles.append(ir.Operand(role, value("constant" if constant else "input", shape, layout)))
    added = [operand.value for operand in roles if operand.role == "added"]
    behind = tuple(
        replace(post_op, value=added[0]) if isinstance(post_op, ir.BinaryPostOp) else post_op
        for post_op in post_ops
    )
    kept = [operand for operand in roles if operand.role != "added"]
    kept.append(ir.Operand("dst", value("output", *dst)))
    program = ir.Program("", tuple(values), (ir.Step("", attrs, tuple(kept), behind),))
    info = library.describe(program).steps[0]
    assert not info.error, info.error
    (step,) = program.steps
    ((_, found),) = kernels_of(replace(program, steps=(replace(step, implementation=info.implementation),)))
    return found


def convolution(
    channels: tuple[int, int] = (35, 17),
    size: tuple[int, int] = (9, 11),
    layout: str = LAST,
    post_ops: Sequence[ir.PostOp] = (RELU,),
    batch: int = 1,
    taps: int = 3,
) -> Kernel:
    inputs, outputs = channels
    pad = taps // 2
    return kernel(
        ir.Convolution((1, 1), (pad,) * 4, (1, 1), 1),
        ((batch, outputs, *size), layout),
        post_ops,
        src=((batch, inputs, *size), layout),
        weights=((outputs, inputs, taps, taps), ""),
        bias=((outputs,), ""),
    )


class Faulty(OneDNN):
    """oneDNN with a fault in kernels of some implementations.

    Parameters
    ----------
    spoil : changes what such a kernel has written, in its physical shape.
    wrong : whether an implementation is at fault.
    """

    def __init__(
        self, spoil: Callable[[Array], None], wrong: Callable[[str], bool] = lambda name: True
    ) -> None:
        self.spoil = spoil
        self.wrong = wrong
        self.ran: list[str] = []

    def trial(self, program: ir.Program, constants: list[Array]) -> Callable[..., object]:
        function = super().trial(program, constants)
        implementation = program.steps[0].implementation

        def run(*arrays: Array) -> None:
            function(*arrays)
            self.ran.append(implementation)
            if self.wrong(implementation):
                self.spoil(arrays[-1])

        return run
