"""Split and Slice between steps: views where a layout stores a section in one piece, copies elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_node import LAYOUTS, Graph, check, computing, run, tolerance

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.memory.elide_concats import copied_pieces
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing.reference import relative_l2

POLICIES = ("cost", *LAYOUTS)
SHAPE = (2, 17, 6, 5)


def slices(
    graph: Graph, x: str, starts: list[int], ends: list[int], axes: list[int], steps: list[int]
) -> str:
    return graph.op("Slice", x, *[graph.ints(*numbers) for numbers in (starts, ends, axes, steps)])


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("sections", [(1, 16), (5, 12), (3, 3, 11)], ids=str)
def test_split_along_every_axis(sections, layouts):
    g, outputs = Graph(), []
    for axis in (0, 1, 2, -1):
        shape = list(SHAPE)
        shape[axis] = 17
        pieces = g.ops("Split", len(sections), g.op("Tanh", g.input(*shape)), g.ints(*sections), axis=axis)
        outputs += [g.op("Sigmoid", piece) for piece in pieces]
    report = run_offloaded(g, outputs, layouts)
    kinds = [step.kind for step in computing(report)]
    assert kinds.count("eltwise") == 4 + len(outputs)
    assert kinds.count("slice") < len(outputs)  # along axis 0 they are views


def run_offloaded(graph: Graph, outputs: list[str], layouts: str, reduction: int = 1):
    """Run and compare; everything must be in regions."""
    ex, actual, expected = run(graph, *outputs, layouts=layouts)
    assert not ex.report.fallbacks and computing(ex.report), str(ex.report)
    errors = [relative_l2(ours, theirs) for ours, theirs in zip(actual, expected, strict=True)]
    assert max(errors) <= tolerance(reduction), f"{errors}\n{ex.report}"
    return ex.report


def test_split_into_equal_sections():
    g = Graph(opset=13)
    pieces = g.ops("Split", 3, g.op("Tanh", g.input(2, 51, 4)), axis=1)
    check(g, *[g.op("Sigmoid", piece) for piece in pieces], steps={"eltwise": 4, "slice": 3})


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("batch", [1, 3])
def test_random_slices(batch, layouts):
    g, outputs = Graph(batch), []
    for _ in range(12):
        shape = (batch, int(g.random.integers(1, 40)), *(int(n) for n in g.random.integers(2, 7, 2)))
        starts = [int(g.random.integers(0, extent)) for extent in shape]
        ends = [
            int(g.random.integers(start + 1, extent + 1)) for start, extent in zip(starts, shape, strict=True)
        ]
        axes = [axis for axis in range(4) if g.random.random() < 0.5] or [1]
        sliced = slices(
            g,
            g.op("Tanh", g.input(*shape)),
            [starts[a] for a in axes],
            [ends[a] for a in axes],
            axes,
            [1] * len(axes),
        )
        outputs.append(g.op("Sigmoid", sliced))
    run_offloaded(g, outputs, layouts)


def test_bounds_from_the_end_and_past_it():
    g, outputs = Graph(), []
    for start, end in ((-5, 2**63 - 1), (-(2**31), -3), (4, 100), (0, -1)):
        x = g.op("Tanh", g.input(*SHAPE))
        outputs.append(g.op("Sigmoid", slices(g, x, [start], [end], [-3], [1])))
    check(g, *outputs, steps={"eltwise": 8, "slice": 4})


def test_strides_are_left_to_tvm():
    g = Graph()
    y = g.op("Sigmoid", slices(g, g.op("Tanh", g.input(*SHAPE)), [0], [17], [1], [2]))
    check(g, y, steps={"eltwise": 2}, fallbacks={"strided_slice": "strides"})


def test_slices_alone_are_left_to_tvm():
    g = Graph()
    y = slices(g, g.input(*SHAPE), [3], [9], [1], [1])
    ex, (actual,), (expected,) = run(g, y)
    assert not ex.report.regions
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("layouts", POLICIES)
def test_views_of_an_input_and_of_a_result(layouts):
    """At batch 1, halves of an input are read where they stand; what is returned is a copy."""
    g = Graph()
    left, right = g.ops("Split", 2, g.input(1, 34, 5, 5), g.ints(17, 17), axis=1)
    y = g.conv(g.op("Add", left, right), 17, 34)
    returned, inner = g.ops("Split", 2, y, g.ints(18, 16), axis=1)
    report = run_offloaded(g, [returned, g.op("Relu", g.conv(inner, 16, 3)), y], layouts, 17 * 9)
    assert any(step.kind == "slice" for step in computing(report))


@pytest.mark.parametrize("layouts", ["plain", "blocked"])
def test_no_result_overwrites_what_another_view_needs(layouts):
    """The last reader of a value reads a part of it as well; a part outlives the whole's own last reader."""
    g = Graph()
    x = g.conv(g.input(1, 16, 5, 5), 16, 32)
    half, other = g.ops("Split", 2, x, g.ints(16, 16), axis=1)
    summed = g.op("Relu", g.op("Add", g.conv(half, 16, 32), x))
    report = run_offloaded(g, [g.conv(summed, 32, 3), g.conv(other, 16, 3)], layouts, 32 * 9)
    assert not any(step.kind == "slice" for step in computing(report))


