"""``InferLayouts`` on whole networks: how many reorders are left, and where they stand."""

from __future__ import annotations

import pytest
import tvm
from relax_programs import parse
from tvm import relax

import tvm_mxplan
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.choices import Choices
from tvm_mxplan.core.layout_decision import LayoutDecision
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.layout import InferLayouts
from tvm_mxplan.passes.region import BuildPrograms, PartitionRegions
from tvm_mxplan.passes.region.name_operators import NameOperators
from tvm_mxplan.report import ReorderReport, Report
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


def test_a_replayed_choice_says_which_of_its_own_steps_were_forced() -> None:
    """Options name steps of the whole module; each region tells of those that are its."""
    pool = "R.nn.max_pool2d({0}, pool_size=[3, 3], padding=[1, 1])"
    lines = f"a = {pool.format('x')}\nb = R.sin(a)\nc = {pool.format('b')}\nd = R.exp(c)\nreturn d"
    layers = {"max_pool2d_1": "nChw16c"}

    def decided(choices: Choices) -> list[LayoutDecision]:
        backend, decisions = OneDNN(), {}
        passes = [
            relax.transform.ConvertToDataflow(1),
            NameOperators(),
            DispatchOperators(preference_of([backend])),
            PartitionRegions(),
            BuildPrograms(backend),
            InferLayouts(backend, layers=layers, decisions=decisions, choices=choices),
        ]
        tvm.transform.Sequential(passes)(parse(lines, 'x: R.Tensor((1, 64, 8, 8), "float32")'))
        return [decisions[name] for name in sorted(decisions)]

    first = Choices()
    made, again = decided(first), decided(Choices(known=first.made))
    for decisions, replayed in ((made, False), (again, True)):
        assert [(one.forced, one.replayed) for one in decisions] == [
            ((), replayed),
            (("max_pool2d_1",), replayed),
        ]
    assert (first.regions, first.used) == (2, 0)
