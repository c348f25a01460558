"""Kernels of batch norms in training are held against all of their results."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.references import evaluate
from tvm_mxplan.verify import channels

STEPS = {
    "forward": ir.BatchNormalizationTraining(1e-3),
    "backward": ir.BatchNormalizationBackward(1e-3),
}
READ = {"forward": ("scale", "shift"), "backward": ("mean", "variance", "scale")}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("worked_out", [1 << 20, 1])
def test_a_wrong_number_in_any_result_is_found(
    name: str, worked_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "WORKED_OUT", worked_out)
    random = np.random.default_rng(0)
    step = ir.Step("", STEPS[name], ())
    images = ("src",) if name == "forward" else ("src", "gradient")
    given = {role: random.standard_normal((3, 37, 5, 4)).astype("float32") for role in images}
    given |= {role: random.uniform(0.5, 2, 37).astype("float32") for role in READ[name]}
    exact = evaluate(step, given["src"].shape, {role: [array] for role, array in given.items()}, ())
    right = {role: estimate.value.astype("float32") for role, estimate in exact.items()}
    assert len(right) == 3
    assert channels.judge(step, given, right) is None
    for role, array in right.items():
        wrong = array.copy()
        wrong[(0, 36, 4, 3) if array.ndim > 1 else 36] += 0.01
        finding = channels.judge(step, given, {**right, role: wrong})
        assert finding is not None
        assert role in str(finding)
