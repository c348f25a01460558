"""Reshape, transpose, concat, pad, resize, channel shuffle, next to what makes a region worth while."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx_node import LAYOUTS, Graph, assert_offloaded, check, run, tolerance

from tvm_mxplan.passes.memory.elide_concats import copied_pieces
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing.reference import relative_l2


def test_reshape_between_steps():
    g, outputs = Graph(), []
    for shape, target in (
        ((2, 12), (2, 3, 4)),
        ((2, 3, 4), (6, 4)),
        ((2, 3, 4, 5), (2, -1)),
        ((1, 17, 1, 1), (17,)),
        ((2, 6), (12,)),
    ):
        view = g.op("Reshape", g.op("Sigmoid", g.input(*shape)), g.ints(*target))
        outputs.append(g.op("Tanh", view))
    check(g, *outputs, steps={"eltwise": 10})


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_views_of_a_convolution(layouts):
    g = Graph()

    def conv() -> str:
        return g.conv(g.input(2, 3, 5, 1), 3, 17)

    outputs = [
        g.op("Flatten", conv()),
        g.op("Reshape", conv(), g.ints(2, 5, 17)),
        g.op("Squeeze", conv(), g.ints(3)),
        g.op("Unsqueeze", conv(), g.ints(0, 3)),
    ]
    check(g, *outputs, steps={"convolution": 4}, reduction=27, layouts=layouts)


def _some_orders(rank: int) -> list[tuple[int, ...]]:
    orders = list(itertools.permutations(range(rank)))[1:]
    return orders[:: max(1, len(orders) // 6)]


@pytest.mark.parametrize("shape", [(2, 17), (2, 3, 17), (2, 3, 17, 5), (2, 3, 4, 5, 6)], ids=str)
def test_transpose_between_steps(shape):
    g, orders = Graph(), _some_orders(len(shape))
    outputs = [
        g.op("Tanh", g.op("Transpose", g.op("Sigmoid", g.input(*shape)), perm=order)) for order in orders
    ]
    check(g, *outputs, steps={"eltwise": 2 * len(orders)})


TRANSPOSED = [((2, 3, 5, 7), (0, 2, 3, 1)), ((2, 5, 7), (1, 2, 0)), ((2, 3, 4, 5, 6), (1, 3, 4, 0, 2))]


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize(("shape", "order"), TRANSPOSED, ids=str)
def test_every_kind_of_step_reads_transposed_views(shape, order, layouts):
    """oneDNN itself computes nonsense from some of them."""
    g, outputs = Graph(), []
    s = tuple(shape[axis] for axis in order)
    rest = (1,) * (len(s) - 2)

    def view() -> str:
        return g.op("Transpose", g.op("Tanh", g.input(*shape)), perm=order)

    def slopes(*size: int) -> str:
        return g.constant(data=g.random.uniform(0.1, 0.9, size).astype("float32"))

    outputs += [
        g.op("LayerNormalization", view(), g.vector(s[-1]), g.constant(s[-1]), axis=-1),
        g.op("PRelu", view(), slopes(s[1], *rest)),
        g.op("PRelu", g.op("Sigmoid", view()), slopes(s[-1])),
        g.op("Relu", g.op("Add", g.op("Mul", view(), g.input(*s)), g.constant(s[1], *rest))),
        g.op("Softmax", view(), axis=-1),
        g.op("Softmax", g.op("Sigmoid", view()), axis=1),
        g.op("ReduceMax", view(), axes=[-1]),
        g.op("GlobalAveragePool", view()),
        g.op("Sub", g.input(s[-1]), view()),
        g.op("Mul", view(), g.input(*s[:-1], 1)),
        g.op("Concat", view(), g.op("Sigmoid", view()), axis=1),
        g.op("Pad", view(), g.ints(*[1] * len(s), *[0] * len(s)), g.scalar(0.5)),
        g.op("MatMul", view(), g.constant(s[-1], 17)),
        g.op("MatMul", g.input(*s[:-2], 3, s[-2]), view()),
        g.op("InstanceNormalization", view(), g.vector(s[1]), g.constant(s[1])),
        g.op("Conv", view(), g.constant(17, s[1], *rest)),
    ]
    ex, actual, expected = run(g, *outputs, layouts=layouts)
    assert not ex.report.fallbacks, str(ex.report)
    errors = [relative_l2(ours, theirs) for ours, theirs in zip(actual, expected, strict=True)]
    assert max(errors) <= tolerance(30), errors


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_transposes_of_a_convolution(layouts):
    g = Graph()
    x = g.conv(g.input(2, 3, 5, 4), 3, 17)
    outputs = [g.op("Transpose", x, perm=order) for order in ((0, 2, 3, 1), (0, 1, 3, 2), (3, 0, 2, 1))]
    check(g, *outputs, steps={"convolution": 1}, reduction=27, layouts=layouts)


def test_transpose_into_and_out_of_a_convolution():
    """Channels last outside: the copies of an importer from TensorFlow."""
    g = Graph()
    x = g.op("Transpose", g.input(2, 7, 8, 17), perm=[0, 3, 1, 2])
    y = g.op("Transpose", g.op("Relu", g.conv(x, 17, 67)), perm=[0, 2, 3, 1])
    check(g, y, steps={"convolution": 1}, reduction=17 * 9)


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("extents", [(3, 17), (16, 32), (17, 17, 67)])
def test_concat(extents, layouts):
    g, outputs, axes = Graph(), [], (0, 1, 2, 3, -1)
    for axis in axes:
        pieces = []
        for extent in extents:
            shape = [2, 3, 5, 4]
            shape[axis] = extent
            pieces.append(g.op("Tanh", g.input(*shape)))
        outputs.append(g.op("Concat", *pieces, axis=axis))
    check(g, *outputs, steps={"eltwise": len(extents) * len(axes), "concat": len(axes)}, layouts=layouts)


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("batch", [1, 2])
def test_concat_of_convolutions(batch, layouts):
    """Fire modules; then a convolution reads the whole, and another one piece of it."""
    g, outputs = Graph(), []
    for channels in ((3, 17), (16, 48), (32, 17)):
        x = g.input(batch, 3, 6, 6)
        pieces = [g.op("Relu", g.conv(x, 3, count)) for count in channels]
        whole = g.conv(g.op("Concat", *pieces, axis=1), sum(channels), 17)
        outputs.append(g.op("Concat", whole, g.conv(pieces[0], channels[0], 8), axis=1))
    check(g, *outputs, steps={"convolution": 12, "concat": 6}, reduction=65 * 9, layouts=layouts)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_concat_with_itself_with_an_input_and_with_a_constant(layouts):
    g = Graph()
    x = g.input(2, 17, 5, 5)
    a = g.op("Tanh", x)
    y = g.op("Concat", a, a, x, g.constant(2, 3, 5, 5), x, axis=1)
    check(g, y, a, steps={"eltwise": 1, "concat": 1}, layouts=layouts)


def test_concat_of_one():
    g = Graph()
    y = g.op("Concat", g.op("Tanh", g.input(2, 17, 5)), axis=1)
    check(g, g.op("Sigmoid", y), steps={"eltwise": 2, "concat": 1})


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("order", ["whole first", "piece first"])
def test_concat_of_concats(order, layouts):
    """With one image, pieces are made where they stand: one that occurs twice is copied from there."""
    g = Graph()
    x = [g.op("Tanh", g.input(1, 16, 4, 4)) for _ in range(3)]
    inner = g.op("Concat", x[0], x[1], axis=1)
    pieces = [inner, x[2], inner, x[0]]
    outer = g.op("Concat", *(pieces if order == "whole first" else pieces[::-1]), axis=1)
    ex, actual, expected = run(g, g.op("Abs", outer), layouts=layouts)
    assert_offloaded(ex.report, {"eltwise": 4, "concat": 2}, {})
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-5, atol=1e-6)
    (program,) = decoded_programs(ex.module)
    concats = [step for step in program.steps if step.kind == "concat"]
    copied = [len(copied_pieces(program, step)) for step in concats]
    assert copied == [0, 2]


PADS = [
    ((2, 17, 5, 6), (0, 0, 1, 2, 0, 0, 3, 1)),
    ((2, 17, 5, 6), (0, 1, 0, 0, 0, 2, 0, 0)),
    ((2, 17, 5, 6), (1, 0, 0, 0, 0, 0, 0, 0)),
    ((5, 6), (1, 2, 3, 4)),
    ((2, 17, 6), (0, 0, 3, 0, 0, 4)),
    ((1, 17, 3, 4, 5), (0, 0, 1, 1, 0, 0, 0, 0, 2, 1)),
]


@pytest.mark.parametrize("value", [0.0, 1.5])
def test_pad(value):
    g = Graph()
    outputs = [
        g.op("Pad", g.op("Tanh", g.input(*shape)), g.ints(*pads), g.scalar(value)) for shape, pads in PADS
    ]
    check(g, *outputs, steps={"eltwise": len(PADS), "pad": len(PADS)})


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("value", [0.0, -1.5])
def test_pad_after_a_convolution(value, layouts):
    g = Graph()
    x = g.op("Pad", g.conv(g.input(2, 3, 5, 5), 3, 17), g.ints(0, 0, 1, 1, 0, 0, 2, 0), g.scalar(value))
    y = g.op("MaxPool", x, kernel_shape=[2, 2])
    check(g, y, steps={"convolution": 1, "pad": 1, "pooling": 1}, reduction=27, layouts=layouts)


@pytest.mark.parametrize(
    ("mode", "pads"),
    [
        ("reflect", (0, 0, 1, 2, 0, 0, 3, 1)),
        ("edge", (0, 3, 0, 0, 0, 2, 0, 0)),
        ("wrap", (0, 0, 2, 0, 0, 0, -1, 9)),
    ],
)
def test_other_pads_are_reads_of_constant_places(mode, pads):
    """The reads are TVM's: the target names no library that has them."""
    g = Graph(opset=19)
    x = g.op("Tanh", g.input(2, 17, 5, 6))
    y = g.op("Pad", x, g.ints(*pads), mode=mode)
    check(g, y, steps={"eltwise": 1}, fallbacks={"take": "no implementation in the library"})


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_padding_below_zero_is_a_slice(mode):
    g = Graph()
    y = g.op("Pad", g.op("Tanh", g.input(17)), g.ints(0, -1), mode=mode)
    check(g, y, steps={"eltwise": 1, "slice": 1})


