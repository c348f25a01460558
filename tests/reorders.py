"""Reorders of one region's report: their number, and the places where they stand."""

from __future__ import annotations

from tvm_mxplan.report.report import ReorderReport, Report


def assert_at_most_one_and_none_in_the_middle(report: Report) -> None:
    (region,) = report.regions
    assert sum(step.kind == "convolution" for step in region.steps) >= 5
    assert sum(step.kind == "reorder" for step in region.steps) == len(region.reorders) <= 1
    assert not any(is_in_the_middle(reorder, report) for reorder in region.reorders)


def is_in_the_middle(reorder: ReorderReport, report: Report) -> bool:
    """Whether images stand on both sides: neither the network's input nor what pooling left of the image."""
    steps = {step.name: step for region in report.regions for step in region.steps}
    producer, consumer = steps.get(reorder.producer), steps.get(reorder.consumer)
    if producer is None or consumer is None:
        return False
    return any(dim != "1" for dim in producer.shape[2:])
