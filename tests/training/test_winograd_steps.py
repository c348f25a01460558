"""Steps of training whose convolutions run by Winograd's algorithm, on filters that change in each step."""

from __future__ import annotations

import numpy as np
import pytest
from convolutional import batch, compiled, convolutional

from tvm_mxplan import training

KINDS = ("convolution", "deconvolution")


def running(step: training.TrainingStep, kind: str) -> list[str]:
    """Implementations of the steps of a kind."""
    return [one.implementation for region in step.report.regions for one in region.steps if one.kind == kind]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["winograd_f2", "winograd_f4"])
@pytest.mark.parametrize(
    "src, outputs, groups", [((2, 19, 9, 8), (40, 48, 35), 4), ((2, 32, 12, 12), (64, 64), 1)]
)
def test_it_computes_what_direct_sums_do(algorithm, src, outputs, groups):
    network = convolutional(src, outputs, groups=groups)
    fast, direct = compiled(network, convolutions=algorithm), compiled(network, convolutions="direct")
    assert running(fast, "convolution") == [algorithm] * len(outputs)
    assert running(fast, "deconvolution") == [algorithm] * (len(outputs) - 1)  # the data gradients
    assert not any("winograd" in name for kind in KINDS for name in running(direct, kind))
    for number in range(5):
        x, labels = batch(src, number)
        assert fast(x, labels) == pytest.approx(direct(x, labels), rel=1e-5)
    mine, other = fast.state_dict(), direct.state_dict()
    for part in (lambda state: state["model"], lambda state: state["slots"]["momentum"]):
        for name, array in part(other).items():
            assert np.linalg.norm(part(mine)[name] - array) < 2e-5 * np.linalg.norm(array)


@pytest.mark.slow
def test_every_step_agrees_with_its_reference():
    src = (2, 19, 9, 8)
    step = compiled(convolutional(src, (40, 48, 35)), convolutions="winograd_f4", opcheck=True)
    assert [running(step, kind) for kind in KINDS] == [["winograd_f4"] * 3, ["winograd_f4"] * 2]
    assert np.isfinite(step(*batch(src, 0)))  # a step that differs raises


@pytest.mark.slow
def test_costs_choose_it_where_it_pays():
    large, small = ((8, 64, 28, 28), (128, 128)), ((1, 64, 4, 4), (64, 64))
    steps = [compiled(convolutional(src, outputs)) for src, outputs in (large, small)]
    assert [running(steps[0], kind) for kind in KINDS] == [["winograd_f4"] * 2, ["winograd_f4"]]
    assert not any("winograd" in name for kind in KINDS for name in running(steps[1], kind))


def test_filters_are_stored_as_their_gradients_are_given():
    """The transform reads any layout, so that nothing is converted, forward or backward."""
    step = compiled(convolutional((4, 64, 14, 14), (64, 128)), convolutions="winograd_f4", layouts="blocked")
    assert [running(step, kind) for kind in KINDS] == [["winograd_f4"] * 2, ["winograd_f4"]]
    assert step.report.state
    assert not step.report.converting