def resize(g: Graph, x: str, factors: tuple, mode: str, coordinates: str, rounding: str = "floor") -> str:
    scales = g.constant(data=np.array((1, 1, *factors), "float32"))
    options = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    return g.op("Resize", x, "", scales, **options)


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("channels", [3, 17, 64])
def test_resize(channels, layouts):
    g, outputs = Graph(), []
    for mode, coordinates, factors in (
        ("nearest", "asymmetric", (2, 3)),
        ("linear", "half_pixel", (2, 3)),
        ("linear", "pytorch_half_pixel", (0.5, 1.5)),
    ):
        outputs.append(resize(g, g.op("Tanh", g.input(2, channels, 6, 8)), factors, mode, coordinates))
    check(g, *outputs, steps={"eltwise": 3, "resampling": 3}, layouts=layouts)


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "pytorch_half_pixel"])
def test_nearest_resize_of_half_pixels(coordinates, rounding):
    g = Graph()
    y = resize(g, g.op("Tanh", g.input(1, 17, 5, 4)), (2, 3), "nearest", coordinates, rounding)
    check(g, y, steps={"eltwise": 1, "resampling": 1})


@pytest.mark.parametrize(("mode", "coordinates"), [("nearest", "asymmetric"), ("linear", "half_pixel")])
def test_resize_of_volumes(mode, coordinates):
    g = Graph()
    x = g.op("Tanh", g.input(1, 17, 3, 4, 5))
    y = g.op(
        "Resize", x, "", "", g.ints(1, 17, 6, 8, 10),
        mode=mode, coordinate_transformation_mode=coordinates, nearest_mode="floor",
    )  # fmt: skip
    check(g, y, steps={"eltwise": 1, "resampling": 1})


