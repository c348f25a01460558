"""Expressions of Relay's operators, each with the numbers that it stands for."""

from __future__ import annotations

import math

import numpy as np
from relay_references import Case, D, I, K, M, V, W, X, Y, along, lrn, nhwc, norm, reference, softmax

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