def shuffle_block(g: Graph, x: str, batch: int, channels: int, size: int) -> str:
    """ShuffleNet v2: one half goes through three convolutions, then both are joined and shuffled."""
    half = channels // 2
    left, y = g.ops("Split", 2, x, g.ints(half, half), axis=1)
    y = g.op("Relu", g.conv(y, half, half, kernel=1))
    y = g.conv(y, half, half, groups=half)
    y = g.op("Relu", g.conv(y, half, half, kernel=1))
    y = g.op("Concat", left, y, axis=1)
    y = g.op("Reshape", y, g.ints(batch, 2, half, size, size))
    y = g.op("Transpose", y, perm=[0, 2, 1, 3, 4])
    return g.op("Reshape", y, g.ints(batch, channels, size, size))


def csp_block(g: Graph, x: str, channels: int) -> str:
    """Cross stage partial, as detectors have it: what was split is concatenated with what became of it."""
    half = channels // 2
    left, right = g.ops(
        "Split", 2, g.op("Relu", g.conv(x, channels, channels, kernel=1)), g.ints(half, half), axis=1
    )
    inner = g.op("Relu", g.conv(g.op("Relu", g.conv(right, half, half)), half, half))
    joined = g.op("Concat", left, right, g.op("Add", inner, right), axis=1)
    return g.op("Relu", g.conv(joined, half * 3, channels, kernel=1))


@pytest.mark.parametrize("layouts", POLICIES)
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("channels", [32, 34])
def test_shufflenet_block(channels, batch, layouts):
    g = Graph()
    x = g.op("Relu", g.conv(g.input(batch, 16, 8, 8), 16, channels))
    for _ in range(2):
        x = shuffle_block(g, x, batch, channels, 8)
    report = run_offloaded(g, [g.conv(x, channels, 3)], layouts, channels * 9)
    copies = sum(step.kind == "slice" for step in computing(report))
    if batch == 1 and layouts in ("plain", "blocked") and channels == 32:
        assert copies == 0, str(report)
    elif batch > 1:
        assert copies == 4, str(report)


@pytest.mark.parametrize("layouts", POLICIES)
@pytest.mark.parametrize("batch", [1, 4])
def test_cross_stage_partial_block(batch, layouts):
    g = Graph()
    x = g.op("Relu", g.conv(g.input(batch, 16, 8, 8), 16, 32))
    report = run_offloaded(g, [g.conv(csp_block(g, csp_block(g, x, 32), 32), 32, 3)], layouts, 32 * 9)
    copies = sum(step.kind == "slice" for step in computing(report))
    if batch == 1 and layouts in ("plain", "blocked"):
        assert copies == 0, str(report)
    elif batch > 1:
        assert copies == 2, str(report)


def test_a_cross_stage_partial_block_copies_nothing():
    """One image, channels in blocks: both halves and what became of one are made where the whole stands."""
    g = Graph()
    y = g.conv(csp_block(g, g.conv(g.input(1, 16, 8, 8), 16, 32), 32), 32, 3)
    ex, _, _ = run(g, y, layouts="cost")
    (program,) = decoded_programs(ex.module)
    concats = [step for step in program.steps if isinstance(step.attrs, ir.Concat)]
    assert len(concats) == 1 and copied_pieces(program, concats[0]) == []
    assert not any(isinstance(step.attrs, ir.Slice) for step in program.steps)
