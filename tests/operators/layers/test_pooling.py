"""Pooling: both count modes, ceil mode, automatic padding, global, adaptive, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_node import LAYOUTS, Graph, check, tolerance
from tvm import relax

import tvm_mxplan
from tvm_mxplan.testing.reference import relative_l2

SPATIAL = {3: (13,), 4: (9, 11), 5: (5, 6, 7)}
ONE = {"pooling": 1}


def pool(g: Graph, kind: str, shape: tuple, kernel: int = 3, stride: int = 2, **attrs) -> str:
    axes = len(shape) - 2
    return g.op(kind, g.input(*shape), kernel_shape=[kernel] * axes, strides=[stride] * axes, **attrs)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_pooling(rank):
    g, outputs, pads = Graph(), [], {"pads": [1] * 2 * (rank - 2)}
    for channels in (1, 3, 17, 64):
        for kind, options in (
            ("MaxPool", {}),
            ("MaxPool", {**pads, "ceil_mode": 1}),
            ("AveragePool", pads),
            ("AveragePool", {**pads, "count_include_pad": 1}),
        ):
            outputs.append(pool(g, kind, (2, channels, *SPATIAL[rank]), **options))
    check(g, *outputs, steps={"pooling": len(outputs)}, reduction=27)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_every_layout(layouts):
    g, outputs = Graph(), []
    for channels in (3, 17, 64):
        x = g.conv(g.input(2, 3, 9, 9), 3, channels)
        outputs += [
            g.op("MaxPool", x, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 0, 1]),
            g.op("AveragePool", x, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 0, 1]),
            g.op("GlobalAveragePool", x),
        ]
    check(g, *outputs, steps={"convolution": 3, "pooling": 9}, reduction=81, layouts=layouts)


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_ceil_mode_at_every_remainder(kind):
    g = Graph()
    options = {"stride": 3, "ceil_mode": 1, "pads": [1, 0, 0, 1]}
    outputs = [pool(g, kind, (1, 17, size, size + 1), **options) for size in range(5, 13)]
    check(g, *outputs, steps={"pooling": len(outputs)}, reduction=9)


def test_ceil_mode_that_counts_padding():
    """A window past the padded input is shorter for ONNX and TVM, and whole for oneDNN."""
    g = Graph()
    y = pool(g, "AveragePool", (1, 17, 6, 6), ceil_mode=1, pads=[1] * 4, count_include_pad=1)
    check(g, y, steps={}, fallbacks={"nn.avg_pool2d": "past the padded input"}, reduction=9)
    g = Graph()
    y = pool(g, "AveragePool", (1, 17, 7, 7), ceil_mode=1, pads=[1] * 4, count_include_pad=1)
    check(g, y, steps=ONE, reduction=9)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "VALID"])
@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_auto_pad(kind, auto_pad):
    g = Graph()
    check(g, pool(g, kind, (2, 17, 10, 11), auto_pad=auto_pad), steps=ONE, reduction=9)


@pytest.mark.parametrize("kind", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pooling(kind):
    """Rows of one extent that no window made are no image."""
    g = Graph()
    outputs = [g.op(kind, g.input(2, 67, *SPATIAL[rank])) for rank in (3, 4, 5)]
    check(g, *outputs, steps={"pooling": 2, "reduction": 1}, reduction=210)


@pytest.mark.parametrize("size", [(1, 1), (3, 2)])
def test_adaptive_average_pooling(size):
    """ONNX has none, Relax has: 9x8 pixels to 1x1 and to 3x2, against numpy."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 17, 9, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.nn.adaptive_avg_pool2d(x, list(size)))
        builder.emit_func_output(y)
    ex = tvm_mxplan.compile(builder.get())
    assert [step.kind for region in ex.report.regions for step in region.steps if step.kind != "reorder"] == [
        "pooling"
    ]
    data = np.random.default_rng(0).standard_normal((2, 17, 9, 8)).astype("float32")
    windows = data.reshape(2, 17, size[0], 9 // size[0], size[1], 8 // size[1])
    assert relative_l2(ex(data)[0].numpy(), windows.astype("float64").mean((3, 5))) <= tolerance(72)


@pytest.mark.parametrize("rank", [3, 4])
def test_dilated_windows_are_left_to_tvm(rank):
    g = Graph()
    y = pool(g, "MaxPool", (1, 17, *SPATIAL[rank]), dilations=[2] * (rank - 2))
    check(g, y, steps={}, fallbacks={f"nn.max_pool{rank - 2}d": "reference code only"})


def test_pad_before_average_pooling_that_counts_it():
    g = Graph()
    padded = g.op("Pad", g.input(1, 17, 7, 7), g.ints(0, 0, 1, 1, 0, 0, 1, 1))
    y = g.op("AveragePool", padded, kernel_shape=[3, 3], count_include_pad=1)
    check(g, y, steps=ONE, reduction=9)


@pytest.mark.parametrize("pads", [(1, 0), (0, 1), (2, 0), (0, 2), (2, 1)])
def test_ceil_mode_that_counts_padding_on_one_side(pads):
    """A window past the padded input is TVM's, others are oneDNN's, whichever side the padding is on."""
    for size in (5, 6, 7):
        g = Graph()
        y = pool(g, "AveragePool", (1, 17, size), ceil_mode=1, pads=pads, count_include_pad=1)
        last = 2 * -(-(size + sum(pads) - 3) // 2)
        last -= 2 if last >= size + pads[0] else 0  # no window stands in the padding alone
        fallbacks = {"nn.avg_pool1d": "past the padded input"} if last + 3 > size + sum(pads) else {}
        check(g, y, steps={} if fallbacks else ONE, fallbacks=fallbacks, reduction=3)


def _pool_of_relu(kind: str, padding: list[int]) -> tuple[tvm_mxplan.Executable, list[str]]:
    """pool(relu(x)) for windows of 2x3; and the kinds of steps in regions."""
    x = relax.Var("x", relax.TensorType((2, 17, 7, 9), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            positive = builder.emit(relax.op.nn.relu(x))
            pooling = getattr(relax.op.nn, kind)
            y = builder.emit_output(pooling(positive, [2, 3], [1, 2], padding))
        builder.emit_func_output(y)
    ex = tvm_mxplan.compile(builder.get())
    return ex, [step.kind for region in ex.report.regions for step in region.steps if step.kind != "reorder"]


@pytest.mark.parametrize("kind", ["max_pool2d", "avg_pool2d"])
@pytest.mark.parametrize("padding", [[2, 0, 0, 0], [0, 3, 0, 0], [0, 0, 2, 0], [0, 0, 0, 3]])
def test_as_much_padding_as_the_window_is_left_to_tvm(kind, padding):
    """The reason is known beforehand, so what stands beside the pooling stays in its region."""
    ex, steps = _pool_of_relu(kind, padding)
    assert steps == ["eltwise"], str(ex.report)
    (fallback,) = ex.report.fallbacks
    assert "is not smaller than the kernel" in fallback.reason
    less = [max(0, side - 1) for side in padding]
    assert _pool_of_relu(kind, less)[1] == ["eltwise", "pooling"]


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_pad_before_other_pooling_stays(kind):
    g = Graph()
    padded = g.op("Pad", g.input(1, 17, 7, 7), g.ints(0, 0, 1, 1, 0, 0, 1, 1))
    y = g.op(kind, padded, kernel_shape=[3, 3], strides=[2, 2])
    check(g, y, steps={"pad": 1, "pooling": 1}, reduction=9)


def test_random_geometry():
    random, g, outputs = np.random.default_rng(0), Graph(), []
    for _ in range(12):
        kernel = random.integers(1, 5, 2)
        batch, channels = int(random.integers(1, 3)), int(random.choice([1, 3, 17, 64, 67]))
        outputs.append(
            g.op(
                str(random.choice(["MaxPool", "AveragePool"])),
                g.input(batch, channels, *random.integers(6, 12, 2).tolist()),
                kernel_shape=kernel.tolist(),
                strides=random.integers(1, 4, 2).tolist(),
                pads=random.integers(0, np.concatenate([kernel, kernel])).tolist(),
                ceil_mode=int(random.integers(0, 2)),
            )
        )
    check(g, *outputs, steps={"pooling": 12}, reduction=16)
