"""Tensors that cross from region to region in a physical layout, through what TVM computes in between.

Every case says how many reorders are left: those at the model's own inputs and outputs, and no others.  Each
runs twice, the second time with every region checking its memory, the tails of what crosses included.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from onnx_node import Graph, onnxruntime_outputs, run, tolerance, watched

import tvm_mxplan
from tvm_mxplan.report.report import Report
from tvm_mxplan.testing.reference import relative_l2

FORCED = ("blocked", "channels_last")
LAYOUTS = ("cost", *FORCED)
CHANNELS = (17, 64, 67)


def reorders(report: Report) -> int:
    return sum(len(region.reorders) for region in report.regions)


def convolutions(report: Report) -> int:
    return Counter(step.kind for region in report.regions for step in region.steps)["convolution"]


def regions_of_convolutions(report: Report) -> int:
    return sum(any(step.kind == "convolution" for step in region.steps) for region in report.regions)


def check(
    graph: Graph,
    *outputs: str,
    layouts: str,
    convs: int,
    left: int,
    regions: int = 2,
    reduction: int,
) -> Report:
    """Compile; assert the convolutions, the regions and the reorders that are left; compare numbers."""
    ex, actual, expected = run(graph, *outputs, layouts=layouts)
    report = ex.report
    assert convolutions(report) == convs, str(report)
    assert regions_of_convolutions(report) == regions, str(report)
    assert reorders(report) == left, str(report)
    with watched():
        again = [tensor.numpy() for tensor in ex(*graph.inputs.values())]
    for outputs_of_one in (actual, again):
        for ours, theirs in zip(outputs_of_one, expected, strict=True):
            assert ours.shape == theirs.shape
            assert relative_l2(ours, theirs) <= tolerance(reduction), str(report)
    return report


@pytest.mark.parametrize("layouts", FORCED)
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("operator", ["Sin", "Erf", "Floor", "Sign"])
def test_one_operator_between_convolutions(layouts: str, channels: int, batch: int, operator: str) -> None:
    g = Graph()
    src = g.op(operator, g.conv(g.input(batch, channels, 9, 9), channels, channels))
    y = g.conv(src, channels, channels)
    check(g, y, layouts=layouts, convs=2, left=2, reduction=9 * channels)


@pytest.mark.parametrize("batch", [1, 3])
def test_by_cost(batch: int) -> None:
    """A layout that pays for its way in and out pays nothing in between; the report says so."""
    g = Graph()
    y = g.conv(g.op("Sin", g.conv(g.input(batch, 64, 28, 28), 64, 64)), 64, 64)
    report = check(g, y, layouts="cost", convs=2, left=2, reduction=9 * 64)
    assert [len(region.crossing) for region in report.regions] == [1, 1]
    assert str(report).count("crossing without a reorder: ") == 2
    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report


def comparison_and_choice(g: Graph, x: str, channels: int) -> str:
    """Two regions meet in operators on float and bool, with a number and with what varies by channel."""
    a = g.op("Erf", g.conv(x, channels, channels))
    b = g.op("Floor", g.op("Sin", g.conv(x, channels, channels)))
    greater = g.op("Greater", a, g.constant(channels, 1, 1))
    return g.conv(g.op("Where", greater, a, b), channels, channels)


def from_region_to_region(g: Graph, x: str, channels: int) -> str:
    a = g.conv(x, channels, channels)
    return g.op("Add", g.conv(g.op("Sin", a), channels, channels), a)


@pytest.mark.parametrize("layouts", FORCED)
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize(
    ("build", "convs", "left"), [(comparison_and_choice, 3, 3), (from_region_to_region, 2, 2)]
)
def test_regions_that_meet(
    build: Callable[[Graph, str, int], str], convs: int, left: int, channels: int, layouts: str
) -> None:
    g = Graph()
    y = build(g, g.input(2, channels, 9, 9), channels)
    check(g, y, layouts=layouts, convs=convs, regions=convs, left=left, reduction=9 * channels)


def squeeze_and_excite_with_a_gate_of_tvm(g: Graph, x: str, channels: int) -> str:
    """Image and gate leave one region and meet in the next, which starts with their product."""
    image = g.conv(x, channels, channels)
    squeezed = g.conv(g.op("GlobalAveragePool", image), channels, channels, kernel=1)
    return g.conv(g.op("Mul", image, g.op("Sin", squeezed)), channels, channels)


def a_region_that_starts_with_a_binary_operator(g: Graph, x: str, channels: int) -> str:
    src = g.conv(x, channels, channels)
    return g.conv(g.op("Mul", g.op("Erf", src), g.op("Floor", src)), channels, channels)


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    ("build", "convs"),
    [(squeeze_and_excite_with_a_gate_of_tvm, 3), (a_region_that_starts_with_a_binary_operator, 2)],
)
def test_products_of_what_crosses(
    build: Callable[[Graph, str, int], str], convs: int, batch: int, channels: int, layouts: str
) -> None:
    g = Graph()
    y = build(g, g.input(batch, channels, 28, 28), channels)
    check(g, y, layouts=layouts, convs=convs, left=2, reduction=9 * channels)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_a_chain_of_regions(layouts: str) -> None:
    """More than ten: regions are laid out in the order in which they run."""
    g = Graph()
    y = g.input(1, 64, 14, 14)
    for _ in range(11):
        y = g.conv(g.op("Sin", y) if g.nodes else y, 64, 64)
    check(g, y, layouts=layouts, convs=11, regions=11, left=2, reduction=9 * 64)


@pytest.mark.parametrize("layouts", FORCED)
def test_plain_and_physical_out_of_one_region(layouts: str) -> None:
    """One reorder for the model's input, one for its output, one for the operator that needs rows."""
    g = Graph()
    a = g.conv(g.input(2, 64, 9, 9), 64, 64)
    rows = g.op("CumSum", a, g.constant(data=np.array(3, "int64")))
    check(g, g.conv(g.op("Sin", a), 64, 64), rows, layouts=layouts, convs=2, left=3, reduction=9 * 64)


