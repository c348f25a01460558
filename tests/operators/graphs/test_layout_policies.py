"""Every layout policy computes the same: random graphs of odd channels, and a concat that broke others.

The published failure: 32 and 1 channels of 512 x 512, concatenated in a blocked layout.
"""

from __future__ import annotations

import pytest
from onnx_node import Graph, computing, run, watched
from random_graphs import well_conditioned, wide_graph

from tvm_mxplan.core.policies import POLICIES
from tvm_mxplan.testing.reference import relative_l2


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(10))
def test_random_graphs_of_1_to_130_channels(seed: int, policy: str) -> None:
    graph, outputs = wide_graph(seed)
    ex, actual, expected = run(graph, *outputs, layouts=policy)
    assert "convolution" in {step.kind for step in computing(ex.report)}
    assert not [step for step in computing(ex.report) if step.is_reference], str(ex.report)
    assert ex.report.regions[0].layouts.policy == policy
    assert well_conditioned(list(expected))
    for ours, theirs in zip(actual, expected, strict=True):
        assert relative_l2(ours, theirs) <= 1e-4, str(ex.report)


def concat_of_32_and_1(followed_by: str) -> tuple[Graph, str, int]:
    """The graph, its output, and how many convolutions it has."""
    g = Graph()
    x = g.input(1, 3, 512, 512)
    whole = g.op("Concat", g.conv(x, 3, 32), g.op("Sigmoid", g.conv(x, 3, 1)), axis=1)
    if followed_by == "convolution":
        return g, g.conv(whole, 33, 4), 3
    if followed_by == "sum":
        return g, g.op("Sum", whole, g.conv(x, 3, 33, kernel=1)), 3
    return g, whole, 2


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("followed_by", ["nothing", "convolution", "sum"])
def test_concat_of_32_and_1_channels(followed_by: str, policy: str) -> None:
    graph, output, convolutions = concat_of_32_and_1(followed_by)
    ex, (actual,), (expected,) = run(graph, output, layouts=policy)
    kinds = [step.kind for step in computing(ex.report)]
    assert (kinds.count("convolution"), kinds.count("concat")) == (convolutions, 1)
    assert relative_l2(actual, expected) <= 1e-5
    with watched():
        assert relative_l2(ex(*graph.inputs.values())[0].numpy(), expected) <= 1e-5