@pytest.mark.parametrize(
    ("mode", "coordinates", "rounding", "factors"),
    [
        ("nearest", "half_pixel", "floor", (2, 2)),
        ("nearest", "half_pixel", "ceil", (3, 1)),
        ("nearest", "half_pixel", "round_prefer_floor", (1.5, 1.5)),
        ("nearest", "asymmetric", "floor", (0.5, 0.5)),
        ("nearest", "asymmetric", "round_prefer_floor", (3, 3)),
        ("nearest", "asymmetric", "ceil", (2, 2)),
        ("nearest", "align_corners", "round_prefer_floor", (2, 2)),
    ],
)
def test_resizes_that_no_library_knows_are_kernels(mode, coordinates, rounding, factors):
    g = Graph()
    y = resize(g, g.op("Tanh", g.input(1, 17, 6, 8)), factors, mode, coordinates, rounding)
    reason = "written as a kernel: resize_axis"
    report = check(g, y, steps={"eltwise": 1}, fallbacks={"call_tir": reason}, reduction=16)
    assert len(report.kept) == sum(factor != 1 for factor in factors)
    assert all(one.reason.startswith(reason) for one in report.kept)
    assert {origin.kind for one in report.kept for origin in one.origins} == {"Resize"}


@pytest.mark.parametrize(
    ("mode", "coordinates", "reason"),
    [
        ("linear", "asymmetric", "asymmetric coordinates"),
        ("linear", "align_corners", "align_corners coordinates"),
        ("cubic", "half_pixel", "resize method cubic"),
    ],
)
def test_resizes_that_onednn_does_not_have_are_left_to_tvm(mode, coordinates, reason):
    g = Graph()
    y = resize(g, g.op("Tanh", g.input(1, 17, 6, 8)), (2, 2), mode, coordinates)
    check(g, y, steps={"eltwise": 1}, fallbacks={"image.resize2d": reason}, reduction=16)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_channel_shuffle(layouts):
    g, outputs = Graph(), []
    for channels, groups in ((6, 3), (16, 2), (134, 2), (64, 4)):
        x = g.conv(g.input(2, 3, 5, 5), 3, channels)
        x = g.op("Reshape", x, g.ints(2, groups, channels // groups, 5, 5))
        x = g.op("Transpose", x, perm=[0, 2, 1, 3, 4])
        outputs.append(g.op("Reshape", x, g.ints(2, channels, 5, 5)))
    check(g, *outputs, steps={"convolution": 4, "shuffle": 4}, reduction=27, layouts=layouts)


def test_what_only_looks_like_a_channel_shuffle():
    g = Graph()
    x = g.op("Reshape", g.op("Tanh", g.input(2, 12, 5, 5)), g.ints(2, 3, 4, 5, 5))
    x = g.op("Transpose", x, perm=[0, 1, 2, 4, 3])
    y = g.op("Sigmoid", g.op("Reshape", x, g.ints(2, 12, 5, 5)))
    check(g, y, steps={"eltwise": 2})


@pytest.mark.parametrize("kind", ["DepthToSpace", "SpaceToDepth"])
def test_depth_and_space(kind):
    g = Graph()
    y = g.op("Sigmoid", g.op(kind, g.op("Tanh", g.input(2, 36, 4, 6)), blocksize=2))
    check(g, y, steps={"eltwise": 2})