@pytest.mark.parametrize("operator", ["Cos", "Cosh"])
def test_what_would_dirty_a_padded_tail_crosses_plain(operator: str) -> None:
    def graph(channels: int) -> tuple[Graph, str]:
        g = Graph()
        src = g.op(
            "Floor", g.op(operator, g.op("Sin", g.conv(g.input(2, channels, 9, 9), channels, channels)))
        )
        return g, g.conv(src, channels, channels)

    for layouts, channels, left in (("blocked", 67, 4), ("blocked", 64, 2), ("channels_last", 67, 2)):
        g, y = graph(channels)
        check(g, y, layouts=layouts, convs=2, regions=2, left=left, reduction=9 * channels)


def test_the_models_own_results_stay_plain() -> None:
    g = Graph()
    a = g.op("Sin", g.conv(g.input(2, 64, 9, 9), 64, 64))
    check(g, g.conv(a, 64, 64), a, layouts="channels_last", convs=2, left=4, reduction=9 * 64)


@pytest.mark.parametrize("layouts", FORCED)
def test_a_dynamic_batch(layouts: str) -> None:
    g = Graph()
    y = g.conv(g.op("Atan", g.conv(g.input(3, 64, 9, 9), 64, 64)), 64, 64)
    model = g.model(y)
    del model.graph.value_info[:]
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    ex = tvm_mxplan.compile(model, options={"layouts": layouts})
    assert (convolutions(ex.report), reorders(ex.report)) == (2, 2), str(ex.report)
    for batch in (1, 3):
        inputs = {"x0": g.random.standard_normal((batch, 64, 9, 9)).astype("float32")}
        (expected,) = onnxruntime_outputs(model, inputs, optimise=False)
        assert relative_l2(ex(inputs["x0"])[0].numpy(), expected) <= tolerance(9 * 64)
        with watched():
            assert relative_l2(ex(inputs["x0"])[0].numpy(), expected) <= tolerance(9 * 64)
