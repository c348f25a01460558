"""Operators of Relay in text, held against numpy, onnxruntime or ONNX's reference: many in one function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.frontend.relay import parser
from tvm_mxplan.frontend.relay.attributes import _NAMED as NAMED
from tvm_mxplan.frontend.relay.attributes import TYPES
from tvm_mxplan.frontend.relay.converters.table import TABLE
from tvm_mxplan.frontend.relay.importer import import_program

RANDOM = np.random.default_rng(23)
X = RANDOM.standard_normal((2, 6, 7, 5), np.float32)
Y = RANDOM.standard_normal((2, 6, 7, 5), np.float32)
M = RANDOM.standard_normal((3, 5), np.float32)
V = RANDOM.standard_normal((6,), np.float32)
I = RANDOM.integers(-4, 4, (3, 5)).astype(np.int32)  # noqa: E741
K = RANDOM.integers(0, 3, (2, 3)).astype(np.int64)
W = RANDOM.standard_normal((4, 3, 3, 3), np.float32)
D = RANDOM.standard_normal((6, 4, 3, 3), np.float32)
QUICK = "llvm -opt-level=0"
VALUES = {"x": X, "y": Y, "m": M, "v": V, "i": I, "k": K, "w": W, "d": D}


@dataclass(frozen=True)
class Case:
    """An expression over the values above, and what it is."""

    text: str
    expected: Callable[[], np.ndarray]


def reference(operator: str, *arrays: np.ndarray, opset: int = 18, **attributes: Any) -> np.ndarray:
    """The results of ONNX's reference for one operator."""
    names = [f"x{index}" for index in range(len(arrays))]
    infos = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in zip(names, arrays, strict=True)
    ]
    node = onnx.helper.make_node(operator, names, ["out"], **attributes)
    out = onnx.helper.make_empty_tensor_value_info("out")
    graph = onnx.helper.make_graph([node], "one", infos, [out])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))[0]


def nhwc(array: np.ndarray) -> np.ndarray:
    return array.transpose(0, 2, 3, 1)


