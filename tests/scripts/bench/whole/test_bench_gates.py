"""scripts/bench training_agreement --errors: decisions that errors change, and what they do to gradients."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; it is no dependency")

sys.path.append(str(Path(__file__).resolve().parents[4] / "scripts"))
from _bench.training import gates  # noqa: E402
from _bench.training.networks import Network  # noqa: E402


def _made() -> torch.nn.Module:
    convolution = torch.nn.Conv2d(3, 8, 3, padding=1)
    behind = (torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(128, 10))
    return torch.nn.Sequential(convolution, *behind)


def _batch(count: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    return {"input": torch.randn(count, 3, 8, 8)}, torch.randint(0, 10, (count,))


NETWORK = Network("small", _made, _batch)


def test_without_errors_nothing_changes() -> None:
    assert list(gates.trials(NETWORK, 4, 0.0, 2)) == [gates.Trial(0, 0, 0.0)] * 2


def test_large_errors_change_gates_and_maxima_and_gradients_by_far_more() -> None:
    small, large = (next(gates.trials(NETWORK, 4, error, 1)) for error in (1e-12, 0.1))
    assert (small.gates, small.maxima) == (0, 0) and small.gradients < 1e-10
    assert large.gates > 0 and large.maxima > 0 and large.gradients > 0.1
