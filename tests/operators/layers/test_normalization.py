"""Normalizations and softmax: batch, layer, group, instance, local response."""

from __future__ import annotations

import numpy as np
import pytest
from blocks import BLOCK
from onnx_node import LAYOUTS, Graph, check, post_ops, tolerance
from tvm import relax

import tvm_mxplan
from tvm_mxplan.byoc.onednn.families import lrn
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.testing.reference import relative_l2


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_batch_norm_on_its_own(layouts):
    g = Graph()
    outputs = [g.op("Relu", g.batch_norm(g.input(2, count, 5, 7), count)) for count in (1, 3, 17, 64)]
    check(g, *outputs, steps={"binary": 4}, layouts=layouts)


@pytest.mark.parametrize("shape", [(3, 17), (2, 17, 5), (1, 17, 3, 4, 5)])
def test_batch_norm_of_other_ranks(shape):
    g = Graph()
    check(g, g.batch_norm(g.input(*shape), 17), steps={"binary": 1})


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_batch_norm_of_single_pixels(batch, layouts):
    """Of what a global average leaves."""
    g = Graph()
    pooled = g.op("GlobalAveragePool", g.input(batch, 17, 5, 7))
    outputs = [g.op("Relu", g.batch_norm(x, 17)) for x in (pooled, g.input(batch, 17, 1))]
    report = check(g, *outputs, steps={"pooling": 1, "binary": 1 if batch == 1 else 2}, layouts=layouts)
    assert not report.fallbacks


def test_batch_norms_in_a_row_are_one():
    g = Graph()
    y = g.batch_norm(g.batch_norm(g.input(2, 17, 5, 5), 17), 17)
    check(g, y, steps={"binary": 1})


def test_batch_norm_after_a_shared_convolution_is_not_folded():
    g = Graph()
    x = g.conv(g.input(1, 3, 7, 7), 3, 17)
    check(g, x, g.batch_norm(x, 17), steps={"convolution": 1, "binary": 1}, reduction=27)


def test_layer_norm():
    g, outputs = Graph(), []
    for shape, axis in (
        ((3, 17), -1), ((2, 5, 67), -1), ((2, 3, 5, 7), 2), ((2, 3, 5, 7), 1), ((1, 1, 100), -1),
    ):  # fmt: skip
        for count in (1, 2):
            weights = [g.constant(*shape[axis:]) for _ in range(count)]
            outputs.append(g.op("LayerNormalization", g.input(*shape), *weights, axis=axis))
    check(g, *outputs, steps={"layer_normalization": 10}, reduction=105)


def _spelt_out_layer_norm(g: Graph, x: str, square) -> str:
    centred = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
    variance = g.op("ReduceMean", square(centred), axes=[-1])
    return g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.scalar(1e-5))))


@pytest.mark.parametrize("form", ["power", "product"])
def test_spelt_out_layer_norm(form):
    g = Graph()
    square = {
        "power": lambda x: g.op("Pow", x, g.scalar(2.0)),
        "product": lambda x: g.op("Mul", x, x),
    }[form]
    y = _spelt_out_layer_norm(g, g.input(2, 5, 67), square)
    y = g.op("Add", g.op("Mul", y, g.vector(67)), g.constant(67))
    check(g, y, steps={"layer_normalization": 1}, reduction=67)


def test_what_only_looks_like_layer_norm():
    g = Graph()
    y = _spelt_out_layer_norm(g, g.input(2, 5, 67), lambda x: g.op("Pow", x, g.scalar(4.0)))
    check(g, y, steps={"reduction": 2, "binary": 2, "eltwise": 1}, reduction=67)


