"""Random small graphs: whatever the layouts, fusions and memory plans, the numbers are onnxruntime's."""

from __future__ import annotations

import pytest
from onnx_node import LAYOUTS, computing, run
from random_graphs import crossing_graph, image_graph, matrix_graph, well_conditioned

from tvm_mxplan import opcheck
from tvm_mxplan.testing.reference import relative_l2


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("make", [image_graph, matrix_graph])
def test_random_graph(make, seed):
    graph, outputs = make(seed)
    ex, actual, expected = run(graph, *outputs, layouts=LAYOUTS[seed % 3])
    assert computing(ex.report)
    assert not [step for step in computing(ex.report) if step.is_reference], str(ex.report)
    checked = opcheck.check(ex, *graph.inputs.values())
    assert checked.steps >= len(computing(ex.report))
    assert checked.first is None, checked
    assert well_conditioned(list(expected))
    for ours, theirs in zip(actual, expected, strict=True):
        assert relative_l2(ours, theirs) <= 1e-4, str(ex.report)


@pytest.mark.slow
@pytest.mark.parametrize("layouts", ["cost", "channels_last", "blocked"])
def test_random_graphs_of_several_regions(layouts):
    """Tensors cross from region to region, through operators that TVM keeps."""
    crossing = 0
    for seed in range(8):
        graph, outputs = crossing_graph(seed)
        ex, actual, expected = run(graph, *outputs, layouts=layouts)
        assert well_conditioned(list(expected))
        for ours, theirs in zip(actual, expected, strict=True):
            assert relative_l2(ours, theirs) <= 1e-4, str(ex.report)
        crossing += sum(len(region.crossing) for region in ex.report.regions)
    assert crossing > 0
