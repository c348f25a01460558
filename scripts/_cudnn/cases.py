"""Programs of one convolution or product each, as cuDNN's backend makes them of composites."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tvm_mxplan.byoc.cudnn.layout_rules import filters_layout
from tvm_mxplan.core.layout.layout import channels_last
from tvm_mxplan.core.program import program as ir


@dataclass(frozen=True)
class Case:
    """A convolution of images, and what stands behind it.

    Attributes
    ----------
    image : N, C, H, W.
    window, stride, groups : the same along both axes; padding keeps the size at stride 1.
    behind : names of what follows: bias, residual, relu, logistic, tanh.
    """

    name: str
    image: tuple[int, int, int, int]
    outputs: int
    window: int = 3
    stride: int = 1
    groups: int = 1
    behind: tuple[str, ...] = ("bias", "relu")

    def program(self, dtype: str) -> ir.Program:
        """The step alone, channels last."""
        batch, channels, height, width = self.image
        pad = self.window // 2
        size = [(extent + 2 * pad - self.window) // self.stride + 1 for extent in (height, width)]
        result = (batch, self.outputs, *size)
        filters: tuple[int, ...] = (self.outputs, channels // self.groups, self.window, self.window)
        if self.groups > 1:
            filters = (self.groups, self.outputs // self.groups, *filters[1:])
        values = [
            ir.Value("x", self.image, dtype, "input", channels_last(4), 0),
            ir.Value("w", filters, dtype, "constant", filters_layout(len(filters), self.groups > 1), 0),
        ]
        operands = [ir.Operand("src", 0), ir.Operand("weights", 1)]
        post_ops: list[ir.PostOp] = []
        if "bias" in self.behind:
            operands.append(ir.Operand("bias", len(values)))
            values.append(ir.Value("b", (self.outputs,), dtype, "constant", "a", 1))
        if "residual" in self.behind:
            post_ops.append(ir.BinaryPostOp("add", len(values)))
            values.append(ir.Value("z", result, dtype, "input", channels_last(4), 1))
        post_ops += [
            ir.EltwisePostOp(name, 0.0, 0.0) for name in self.behind if name in ("relu", "logistic", "tanh")
        ]
        operands.append(ir.Operand("dst", len(values)))
        values.append(ir.Value("y", result, dtype, "local", channels_last(4)))
        attrs = ir.Convolution((self.stride,) * 2, (pad,) * 4, (1, 1), self.groups)
        step = ir.Step(self.name, attrs, tuple(operands), tuple(post_ops))
        return ir.Program("case", tuple(values), (step,))

    @property
    def multiply_adds(self) -> int:
        result = self.program("float32").values[-1].shape
        return int(np.prod(result)) * self.image[1] // self.groups * self.window**2  # type: ignore[arg-type]


CASES = (
    Case("3x3, 64 channels", (1, 64, 56, 56), 64, behind=()),
    Case("and bias", (1, 64, 56, 56), 64, behind=("bias",)),
    Case("and bias, relu", (1, 64, 56, 56), 64),
    Case("and bias, residual", (1, 64, 56, 56), 64, behind=("bias", "residual")),
    Case("and bias, residual, relu", (1, 64, 56, 56), 64, behind=("bias", "residual", "relu")),
    Case("and bias, sigmoid", (1, 64, 56, 56), 64, behind=("bias", "logistic")),
    Case("and bias, tanh", (1, 64, 56, 56), 64, behind=("bias", "tanh")),
    Case("1x1, 256 to 64", (1, 256, 56, 56), 64, window=1),
    Case("1x1, stride 2", (1, 256, 56, 56), 512, window=1, stride=2),
    Case("7x7, stride 2, 3 channels", (1, 3, 224, 224), 64, window=7, stride=2),
    Case("3x3, 17 to 67 channels", (2, 17, 28, 28), 67),
    Case("3x3, 512 channels, 7x7 pixels", (8, 512, 7, 7), 512),
    Case("4 groups", (1, 64, 56, 56), 64, groups=4),
    Case("depthwise", (1, 96, 56, 56), 96, groups=96),
    Case("dense, 2048 to 1000", (1, 2048, 1, 1), 1000, window=1, behind=("bias",)),
    Case("dense of 128 rows, 768 to 3072", (128, 768, 1, 1), 3072, window=1, behind=("bias",)),
)