def test_instance_norm():
    g, outputs = Graph(), []
    for shape in ((2, 17, 5), (2, 3, 5, 7), (2, 1, 4, 4), (1, 64, 3, 4, 5)):
        x, channels = g.input(*shape), shape[1]
        outputs.append(g.op("InstanceNormalization", x, g.vector(channels), g.constant(channels)))
    check(g, *outputs, steps={"layer_normalization": 4, "binary": 4}, reduction=60)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_instance_norm_after_a_convolution(layouts):
    g = Graph()
    y = g.op("InstanceNormalization", g.conv(g.input(2, 3, 7, 7), 3, 17), g.vector(17), g.constant(17))
    steps = {"convolution": 1, "layer_normalization": 1, "binary": 1}
    check(g, g.op("Relu", y), steps=steps, reduction=49, layouts=layouts)


@pytest.mark.parametrize("opset", [18, 21])
def test_group_norm(opset):
    g, outputs = Graph(opset=opset), []
    for channels, groups in ((6, 3), (17, 1), (17, 17), (64, 8)):
        count = channels if opset == 21 else groups
        x, scale, shift = g.input(2, channels, 5, 7), g.vector(count), g.constant(count)
        outputs.append(g.op("GroupNormalization", x, scale, shift, num_groups=groups))
    check(g, *outputs, steps={"layer_normalization": 4, "binary": 4}, reduction=280)


def test_group_norm_as_exporters_spell_it():
    """Scales of one and shifts of zero, of the groups, are no step."""
    g, ones, zeros = Graph(), np.ones(3, "float32"), np.zeros(3, "float32")
    grouped = g.op("Reshape", g.input(2, 6, 5, 7), g.ints(0, 3, -1))
    normal = g.op("InstanceNormalization", grouped, g.constant(data=ones), g.constant(data=zeros))
    y = g.op("Mul", g.op("Reshape", normal, g.ints(2, 6, 5, 7)), g.constant(6, 1, 1))
    y = g.op("Add", y, g.constant(6, 1, 1))
    report = check(g, y, steps={"layer_normalization": 1, "binary": 1}, reduction=70)
    assert report.regions


NORMS = {
    "all after the channels": ("group_norm", [2, 3], ["layer_normalization", "binary"]),
    "all, counted from behind": ("group_norm", [-1, -2], ["layer_normalization", "binary"]),
    "one of them": ("group_norm", [3], []),
    "the other one": ("group_norm", [2], []),
    "of an instance": ("instance_norm", [2, 3], ["layer_normalization", "binary"]),
    "one of them, of an instance": ("instance_norm", [3], []),
}


