"""``InferLayouts`` on whole networks: how many reorders are left, and where they stand."""

from __future__ import annotations

import pytest

import tvm_mxplan
from tvm_mxplan.report.report import ReorderReport, Report
from tvm_mxplan.testing import zoo

NETWORKS = (
    "resnet50", "vgg19", "mobilenet_v2", "densenet121", "squeezenet", "inception_v1", "inception_v2",
    "bvlc_alexnet", "zfnet512", "shufflenet",
)  # fmt: skip


def is_in_the_middle(reorder: ReorderReport, report: Report) -> bool:
    """Whether images stand on both sides: neither the network's input nor what pooling left of the image."""
    steps = {step.name: step for region in report.regions for step in region.steps}
    producer, consumer = steps.get(reorder.producer), steps.get(reorder.consumer)
    if producer is None or consumer is None:
        return False
    return any(dim != "1" for dim in producer.shape[2:])


@pytest.mark.parametrize("name", NETWORKS)
def test_at_most_one_reorder_and_none_in_the_middle(name: str) -> None:
    report = tvm_mxplan.compile(zoo.load(name)).report
    (region,) = report.regions
    assert sum(step.kind == "convolution" for step in region.steps) >= 5
    assert sum(step.kind == "reorder" for step in region.steps) == len(region.reorders) <= 1
    assert not any(is_in_the_middle(reorder, report) for reorder in region.reorders)


def test_policies_differ_in_their_reorders() -> None:
    """The measure of the test above: naive reorders around every convolution, cost nearly never."""
    model = zoo.load("squeezenet")
    naive = tvm_mxplan.compile(model, options={"layouts": "naive"}).report
    assert len(naive.regions[0].reorders) >= 40
    assert sum(is_in_the_middle(reorder, naive) for reorder in naive.regions[0].reorders) >= 40
