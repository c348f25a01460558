"""Gates of ReLU and maxima of pools that roundings decide, and what that does to gradients; needs torch.

PyTorch in float64 makes a step as it is, and steps in which each result of a convolution or dense layer has
an error of a given size.  Gradients that differ by far more than the error come of elements that are decided
otherwise: what stands at an edge takes the gradient of one side or of the other, as any float32 engine does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from .compared_steps import Torch, furthest
from .networks import Network


class Trial(NamedTuple):
    """A step with errors.

    Attributes
    ----------
    gates, maxima : so many elements and windows are decided otherwise than without errors.
    gradients : the largest relative difference of a gradient, in the L2 norm.
    """

    gates: int
    maxima: int
    gradients: float


class _Decisions(NamedTuple):
    """The decisions of a step: signs behind each ReLU, places of each pool's maxima."""

    gates: list[torch.Tensor]
    maxima: list[torch.Tensor]


def trials(network: Network, batch: int, error: float, count: int) -> Iterator[Trial]:
    """Steps of the same weights and batch, each with errors of another seed.

    Parameters
    ----------
    error : standard deviation of the errors, relative to the root of the mean square of a layer's result.
    """
    model = network.made()
    torch.manual_seed(1)
    inputs, labels = network.batch(batch)
    decided, wanted = _step(model, inputs, labels, 0.0, 0)
    for seed in range(1, count + 1):
        others, found = _step(model, inputs, labels, error, seed)
        yield Trial(
            _changed(decided.gates, others.gates),
            _changed(decided.maxima, others.maxima),
            furthest(found, wanted)[0],
        )


def printed(network: Network, batch: int, error: float, count: int) -> None:
    """The trials, a line each."""
    print(f"{network.name}: PyTorch in float64 with errors of {error:.0e}", flush=True)
    for gates, maxima, gradients in trials(network, batch, error, count):
        print(f"  gates {gates}, maxima {maxima}, gradients off by {gradients:.0e}", flush=True)


def _changed(before: list[torch.Tensor], after: list[torch.Tensor]) -> int:
    return sum(int((one != other).sum()) for one, other in zip(before, after, strict=True))


def _step(
    model: torch.nn.Module, inputs: Mapping[str, torch.Tensor], labels: torch.Tensor, error: float, seed: int
) -> tuple[_Decisions, dict[str, np.ndarray]]:
    """The decisions of a step with errors, and its gradients."""
    side = Torch(model, torch.float64)
    with _watched(side.model, error, torch.Generator().manual_seed(seed)) as decisions:
        side.step(inputs, labels)
    return decisions, side.gradients()


@contextmanager
def _watched(model: torch.nn.Module, error: float, noise: torch.Generator) -> Iterator[_Decisions]:
    decisions = _Decisions([], [])
    handles = []
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d | torch.nn.Linear):
            handles.append(module.register_forward_hook(partial(_disturb, error, noise)))
        elif isinstance(module, torch.nn.ReLU | torch.nn.Hardtanh):
            handles.append(module.register_forward_hook(partial(_note_gates, decisions)))
        elif isinstance(module, torch.nn.MaxPool2d):
            handles.append(module.register_forward_hook(partial(_note_maxima, decisions)))
    try:
        yield decisions
    finally:
        for handle in handles:
            handle.remove()


def _disturb(
    error: float, noise: torch.Generator, _module: Any, _args: Any, out: torch.Tensor
) -> torch.Tensor:
    size = float(out.detach().square().mean().sqrt())
    return out + error * size * torch.randn(out.shape, dtype=out.dtype, generator=noise)


def _note_gates(decisions: _Decisions, module: torch.nn.Module, _args: Any, out: torch.Tensor) -> None:
    least, most = (module.min_val, module.max_val) if isinstance(module, torch.nn.Hardtanh) else (0, np.inf)
    decisions.gates.append((out.detach() > least) & (out.detach() < most))


def _note_maxima(decisions: _Decisions, module: torch.nn.MaxPool2d, args: Any, out: torch.Tensor) -> None:
    x = args[0].detach()
    settings = (module.kernel_size, module.stride, module.padding, module.dilation, module.ceil_mode)
    _, places = torch.nn.functional.max_pool2d(x, *settings, return_indices=True)
    # A window without a number above 0 has no gradient behind a ReLU, whichever of its zeros is taken.
    decisions.maxima.append(torch.where(out.detach() > 0, places, -1))
