"""Programs of one step each, as cuDNN's backend makes them of composites."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from tvm_mxplan.byoc.cudnn.layout_rules import filters_layout
from tvm_mxplan.byoc.cudnn.rewrites.integers import adding
from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.byoc.rewrites.quantized.forms import Numbers
from tvm_mxplan.core.layout.layout import channels_last, plain_layout
from tvm_mxplan.core.program import program as ir


@dataclass(frozen=True)
class Case:
    """A convolution of images, and what stands behind it.

    Attributes
    ----------
    image : N, C, H, W.
    window, stride, groups : the same along both axes; padding keeps the size at stride 1.
    behind : names of what follows: bias, residual, and algorithms of elementwise functions.
    types : element types that cuDNN has it in.
    """

    name: str
    image: tuple[int, int, int, int]
    outputs: int
    window: int = 3
    stride: int = 1
    groups: int = 1
    behind: tuple[str, ...] = ("bias", "relu")
    types: tuple[str, ...] = ("float16", "float32")

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
            ir.EltwisePostOp(name, 1.0 if name == "swish" else 0.0, 0.0)
            for name in self.behind
            if name not in ("bias", "residual")
        ]
        operands.append(ir.Operand("dst", len(values)))
        values.append(ir.Value("y", result, dtype, "local", channels_last(4)))
        attrs = ir.Convolution((self.stride,) * 2, (pad,) * 4, (1, 1), self.groups)
        step = ir.Step(self.name, attrs, tuple(operands), tuple(post_ops))
        return ir.Program("case", tuple(values), (step,))


@dataclass(frozen=True)
class Single:
    """A step of any kind with plain tensors, or images channels last.

    Attributes
    ----------
    operands : roles, shapes and layouts; '' is a plain one, and ``last`` an image channels last.
    result : shape and layout.
    types : element types that cuDNN has it in.
    """

    name: str
    attrs: ir.Attributes
    operands: tuple[tuple[str, tuple[int, ...], str], ...]
    result: tuple[tuple[int, ...], str]
    post_ops: tuple[ir.PostOp, ...] = ()
    types: tuple[str, ...] = ("float16", "float32")

    def program(self, dtype: str) -> ir.Program:
        """The step alone."""
        values = [
            ir.Value(role, shape, dtype, "input", _layout(layout, len(shape)), at)
            for at, (role, shape, layout) in enumerate(self.operands)
        ]
        shape, layout = self.result
        values.append(ir.Value("y", shape, dtype, "local", _layout(layout, len(shape))))
        named = [role for role, _, _ in self.operands if role != "post_op"]
        operands = [ir.Operand(role, at) for at, role in enumerate(named)]
        operands.append(ir.Operand("dst", len(values) - 1))
        step = ir.Step(self.name, self.attrs, tuple(operands), self.post_ops)
        return ir.Program("case", tuple(values), (step,))


@dataclass(frozen=True)
class Integers:
    """A convolution of integers between conversions, as a quantised network has it.

    Attributes
    ----------
    image, window, stride, groups : as a ``Case``'s.
    zero_point : of what is read; with padding it adds a number for each place.
    residual : integers that are added.
    result : type of what is written.
    """

    name: str
    image: tuple[int, int, int, int]
    outputs: int
    window: int = 3
    stride: int = 1
    groups: int = 1
    zero_point: bool = False
    residual: bool = False
    result: str = "int8"
    types: tuple[str, ...] = ("int8",)

    def program(self, _dtype: str) -> ir.Program:
        """The step alone, as rewriting leaves it, channels last."""
        graph = Graph(
            Case("", self.image, self.outputs, self.window, self.stride, self.groups).program("int8"), []
        )
        first = graph.steps[0]
        assert first is not None
        values = {one.role: one.value for one in first.operands}
        graph.values[values["bias"]] = replace(graph.values[values["bias"]], dtype="float32")
        graph.values[values["dst"]] = replace(graph.values[values["dst"]], dtype=self.result)
        roles = [("src_scale", (1,)), ("weights_scale", (self.outputs,))]
        roles += [("dst_scale", (1,))] if self.result == "int8" else []
        added = [ir.Operand(role, graph.add_constant(np.ones(shape), f"{role}")) for role, shape in roles]
        made = replace(first, operands=(*first.operands[:-1], *added, first.operands[-1]))
        if self.zero_point:
            made = replace(made, post_ops=(ir.BinaryPostOp("add", self._map(graph, made)), *made.post_ops))
        if self.residual:
            numbers = Numbers((0.5,), (3,), added[0].value)
            other = graph.add(replace(graph.values[made.dst], name="r", dtype="int8", kind="input", index=1))
            made = replace(made, post_ops=(*adding(graph, made, other, numbers), *made.post_ops))
        return replace(graph.program, values=tuple(graph.values), steps=(made,))

    @staticmethod
    def _map(graph: Graph, step: ir.Step) -> int:
        images, channels, height, width = graph.values[step.dst].shape
        array = np.zeros((images, height, width, channels))  # type: ignore[arg-type]
        last = graph.add_constant(array, "zero")
        shape = (images, channels, height, width)
        return graph.add(ir.Value("zero", shape, "float32", "local", channels_last(4), alias_of=last))


@dataclass(frozen=True)
class Conversion:
    """Real numbers into integers, back, or integers into others."""

    name: str
    source: str
    result: str
    types: tuple[str, ...] = ("int8",)

    def program(self, _dtype: str) -> ir.Program:
        image = channels_last(4)
        values = [
            ir.Value("x", _IMAGE, self.source, "input", image, 0),
            ir.Value("y", _IMAGE, self.result, "local", image),
        ]
        operands = [ir.Operand("src", 0)]
        for side, dtype in (("src", self.source), ("dst", self.result)):
            for role, kind in (("scale", "float32"), ("zero_point", "int32")):
                if dtype != "float32":
                    operands.append(ir.Operand(f"{side}_{role}", len(values)))
                    values.append(ir.Value(role, (1,), kind, "constant", "a", len(values)))
        step = ir.Step(self.name, ir.Quantization(0), (*operands, ir.Operand("dst", 1)))
        return ir.Program("case", tuple(values), (step,))


AnyCase: TypeAlias = "Case | Single | Integers | Conversion"


def _layout(name: str, rank: int) -> str:
    return channels_last(rank) if name == "last" else name or plain_layout(rank)


_IMAGE, _HALVED, _BATCH = (1, 64, 56, 56), (1, 64, 28, 28), (8, 64, 28, 28)


def _pool(name: str, algorithm: str, window: int, stride: int, pad: int, side: int) -> Single:
    attrs = ir.Pooling(algorithm, (window,) * 2, (stride,) * 2, (pad,) * 2, (1, 1))
    return Single(name, attrs, (("src", _IMAGE, "last"),), ((1, 64, side, side), "last"))


def _transposed(name: str, post_ops: tuple[ir.PostOp, ...] = ()) -> Single:
    bias = (("bias", (32,), ""),) if post_ops else ()
    operands = (("src", _HALVED, "last"), ("weights", (32, 64, 2, 2), "bcda"), *bias)
    attrs = ir.Deconvolution((2, 2), (0, 0, 0, 0), (1, 1), 1)
    return Single(name, attrs, operands, ((1, 32, 56, 56), "last"), post_ops)


def _attention(name: str, causal: str, mask: bool) -> Single:
    heads = (1, 12, 197, 64)
    operands = [(role, heads, "") for role in ("src", "key", "value")]
    if mask:
        operands.append(("mask", (1, 1, 197, 197), ""))
    attrs = ir.Attention(0.125, causal)  # type: ignore[arg-type]
    return Single(name, attrs, tuple(operands), ((1, 197, 12, 64), ""), types=("float16",))


_ROWS, _NUMBERS = (197, 768), (768,)
_GELU = ir.EltwisePostOp("gelu_erf", 0.0, 0.0)

CASES: tuple[AnyCase, ...] = (
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
    Case(
        "product of two tensors, 6 heads",
        (197, 384, 1, 1),
        6 * 197,
        window=1,
        groups=6,
        behind=(),
        types=("float32",),
    ),
    Case("depthwise", (1, 96, 56, 56), 96, groups=96),
    Case("dense, 2048 to 1000", (1, 2048, 1, 1), 1000, window=1, behind=("bias",)),
    Case("dense of 128 rows, 768 to 3072", (128, 768, 1, 1), 3072, window=1, behind=("bias",)),
    Case("3x3, bias, swish", (1, 64, 56, 56), 64, behind=("bias", "swish")),
    Case("depthwise, bias, swish", (1, 96, 56, 56), 96, groups=96, behind=("bias", "swish")),
    Case("dense of 197 rows, 768 to 3072, gelu", (197, 768, 1, 1), 3072, 1, behind=("bias", "gelu_erf")),
    _transposed("transposed 2x2, stride 2"),
    _transposed("and bias, relu", (ir.EltwisePostOp("relu", 0.0, 0.0),)),
    Single(
        "gradient of 3x3 filters",
        ir.ConvolutionBackwardWeights((1, 1), (1, 1, 1, 1), (1, 1), 1),
        (("src", _IMAGE, "last"), ("gradient", _IMAGE, "last")),
        ((64, 64, 3, 3), "last"),
    ),
    Single(
        "gradient of average pool 2x2",
        ir.Deconvolution((2, 2), (0, 0, 0, 0), (1, 1), 64),
        (("src", _HALVED, "last"), ("weights", (64, 1, 1, 2, 2), filters_layout(5, True, True))),
        (_IMAGE, "last"),
    ),
    _pool("max pool 3x3, stride 2", "max", 3, 2, 1, 28),
    _pool("average pool 3x3, padded", "avg_exclude_padding", 3, 1, 1, 56),
    _pool("average of an image", "avg_exclude_padding", 56, 56, 0, 1),
    Single(
        "product of two tensors, 12 heads",
        ir.MatMul(),
        (("src", (1, 12, 197, 64), ""), ("weights", (1, 12, 64, 197), "")),
        ((1, 12, 197, 197), ""),
        types=("float16",),
    ),
    Single(
        "and a number",
        ir.MatMul(),
        (("src", (1, 12, 197, 64), ""), ("weights", (1, 12, 64, 197), "")),
        ((1, 12, 197, 197), ""),
        (ir.EltwisePostOp("linear", 0.125, 0.0),),
        ("float16",),
    ),
    _attention("attention, 12 heads", "no", False),
    _attention("and a mask", "no", True),
    _attention("causal attention", "first", False),
    Single(
        "layer norm, 768 channels",
        ir.LayerNormalization(1e-5),
        (("src", _ROWS, ""), ("scale", _NUMBERS, ""), ("shift", _NUMBERS, "")),
        (_ROWS, ""),
    ),
    Single(
        "group norm, 8 groups of 8 channels",
        ir.LayerNormalization(1e-5),
        (("src", (8, 25088), ""), ("scale", (25088,), ""), ("shift", (25088,), "")),
        ((8, 25088), ""),
    ),
    Single("sum of rows", ir.Reduction("sum"), (("src", _ROWS, ""),), ((197, 1), ""), types=("float32",)),
    Single("gelu", ir.Eltwise("gelu_erf", 0.0, 0.0), (("src", _IMAGE, "last"),), (_IMAGE, "last")),
    Single(
        "sum of two, then gelu",
        ir.Binary("add"),
        (("src", _IMAGE, "last"), ("src1", _IMAGE, "last")),
        (_IMAGE, "last"),
        (_GELU,),
    ),
    Single(
        "times numbers for each channel",
        ir.Binary("mul"),
        (("src", _IMAGE, "last"), ("src1", (1, 64, 1, 1), "last")),
        (_IMAGE, "last"),
    ),
    Single(
        "batch norm in training",
        ir.BatchNormalizationTraining(1e-5, inverse=True),
        (
            ("src", _BATCH, "last"),
            ("scale", (64,), ""),
            ("shift", (64,), ""),
            ("batch_mean", (64,), ""),
            ("batch_variance", (64,), ""),
        ),
        (_BATCH, "last"),
        types=("float32",),
    ),
    Single(
        "its gradients",
        ir.BatchNormalizationBackward(1e-5, inverse=True),
        (
            ("src", _BATCH, "last"),
            ("gradient", _BATCH, "last"),
            ("mean", (64,), ""),
            ("variance", (64,), ""),
            ("scale", (64,), ""),
            ("scale_gradient", (64,), ""),
            ("shift_gradient", (64,), ""),
        ),
        (_BATCH, "last"),
        types=("float32",),
    ),
    Integers("integers: 1x1, 256 to 64, relu", (1, 256, 56, 56), 64, window=1),
    Integers("3x3, 64 channels, a zero point", (1, 64, 56, 56), 64, zero_point=True),
    Integers("and integers added", (1, 64, 56, 56), 64, zero_point=True, residual=True),
    Integers("the same of 8 images", (8, 64, 56, 56), 64, zero_point=True, residual=True),
    Integers("to float32", (1, 64, 56, 56), 64, result="float32"),
    Integers("7x7, stride 2, 3 channels", (1, 3, 224, 224), 64, window=7, stride=2, zero_point=True),
    Integers("3x3, 17 to 67 channels", (2, 17, 28, 28), 67),
    Integers("4 groups", (1, 64, 56, 56), 64, groups=4),
    Integers("dense, 2048 to 1000", (1, 2048, 1, 1), 1000, window=1, result="float32"),
    Conversion("float32 to int8", "float32", "int8"),
    Conversion("int8 to float32", "int8", "float32"),
    Conversion("uint8 to int8 of another scale", "uint8", "int8"),
    Single(
        "maximum of integers, 2x2",
        ir.Pooling("max", (2, 2), (2, 2), (0, 0), (1, 1)),
        (("src", _IMAGE, "last"),),
        (_HALVED, "last"),
        types=("int8",),
    ),
)