def softmax(array: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(array - array.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def norm(array: np.ndarray, axes: tuple[int, ...], epsilon: float = 1e-5) -> np.ndarray:
    centred = array - array.mean(axes, keepdims=True)
    return centred / np.sqrt(array.var(axes, keepdims=True) + epsilon)


def along(vector: np.ndarray, axis: int = 1, rank: int = 4) -> np.ndarray:
    return vector.reshape([-1 if at == axis else 1 for at in range(rank)])


def lrn(array: np.ndarray, size: int, axis: int, bias: float, alpha: float, beta: float) -> np.ndarray:
    squares = np.moveaxis(array**2, axis, 0)
    count = len(squares)
    totals = [squares[max(0, at - size // 2) : at + size // 2 + 1].sum(0) for at in range(count)]
    return array / (bias + alpha * np.moveaxis(np.stack(totals), 0, axis) / size) ** beta


UNARY = {
    "abs": np.abs,
    "ceil": np.ceil,
    "cos": np.cos,
    "erf": np.vectorize(math.erf),
    "exp": np.exp,
    "floor": np.floor,
    "negative": np.negative,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sign": np.sign,
    "sin": np.sin,
    "tanh": np.tanh,
    "trunc": np.trunc,
    "atan": np.arctan,
    "fast_tanh": np.tanh,
    "fast_exp": np.exp,
    "nn.relu": lambda x: np.maximum(x, 0),
    "copy": lambda x: x,
    "isnan": np.isnan,
}
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "greater": np.greater,
    "less_equal": np.less_equal,
    "not_equal": np.not_equal,
    "floor_divide": np.floor_divide,
}
ELEMENTWISE = [
    *(Case(f"{name}(%x)", lambda f=function: f(X)) for name, function in UNARY.items()),
    *(Case(f"{name}(%x, %y)", lambda f=function: f(X, Y)) for name, function in BINARY.items()),
    Case("sqrt(abs(%x))", lambda: np.sqrt(np.abs(X))),
    Case("rsqrt(add(abs(%x), 1f))", lambda: 1 / np.sqrt(np.abs(X) + 1)),
    Case("log(add(abs(%x), 0.5f))", lambda: np.log(np.abs(X) + 0.5)),
    Case("power(abs(%x), 2.5f)", lambda: np.abs(X) ** 2.5),
    Case("add(%i, -7)", lambda: I - 7),
    Case("bitwise_and(%i, 3)", lambda: I & 3),
    Case("left_shift(%i, 2)", lambda: I << 2),
    Case("logical_not(less(%x, %y))", lambda: X >= Y),
    Case("logical_and(less(%x, %y), greater(%x, 0f))", lambda: (X < Y) & (X > 0)),
    Case("clip(%x, a_min=-0.5f, a_max=0.75f)", lambda: np.clip(X, -0.5, 0.75)),
    Case("clip(%i, a_min=-2f, a_max=6e+10f)", lambda: np.clip(I, -2, None)),
    Case("nn.leaky_relu(%x)", lambda: np.where(X > 0, X, np.float32(0.25) * X)),
    Case("nn.leaky_relu(%x, alpha=0.03f)", lambda: np.where(X > 0, X, np.float32(0.03) * X)),
    Case("nn.prelu(%x, %v)", lambda: np.where(X > 0, X, along(V) * X)),
    Case("nn.prelu(%m, take(%m, 0, axis=0), axis=-1)", lambda: np.where(M > 0, M, M[0] * M)),
    Case('cast(%x, dtype="int32")', lambda: X.astype(np.int32)),
    Case("cast_like(%i, %m)", lambda: I.astype(np.float32)),
    Case("where(less(%x, %y), %x, %y)", lambda: np.minimum(X, Y)),
    Case("where(%i, %m, 0f)", lambda: np.where(I != 0, M, 0).astype(np.float32)),
    Case("nn.dropout(%x, rate=0.3f).0", lambda: X),
    Case("nn.dropout(%m).1", lambda: np.ones_like(M)),
    Case("trunc_mod(%i, 3)", lambda: np.fmod(I, 3)),
    Case("trunc_divide(%x, 0.25f)", lambda: np.trunc(X / 0.25)),
]
SHAPES = [
    Case("reshape(%x, newshape=[0, -1])", lambda: X.reshape(2, -1)),
    Case("reshape(%x, newshape=[-3, -2])", lambda: X.reshape(12, 7, 5)),
    Case("reshape(%x, newshape=[0, -4, 2, -1, -2])", lambda: X.reshape(2, 2, 3, 7, 5)),
    Case("reshape(%x, newshape=[-4, -1, 2, -3, 0])", lambda: X.reshape(1, 2, 42, 5)),
    Case("contrib_reverse_reshape(%x, newshape=[-1, 0])", lambda: X.reshape(-1, 5)),
    Case("reshape_like(%x, reshape(%y, newshape=[-1, 5]))", lambda: X.reshape(-1, 5)),
    Case("transpose(%x, axes=[0, 2, 3, 1])", lambda: nhwc(X)),
    Case("transpose(%m, axes=None)", lambda: M.T),
    Case("expand_dims(%m, axis=1, num_newaxis=2)", lambda: M[:, None, None]),
    Case("expand_dims(%m, axis=-1)", lambda: M[..., None]),
    Case("squeeze(reshape(%m, newshape=[1, 3, 1, 5]))", lambda: M),
    Case("squeeze(reshape(%m, newshape=[1, 3, 1, 5]), axis=[-2])", lambda: M[None]),
    Case("concatenate((%x, %y, %x), axis=-1)", lambda: np.concatenate([X, Y, X], -1)),
    Case("stack((%m, %m), axis=1)", lambda: np.stack([M, M], 1)),
    Case("split(%x, indices_or_sections=3, axis=1).2", lambda: X[:, 4:]),
    Case("split(%x, indices_or_sections=[1, 4], axis=2).1", lambda: X[:, :, 1:4]),
    Case("strided_slice(%x, begin=[0, 1], end=[2, 5], strides=[1, 2], axes=None)", lambda: X[0:2, 1:5:2]),
    Case("strided_slice(%x, begin=[1], end=[3], strides=[1], axes=[-2])", lambda: X[:, :, 1:3]),
    Case(
        'strided_slice(%x, begin=[0, 2], end=[1, -1], strides=[1], slice_mode="size", axes=[0, 1])',
        lambda: X[:1, 2:],
    ),
    Case("strided_slice(%m, begin=[4], end=[-6], strides=[-1], axes=[1])", lambda: M[:, ::-1]),
    Case("slice_like(%x, transpose(%m, axes=[1, 0]), axes=[0, 1])", lambda: X[:5, :3]),
    Case("take(%x, %k, axis=1)", lambda: X[:, K]),
    Case("take(%m, %k)", lambda: M.reshape(-1)[K]),
    Case("take(%m, multiply(%k, 3i64), axis=0)", lambda: M[np.clip(K * 3, 0, 2)]),
    Case('take(%m, multiply(%k, 2i64), axis=0, mode="wrap")', lambda: M[K * 2 % 3]),
    Case('gather(%m, cast(abs(%i), dtype="int64"), axis=1)', lambda: np.take_along_axis(M, np.abs(I), 1)),
    Case("gather_nd(%m, %k)", lambda: M[K[0], K[1]]),
    Case('full(2.5f, shape=[2, 3], dtype="float32")', lambda: np.full((2, 3), 2.5, np.float32)),
    Case('zeros(shape=[3], dtype="int64")', lambda: np.zeros(3, np.int64)),
    Case('ones(shape=[2, 1], dtype="float32")', lambda: np.ones((2, 1), np.float32)),
    Case("ones_like(%i)", lambda: np.ones_like(I)),
    Case("zeros_like(%m)", lambda: np.zeros_like(M)),
    Case("full_like(%m, 3f)", lambda: np.full_like(M, 3)),
    Case("broadcast_to(%v, shape=[2, 6])", lambda: np.broadcast_to(V, (2, 6))),
    Case("broadcast_to_like(take(%m, 0, axis=0), %m)", lambda: np.broadcast_to(M[0], (3, 5))),
    Case('arange(1, 12, 4, start=None, stop=None, step=None, dtype="int32")', lambda: np.arange(1, 12, 4)),
    Case('shape_of(%x, dtype="int32")', lambda: np.asarray(X.shape, np.int32)),
    Case("repeat(%m, repeats=2, axis=1)", lambda: np.repeat(M, 2, 1)),
    Case("tile(%m, reps=[2, 1, 3])", lambda: np.tile(M, (2, 1, 3))),
    Case("reverse(%m, axis=1)", lambda: M[:, ::-1]),
    Case('layout_transform(%x, src_layout="NCHW", dst_layout="NHWC")', lambda: nhwc(X)),
    Case(
        'one_hot(%k, 1.5f, 0f, depth=3, axis=1, dtype="float32")',
        lambda: 1.5 * np.moveaxis(np.eye(3, dtype=np.float32)[K], -1, 1),
    ),
]
REDUCTIONS = [
    *(
        Case(f"{name}(%x, axis=[1, 3], keepdims=True)", lambda f=f: f(X, axis=(1, 3), keepdims=True))
        for name, f in {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}.items()
    ),
    Case("sum(%x)", lambda: X.sum(dtype=np.float32)),
    Case("prod(%m, axis=[-1])", lambda: M.prod(-1)),
    Case("mean(%x, axis=[1], exclude=True)", lambda: X.mean((0, 2, 3))),
    Case("all(less(%x, 2f), axis=[2])", lambda: (X < 2).all(2)),
    Case("any(less(%x, -1f), axis=[1])", lambda: (X < -1).any(1)),
    Case("variance(%x, mean(%x, axis=[1], keepdims=True), axis=[1])", lambda: X.var(1)),
    Case(
        "variance(%x, mean(%x, axis=[1], keepdims=True), axis=[1], unbiased=True)", lambda: X.var(1, ddof=1)
    ),
    Case("argmax(%x, axis=[1])", lambda: X.argmax(1).astype(np.int32)),
    Case("argmin(%x, axis=[2], keepdims=True)", lambda: X.argmin(2, keepdims=True).astype(np.int32)),
    Case("cumsum(%m, axis=1)", lambda: M.cumsum(1)),
    Case("topk(%m, k=2, axis=1).0", lambda: -np.sort(-M, 1)[:, :2]),
    Case(
        'topk(%m, k=2, is_ascend=True, ret_type="indices", dtype="int32")',
        lambda: np.argsort(M, 1)[:, :2].astype(np.int32),
    ),
    Case('argsort(%m, axis=0, dtype="int32")', lambda: np.argsort(M, 0).astype(np.int32)),
]
PRODUCTS = [
    Case("nn.dense(%m, %m, units=3)", lambda: M @ M.T),
    Case("nn.matmul(%m, %m, units=None, transpose_a=True)", lambda: M.T @ M),
    Case(
        "nn.batch_matmul(reshape(%m, newshape=[1, 3, 5]), reshape(%m, newshape=[1, 3, 5]), transpose_b=True)",
        lambda: (M @ M.T)[None],
    ),
    Case("nn.batch_flatten(%x)", lambda: X.reshape(2, -1)),
    Case('einsum((%m, %m), equation="ij,kj->ik")', lambda: M @ M.T),
    Case("nn.bias_add(%x, %v)", lambda: X + along(V)),
    Case("nn.bias_add(%m, take(%m, 0, axis=0), axis=-1)", lambda: M + M[0]),
    Case("nn.softmax(%x)", lambda: softmax(X, -1)),
    Case("nn.softmax(%x, axis=1)", lambda: softmax(X, 1)),
    Case("nn.log_softmax(%m)", lambda: np.log(softmax(M, -1))),
]
NORMS = [
    Case(
        "nn.batch_norm(%x, %v, exp(%v), sin(%v), exp(%v), epsilon=0.01f).0",
        lambda: (X - along(np.sin(V))) / np.sqrt(along(np.exp(V)) + 0.01) * along(V) + along(np.exp(V)),
    ),
    Case(
        "nn.batch_norm(%x, %v, exp(%v), sin(%v), exp(%v), scale=False).0",
        lambda: (X - along(np.sin(V))) / np.sqrt(along(np.exp(V)) + 1e-5) + along(np.exp(V)),
    ),
    Case("nn.layer_norm(%x, %v, exp(%v), axis=1)", lambda: norm(X, (1,)) * along(V) + along(np.exp(V))),
    Case(
        "nn.layer_norm(%x, %v, %v, axis=1, center=False, epsilon=0.1f)", lambda: norm(X, (1,), 0.1) * along(V)
    ),
    Case(
        "nn.instance_norm(%x, %v, %v, epsilon=0.001f)", lambda: norm(X, (2, 3), 0.001) * along(V) + along(V)
    ),
    Case(
        "nn.group_norm(%x, %v, exp(%v), num_groups=2)",
        lambda: norm(X.reshape(2, 2, 3, 7, 5), (2, 3, 4)).reshape(X.shape) * along(V) + along(np.exp(V)),
    ),
    Case("nn.lrn(%x)", lambda: lrn(X, 5, 1, 2.0, 0.0001, 0.75)),
    Case("nn.lrn(%x, size=3, axis=3, bias=1f, alpha=0.3f, beta=0.5f)", lambda: lrn(X, 3, 3, 1.0, 0.3, 0.5)),
    Case(
        "nn.l2_normalize(%x, eps=1e-06f, axis=[1])",
        lambda: X / np.sqrt(np.maximum((X * X).sum(1, keepdims=True), 1e-6)),
    ),
    Case(
        "nn.pad(%x, -1.5f, pad_width=[[0, 0], [0, 1], [2, 0], [1, 1]])",
        lambda: np.pad(X, [(0, 0), (0, 1), (2, 0), (1, 1)], constant_values=-1.5),
    ),
    Case(
        'nn.pad(%x, 0, pad_width=[[0, 0], [0, 0], [2, 1], [1, 1]], pad_mode="edge")',
        lambda: np.pad(X, [(0, 0), (0, 0), (2, 1), (1, 1)], "edge"),
    ),
    Case(
        'nn.mirror_pad(%x, mode="REFLECT", pad_width=[[0, 0], [0, 0], [2, 1], [1, 1]])',
        lambda: np.pad(X, [(0, 0), (0, 0), (2, 1), (1, 1)], "reflect"),
    ),
]
POOLS = [
    Case(
        "nn.max_pool2d(%x, pool_size=[3, 2], strides=[2, 1])",
        lambda: reference("MaxPool", X, kernel_shape=[3, 2], strides=[2, 1]),
    ),
    Case(
        "nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 1, 1], ceil_mode=True)",
        lambda: reference("MaxPool", X, kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1], ceil_mode=1),
    ),
    Case(
        "nn.avg_pool2d(%x, pool_size=[3, 3], padding=[1, 1])",
        lambda: reference("AveragePool", X, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    ),
    Case(
        "nn.avg_pool2d(%x, pool_size=[3, 3], padding=[1, 1], count_include_pad=True)",
        lambda: reference("AveragePool", X, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1),
    ),
    Case(
        'nn.max_pool2d(transpose(%x, axes=[0, 2, 3, 1]), pool_size=[2, 2], layout="NHWC")',
        lambda: nhwc(reference("MaxPool", X, kernel_shape=[2, 2])),
    ),
    Case(
        "nn.max_pool1d(reshape(%x, newshape=[2, 6, -1]), pool_size=[3], strides=[2])",
        lambda: reference("MaxPool", X.reshape(2, 6, -1), kernel_shape=[3], strides=[2]),
    ),
    Case("nn.global_avg_pool2d(%x)", lambda: X.mean((2, 3), keepdims=True)),
    Case("nn.global_max_pool2d(%x)", lambda: X.max((2, 3), keepdims=True)),
    Case("nn.adaptive_avg_pool2d(%x, output_size=[1, 1])", lambda: X.mean((2, 3), keepdims=True)),
    Case("nn.adaptive_avg_pool2d(%x)", lambda: X),
    Case("nn.adaptive_max_pool2d(%x, output_size=[7, 1])", lambda: X.max(3, keepdims=True)),
    Case(
        "nn.adaptive_avg_pool2d(%x, output_size=[3, 1])",
        lambda: np.stack([X[:, :, a:b].mean((2, 3)) for a, b in ((0, 3), (2, 5), (4, 7))], 2)[..., None],
    ),
]
WINDOWS = [
    Case(
        "nn.conv2d(%x, %w, padding=[1, 1, 1, 1], groups=2, channels=4, kernel_size=[3, 3])",
        lambda: reference("Conv", X, W, pads=[1] * 4, group=2),
    ),
    Case(
        "nn.conv2d(%x, %w, strides=[2, 1], padding=[0, 1, 2, 1], dilation=[1, 2], groups=2)",
        lambda: reference("Conv", X, W, strides=[2, 1], pads=[0, 1, 2, 1], dilations=[1, 2], group=2),
    ),
    Case(
        "nn.conv2d(transpose(%x, axes=[0, 2, 3, 1]), transpose(%w, axes=[2, 3, 1, 0]), padding=[1], "
        'groups=2, data_layout="NHWC", kernel_layout="HWIO")',
        lambda: nhwc(reference("Conv", X, W, pads=[1] * 4, group=2)),
    ),
    Case(
        "nn.conv1d(reshape(%x, newshape=[2, 6, -1]), reshape(%w, newshape=[3, 6, -1]))",
        lambda: reference("Conv", X.reshape(2, 6, -1), W.reshape(3, 6, -1)),
    ),
    Case(
        "nn.conv2d_transpose(%x, %d, channels=4, kernel_size=[3, 3], strides=[2, 2], "
        "output_padding=[1, 1], padding=[1, 1, 1, 1])",
        lambda: reference("ConvTranspose", X, D, strides=[2, 2], pads=[1] * 4, output_padding=[1, 1]),
    ),
    Case(
        "nn.depth_to_space(reshape(%x, newshape=[1, 4, -1, 7]), block_size=2)",
        lambda: reference("DepthToSpace", X.reshape(1, 4, -1, 7), blocksize=2),
    ),
    Case(
        'nn.depth_to_space(reshape(%x, newshape=[1, 4, -1, 7]), block_size=2, mode="CRD")',
        lambda: reference("DepthToSpace", X.reshape(1, 4, -1, 7), blocksize=2, mode="CRD"),
    ),
    Case(
        "nn.space_to_depth(reshape(%x, newshape=[1, 5, 6, 14]), block_size=2)",
        lambda: reference("SpaceToDepth", X.reshape(1, 5, 6, 14), blocksize=2),
    ),
]
IMAGES = [
    Case(
        "image.resize2d(%x, size=[13, 8], roi=[0f, 0f, 0f, 0f])",
        lambda: reference("Resize", X, EMPTY, EMPTY, np.asarray([2, 6, 13, 8]), mode="linear"),
    ),
    Case(
        'image.resize2d(%x, size=[14, 10], roi=[0f, 0f, 0f, 0f], method="nearest_neighbor", '
        'coordinate_transformation_mode="asymmetric", rounding_method="floor")',
        lambda: X.repeat(2, 2).repeat(2, 3),
    ),
    Case(
        'image.resize2d(%x, size=[9, 7], roi=None, method="cubic", '
        'coordinate_transformation_mode="align_corners", cubic_alpha=-0.75f)',
        lambda: reference(
            "Resize",
            X,
            EMPTY,
            EMPTY,
            np.asarray([2, 6, 9, 7]),
            mode="cubic",
            coordinate_transformation_mode="align_corners",
        ),
    ),
    Case("nn.upsampling(%x, scale_h=2f, scale_w=3f)", lambda: X.repeat(2, 2).repeat(3, 3)),
    Case(
        'nn.upsampling(%x, scale_h=1.5f, scale_w=2f, method="bilinear", align_corners=True)',
        lambda: reference(
            "Resize",
            X,
            EMPTY,
            EMPTY,
            np.asarray([2, 6, 11, 10]),
            mode="linear",
            coordinate_transformation_mode="align_corners",
        ),
    ),
]
EMPTY = np.zeros(0, np.float32)
GROUPS = {
    "elementwise": ELEMENTWISE,
    "shapes": SHAPES,
    "reductions": REDUCTIONS,
    "products": PRODUCTS,
    "norms": NORMS,
    "pools": POOLS,
    "windows": WINDOWS,
    "images": IMAGES,
}


def module_text(expressions: list[str]) -> str:
    heads = ", ".join(
        f"%{name}: Tensor[({', '.join(map(str, value.shape))}), {value.dtype}]"
        for name, value in VALUES.items()
    )
    lines = "\n".join(f"  %{number} = {text};" for number, text in enumerate(expressions))
    result = ", ".join(f"%{number}" for number in range(len(expressions)))
    return f'#[version = "0.0.5"]\ndef @main({heads}) {{\n{lines}\n  ({result},)\n}}\n'


def imported(text: str) -> Any:
    return import_program(*parser.parse(text, "net.relay"), {})


@pytest.mark.parametrize("group", GROUPS)
def test_operators(group: str) -> None:
    cases = GROUPS[group]
    mod = imported(module_text([case.text for case in cases]))
    results = tvm_mxplan.compile(mod, QUICK, options={"cache": "disabled"})(**VALUES)
    assert len(results) == len(cases)
    for case, result in zip(cases, results, strict=True):
        actual, expected = result.numpy(), np.asarray(case.expected())
        assert actual.shape == expected.shape, case.text
        assert actual.dtype.kind == expected.dtype.kind, case.text
        np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-5, err_msg=case.text)


def test_every_operator_with_attributes_has_a_type_and_a_converter() -> None:
    assert {f"{name}Attrs" for name in NAMED.values()} == set(TYPES)
    assert set(NAMED) <= set(TABLE)


@pytest.mark.parametrize(
    "text, words",
    [
        ("nn.foo(%x)", ["3:8: nn.foo: this operator of Relay's is not read", "ONNX"]),
        ("qnn.conv2d(%x, %w)", ["qnn.conv2d", "before it is quantised"]),
        ("dyn.reshape(%x, %k)", ["DynamicToStatic"]),
        ("nn.contrib_conv2d_NCHWc(%x, %w)", ["before relay.build's passes"]),
        ('nn.conv2d(%x, %w, data_layout="NCHW16c", groups=2)', ["'NCHW16c'", "without blocks"]),
        ("nn.conv2d(%x, %w, strides=[1, 2, 3], groups=2)", ["2 numbers as strides", "[1, 2, 3]"]),
        ("nn.conv2d(%x, %m)", ["rank 4", "4 and 2"]),
        ("nn.conv2d(%x)", ["2 operands or more, got 1"]),
        ("nn.conv2d(%x, (%w, %w))", ["got a tuple"]),
        ("nn.conv2d(%x, %w)", ["cannot be imported"]),
        ("nn.max_pool2d(%x)", ["attribute pool_size is missing"]),
        ("clip(%x, a_min=0f)", ["attribute a_max is missing"]),
        ("reshape(%x, newshape=[0, -1, -1])", ["expected -1 once"]),
        ("reshape(%x, newshape=[11, -1])", ["420 elements do not fill"]),
        ("reshape(%m, newshape=[0, 0, 0])", ["one that fits the shape"]),
        ('reshape(%m, newshape=["a"])', ["numbers as newshape"]),
        ("concatenate(%x, axis=0)", ["a tuple of tensors"]),
        ("split(%x, indices_or_sections=2).7", ["field 7 of 2 fields"]),
        ("nn.softmax(%x, axis=4)", ["axis = 4; expected -4 to 3"]),
        ("take(%x, %k, axis=0, batch_dims=1)", ["batch_dims = 1"]),
        ("zeros(shape=[999999, 999999, 99])", ["at most 2,147,483,648 elements"]),
        ('arange(0f, 1f, 0f, dtype="float32")', ["a step that is not 0"]),
        ("add(%x, %m.0)", ["field 0 of a tensor"]),
        ("@other(%x)", ["'other' is no function"]),
        ("nn.conv2d(%x, %w, groups=0)", ["cannot be imported"]),
        ("nn.conv2d(%x, %w, groups=2, strides=[0, 0])", ["cannot be imported"]),
        ("split(%x, indices_or_sections=99999999)", ["99999999 sections of 2"]),
        ("split(%x, indices_or_sections=0)", ["0 sections of 2"]),
        ("expand_dims(%m, axis=0, num_newaxis=99999999)", ["99999999 axes at 0"]),
        ("repeat(%m, repeats=-1, axis=0)", ["repeats = -1"]),
        ("tile(%m, reps=[-1])", ["reps = [-1]"]),
        ("one_hot(%k, 1f, 0f, depth=-1)", ["depth -1"]),
        ("nn.upsampling(%x, scale_h=nanf, scale_w=1f)", ["scales (nan, 1.0)"]),
        ("image.resize2d(%x, size=[-1, 5])", ["size = [-1, 5]"]),
        ("nn.lrn(%x, size=-3)", ["an odd number"]),
        ('cast(%x, dtype="foo")', ["foo"]),
        ("topk(%m, k=99)", ["k = 99 of 5"]),
        ("cumsum(%m, axis=9)", ["axis = 9"]),
        ("nn.adaptive_avg_pool2d(%x, output_size=[-3, 2])", ["output_size = [-3, 2]"]),
        ("nn.group_norm(%x, %v, %v)", ["num_groups = 0"]),
        ("concatenate((), axis=0)", ["cannot be imported"]),
    ],
)
def test_what_is_refused_is_one_line_with_the_place(text: str, words: list[str]) -> None:
    with pytest.raises((InvalidInputError, UnsupportedError)) as error:
        imported(module_text([text]))
    message = str(error.value)
    assert message.startswith("net.relay:3:") and "\n" not in message
    assert all(word in message for word in words), message


def test_symbols_stay_symbols() -> None:
    text = """#[version = "0.0.5"]
    def @main(%x: Tensor[(?, 4, ?), float32]) {
      %0 = reshape(%x, newshape=[0, 2, -1]);
      %1 = reshape(%x, newshape=[-3, -1]);
      (%0, %1)
    }"""
    mod = imported(text)
    ex = tvm_mxplan.compile(mod, "llvm", options={"cache": "disabled"})
    assert ex.signature.inputs[0].shape == ("x_0", 4, "x_2")
    x = RANDOM.standard_normal((3, 4, 5), np.float32)
    first, second = (result.numpy() for result in ex(x))
    assert np.array_equal(first, x.reshape(3, 2, -1))
    assert np.array_equal(second, x.reshape(12, -1))