@pytest.mark.parametrize("case", NORMS)
def test_norms_of_channels_over_some_axes(case):
    """ONNX's go over all axes behind the channels; Relax's can go over some, which oneDNN cannot."""
    kind, axes, expected = NORMS[case]
    groups = 3 if kind == "group_norm" else 6
    g = Graph()
    scale, shift = (g.random.uniform(0.5, 2.0, 6).astype("float32") for _ in range(2))
    x = relax.Var("x", relax.TensorType((2, 6, 5, 7), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            arguments = [x, relax.const(scale), relax.const(shift)]
            if kind == "group_norm":
                norm = relax.op.nn.group_norm(*arguments, groups, channel_axis=1, axes=axes)
            else:
                norm = relax.op.nn.instance_norm(*arguments, channel_axis=1, axes=axes)
            y = builder.emit_output(norm)
        builder.emit_func_output(y)
    ex = tvm_mxplan.compile(builder.get())
    steps = [step.kind for region in ex.report.regions for step in region.steps if step.kind != "reorder"]
    assert steps == expected, str(ex.report)
    data = g.random.standard_normal((2, 6, 5, 7)).astype("float32")
    parts = data.astype("float64").reshape(2, groups, 6 // groups, 5, 7)
    over = (2, *(axis % 4 + 1 for axis in axes))
    normal = (parts - parts.mean(over, keepdims=True)) / np.sqrt(parts.var(over, keepdims=True) + 1e-5)
    per_channel = (vector.reshape(1, 6, 1, 1) for vector in (scale, shift))
    right = normal.reshape(data.shape) * next(per_channel) + next(per_channel)
    assert relative_l2(ex(data)[0].numpy(), right) <= tolerance(70)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_lrn(layouts):
    g = Graph()
    cases = [(channels, size) for channels in (3, 17, 64) for size in (1, 3, 5)]
    outputs = [
        g.op("LRN", g.input(2, channels, 5, 7), size=size, alpha=0.02, beta=0.75, bias=1.5)
        for channels, size in cases
    ]
    whole = sum(lrn.has_code(ir.LRN(size, 0.02, 0.75, 1.5), (2, channels, 5, 7)) for channels, size in cases)
    assert whole == (9 if BLOCK == 16 else 1), "AVX2 has code for windows of five in whole blocks"
    pieces = {"binary": 3 * (9 - whole), "pooling": 9 - whole} if whole < 9 else {}
    check(g, *outputs, steps={"lrn": whole, **pieces}, reduction=5, layouts=layouts)


def test_lrn_with_another_exponent_runs_piece_by_piece():
    """oneDNN's reference code takes more than six times as long as TVM's own; the pieces are fast."""
    g = Graph()
    y = g.op("LRN", g.input(1, 17, 5, 7), size=5, alpha=0.02, beta=0.6, bias=1.5)
    check(g, y, steps={"binary": 3, "pooling": 1}, reduction=5)


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
def test_softmax_along_every_axis(kind):
    g, shapes = Graph(), [(17,), (2, 17), (2, 67, 5), (2, 3, 5, 7), (1, 17, 3, 4, 5)]
    outputs = [g.op(kind, g.input(*shape), axis=axis) for shape in shapes for axis in range(len(shape))]
    check(g, *outputs, steps={"softmax": len(outputs)}, reduction=67)


def test_softmax_of_opset_11_flattens():
    g = Graph(opset=11)
    check(g, g.op("Softmax", g.input(2, 17, 3, 3), axis=1), steps={"softmax": 1}, reduction=153)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_softmax_of_channels_after_a_convolution(layouts):
    g = Graph()
    y = g.op("Softmax", g.conv(g.input(2, 3, 5, 5), 3, 17), axis=1)
    report = check(g, y, steps={"convolution": 1, "softmax": 1}, reduction=27, layouts=layouts)
    assert post_ops(report, "softmax") == [()]


# --- numbers far from zero ----------------------------------------------------------------------------------


def _far(g: Graph, shape: tuple[int, ...], mean: float) -> str:
    """Numbers around ``mean`` that float32 holds exactly."""
    return g.input(data=(mean + g.random.integers(-8, 9, shape) / 4).astype("float32"))


@pytest.mark.parametrize("mean", [50.0, 1e4, 1e6])
def test_batch_norm_of_numbers_far_from_zero(mean):
    """onnxruntime folds the mean as well and loses its digits, so float64 is the reference."""
    g = Graph()
    x, shape = _far(g, (2, 5, 7, 7), mean), (1, 5, 1, 1)
    gamma, beta = g.vector(5), g.constant(5)
    centre, variance = (g.constant(data=np.full(5, n, "float32")) for n in (mean, 2.0))
    y = g.op("BatchNormalization", x, gamma, beta, centre, variance, epsilon=1e-5)

    def reference(data):
        scale, shift = g.constants[gamma].reshape(shape), g.constants[beta].reshape(shape)
        return [(data - mean) / np.sqrt(2.0 + 1e-5) * scale + shift]

    check(g, y, steps={"binary": 1}, reduction=100, reference=reference)


@pytest.mark.parametrize("scalars", [False, True])
@pytest.mark.parametrize("mean", [0.45, 1e4, 1e6])
def test_steps_that_normalize_stay_apart_where_they_would_cancel(mean, scalars):
    g = Graph()
    x = _far(g, (2, 3, 7, 7), mean if mean > 1 else 0.0)
    shape = () if scalars else (1, 3, 1, 1)
    numbers = [g.constant(data=np.full(shape, n, "float32")) for n in (mean, 3.0, 0.5)]
    for kind, number in zip(("Sub", "Div", "Add"), numbers, strict=True):
        x = g.op(kind, x, number)
    check(g, x, steps={"binary": 1})
