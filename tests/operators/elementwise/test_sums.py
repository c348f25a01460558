"""Sums of many terms that are nearly alike, whose rounding errors add up, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_node import LAYOUTS, Graph, computing, run

ALLOWED = 3e-5  # half the error that a stage may have at worst


def nearly_alike(*shape: int) -> np.ndarray:
    return (0.1 + 1e-4 * np.random.default_rng(0).standard_normal(shape)).astype("float32")


def check(g: Graph, y: str, steps: dict[str, int], reference, layouts: str = "channels_last") -> None:
    ex, (actual,), (expected,) = run(g, y, layouts=layouts, reference=reference)
    kinds = [step.kind for step in computing(ex.report)]
    assert {kind: kinds.count(kind) for kind in kinds} == steps, str(ex.report)
    assert actual.shape == expected.shape
    assert np.abs(actual / expected - 1).max() <= ALLOWED


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("size", [(384, 400), (1021, 67)])
def test_global_average(size, layouts):
    g = Graph()
    x = g.op("Neg", g.input(data=nearly_alike(1, 3, *size)))
    y = g.op("GlobalAveragePool", x)
    steps = {"eltwise": 1, "pooling": 2}
    check(g, y, steps, lambda x: [-x.mean((2, 3), keepdims=True)], layouts)


@pytest.mark.parametrize("kind", ["Mean", "Sum"])
@pytest.mark.parametrize(
    ("shape", "axes", "steps"),
    [
        ((4, 200_000), [1], {"reduction": 2}),
        ((2, 3, 70_000), [1, 2], {"reduction": 2}),
        ((4, 100_003), [-1], {"pad": 1, "reduction": 2}),
    ],
)
def test_reductions_over_the_last_axes(kind, shape, axes, steps):
    """Exact divisors, several axes, and a prime number of terms."""
    g = Graph(opset=11)
    y = g.op(f"Reduce{kind}", g.input(data=nearly_alike(*shape)), axes=axes, keepdims=0)
    check(g, y, steps, lambda x: [getattr(x, kind.lower())(tuple(axes))])


def test_the_mean_of_a_long_row_of_channels():
    """Rows that no window made are summed, in stages."""
    for extent, steps in ((20_000, {"reduction": 2}), (20_011, {"pad": 1, "reduction": 2})):
        g = Graph(opset=11)
        y = g.op("ReduceMean", g.input(data=nearly_alike(2, 5, extent)), axes=[2])
        check(g, y, steps, lambda x: [x.mean(2, keepdims=True)])


@pytest.mark.parametrize("kind", ["Mean", "Sum"])
@pytest.mark.parametrize("axes", [None, [0, 1, 2], [0, 2], [0], [0, 1], [1]])
def test_reductions_over_other_axes(kind, axes):
    """Of which TVM runs at least a part."""
    g = Graph(opset=11)
    x = g.input(data=nearly_alike(256, 64, 48))
    y = g.op(f"Reduce{kind}", x, keepdims=0, **({} if axes is None else {"axes": axes}))
    _, (actual,), (expected,) = run(
        g, y, reference=lambda x: [getattr(x, kind.lower())(None if axes is None else tuple(axes))]
    )
    assert actual.shape == expected.shape
    assert np.abs(actual / expected - 1).max() <= ALLOWED / 10


@pytest.mark.parametrize(("ceil", "counted"), [(0, 0), (0, 1), (1, 0)])
@pytest.mark.parametrize("layouts", ["channels_last", "plain"])
def test_large_windows(layouts, ceil, counted):
    """Strides, uneven padding, and windows that end past the image: in two stages as in one."""
    g = Graph(opset=19)
    y = g.op(
        "AveragePool", g.input(1, 3, 101, 98), kernel_shape=[33, 65], strides=[2, 3], pads=[5, 0, 11, 20],
        ceil_mode=ceil, count_include_pad=counted,
    )  # fmt: skip
    ex, (actual,), (expected,) = run(g, y, layouts=layouts)
    assert [step.kind for step in computing(ex.report)] == ["pooling", "pooling"]
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
