"""Networks as users bring them agree with onnxruntime at every size, with options and after a reload."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from user_networks import NETWORKS, Network

import tvm_mxplan
from tvm_mxplan.execution.executable import Executable
from tvm_mxplan.testing.reference import onnxruntime_outputs, relative_l2

OPTIONS = [
    {"layouts": "blocked"}, {"layouts": "plain"}, {"layouts": "channels_last"}, {"precision": "auto"},
    {"deterministic": True}, {"memory": "no_reuse"}, {"order": "memory"},
]  # fmt: skip
CHOICES = {"captioner": 1, "segmentation": 1, "detector": 2}
"""A result that is a choice, or made by one: rounding to bfloat16 may turn it round."""


def agree(ex: Executable, network: Network, most: float, without: int = -1) -> None:
    for feed in network.feeds:
        expected = onnxruntime_outputs(network.model, feed, optimise=False)
        for at, (ours, theirs) in enumerate(zip(ex.run(feed), expected, strict=True)):
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
            if at < without or without < 0:
                assert relative_l2(np.float64(ours), np.float64(theirs)) <= most, at


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_right_at_every_size(name: str, tmp_path: Path) -> None:
    """Also after an export."""
    network = NETWORKS[name]()
    ex = tvm_mxplan.compile(network.model, options={"cache": "disabled"})
    assert sum(len(region.steps) for region in ex.report.regions) >= 5, str(ex.report)
    agree(ex, network, 2e-5)
    ex.export(tmp_path / "network.so")
    agree(tvm_mxplan.load(tmp_path / "network.so"), network, 2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_right_with_every_option(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = NETWORKS[name]()
    for options in OPTIONS:
        agree(tvm_mxplan.compile(network.model, options={"cache": "disabled", **options}), network, 2e-5)
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path))
    for outcome in ("miss", "hit"):
        ex = tvm_mxplan.compile(network.model, options={"cache": "on_compile"})
        assert ex.report.cache.outcome == outcome
        agree(ex, network, 2e-5)
    rounded = tvm_mxplan.compile(network.model, options={"cache": "disabled", "precision": "bf16"})
    agree(rounded, network, 3e-2, CHOICES.get(name, -1))
