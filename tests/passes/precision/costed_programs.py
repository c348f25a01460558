"""Programs of a few steps, costs by hand, a library that refuses some: for tests of the choice of types."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tvm_mxplan.core.description import Description, StepInfo, ValueInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.passes.precision.step_types import StepTypes

WIDE, SHORT = "float32", "bfloat16"
F, S, TO_WIDE, TO_SHORT = StepTypes(), StepTypes(SHORT, SHORT), StepTypes(SHORT, WIDE), StepTypes(WIDE, SHORT)
IMAGE = (1, 7, 5, 3)
CAST = 2.0
RELU, TANH = (ir.EltwisePostOp(name, 0.0, 0.0) for name in ("relu", "tanh"))


class Library:
    """Takes every step but those whose kind and result's type are listed."""

    def __init__(self, refused: Mapping[tuple[str, str], str]) -> None:
        self.refused = refused

    def describe(self, program: ir.Program) -> Description:
        (step,) = program.steps
        reason = self.refused.get((step.kind, program.values[step.dst].dtype), "")
        slow = reason == "slow"
        info = StepInfo("code", 0, 0, "" if slow else reason, is_reference=slow)
        return Description((info,), tuple(ValueInfo(v.layout, 0) for v in program.values))


class Costs:
    """By kind and type of what is read; a cast costs the same for every value."""

    measured = False

    def __init__(self, table: Mapping[tuple[str, str], float]) -> None:
        self.table = table

    def __call__(self, program, step, _layouts, _info) -> float:
        src, dst = program.values[step.operand("src")].dtype, program.values[step.dst].dtype
        if step.kind == "reorder" and src != dst:
            return CAST
        return self.table[step.kind, src]

    def knows(self, *_) -> bool:
        return False


COSTS = {
    ("matmul", WIDE): 10.0,
    ("matmul", SHORT): 5.0,
    ("eltwise", WIDE): 3.0,
    ("eltwise", SHORT): 3.5,
    ("softmax", WIDE): 4.0,
    ("softmax", SHORT): 4.0,
    ("layer_normalization", WIDE): 3.0,
    ("layer_normalization", SHORT): 3.4,
}


class Small(ProgramBuilder):
    """Steps on rows of nine numbers."""

    def __init__(self) -> None:
        super().__init__("p")
        self.x = self.port("input", "x", (4, 9), WIDE)

    def matmul(self, src: int) -> int:
        weights = self.constant(np.full((9, 9), len(self.steps) + 0.5, "float32"))
        return self.step("matmul", ir.MatMul(), (4, 9), [("src", src), ("weights", weights)])

    def exp(self, src: int) -> int:
        return self.step("exp", ir.Eltwise("exp", 0.0, 0.0), (4, 9), [("src", src)])

    def softmax(self, src: int) -> int:
        return self.step("softmax", ir.Softmax("softmax", 1), (4, 9), [("src", src)])

    def norm(self, src: int) -> int:
        return self.step("norm", ir.LayerNormalization(1e-5), (4, 9), [("src", src)])

    def done(self, value: int) -> ir.Program:
        self.write_output(value, self.port("output", "y", (4, 9), WIDE))
        return self.finish()


def pair(
    before: tuple[ir.PostOp, ...], behind: tuple[ir.PostOp, ...], batch: int = 2, biased: bool = True
) -> ir.Program:
    """A pointwise convolution of 8 channels to 24, then a depthwise one of stride 2 on 11 x 7."""
    values = (
        ir.Value("x", (batch, 8, 11, 7), "float32", "input", "abcd", 0),
        ir.Value("w", (24, 8, 1, 1), "float32", "constant", "abcd", 0),
        ir.Value("v", (24,), "float32", "constant", "a", 1),
        ir.Value("d", (24, 1, 1, 3, 3), "float32", "constant", "abcde", 2),
        ir.Value("e", (24,), "float32", "constant", "a", 3),
        ir.Value("y", (batch, 24, 6, 4), "float32", "output", "abcd", 0),
        ir.Value("z", (batch, 24, 6, 4), "float32", "output", "abcd", 1),
    )
    roles = [("src", 0), ("weights", 1), ("dst", 5), ("depthwise_weights", 3)]
    roles += [("bias", 2), ("depthwise_bias", 4)] if biased else []
    operands = tuple(ir.Operand(*one) for one in roles)
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    step = ir.Step("c", attrs, operands, (*before, ir.DepthwisePostOp(3, 2, 1), *behind))
    last = ir.Step("last", ir.Reorder(), (ir.Operand("src", 5), ir.Operand("dst", 6)))
    return ir.Program("p", values, (step, last))
