"""One network through one door, held against PyTorch, in a process of its own; prints JSON."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree

import tvm_mxplan
from tvm_mxplan.frontend.torch import dynamo

from .architectures import PREFIX, NotMade, architecture
from .catalogue import Network, calibrated, network_of

_OPTIONS = {"cache": "disabled"}
_BATCHES = {"exported": (2,), "named": (2, 3, 5), "torch.compile": (2, 3, 5)}


def main(name: str, door: str) -> dict[str, Any]:
    """Returns the error relative to PyTorch and what was compiled, or why no network was made."""
    torch.manual_seed(0)
    try:
        network = architecture(name) if name.startswith(PREFIX) else network_of(name)
    except NotMade as error:
        return {"not_made": str(error)}
    model = calibrated(network.make(), network)
    start = time.perf_counter()
    with torch.no_grad():
        call, executables = _door(model, network, door)
        error = max(_error(model, call, network.inputs(count)) for count in _BATCHES[door])
    made = executables()
    shares = [one.report.offloaded for one in made if one.report.multiply_adds]
    return {
        "error": error,
        "executables": len(made),
        "regions": sum(len(one.report.regions) for one in made),
        "share": min(shares, default=None),
        "seconds": time.perf_counter() - start,
    }


def _door(
    model: torch.nn.Module, network: Network, door: str
) -> tuple[Callable[..., Any], Callable[[], list[tvm_mxplan.Executable]]]:
    """The compiled model as a function of named inputs, and what was compiled for it."""
    if door == "torch.compile":
        compiled = torch.compile(model, backend="mxplan", options=_OPTIONS)
        return compiled, dynamo.executables
    shapes = {name: dict(axes) for name, axes in network.dynamic.items()} if door == "named" else None
    executable = tvm_mxplan.compile(model, kwargs=network.inputs(2), dynamic_shapes=shapes, options=_OPTIONS)

    def call(**inputs: torch.Tensor) -> list[torch.Tensor]:
        arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
        return [torch.from_numpy(result.numpy()) for result in executable(**arrays)]

    return call, lambda: [executable]


def _error(model: torch.nn.Module, call: Callable[..., Any], inputs: dict[str, torch.Tensor]) -> float:
    """The largest relative error of a result, in the L2 norm; infinite where shapes or types differ."""
    expected, actual = (_tensors(function(**inputs)) for function in (model, call))
    if [(t.shape, t.dtype) for t in expected] != [(t.shape, t.dtype) for t in actual]:
        return float("inf")
    if any(not bool(t.any()) for t in expected):
        raise ValueError("a result of zeros shows nothing")
    pairs = ((a.double(), b.double()) for a, b in zip(actual, expected, strict=True))
    return max(float((a - b).norm() / b.norm()) for a, b in pairs)


def _tensors(results: Any) -> list[torch.Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=FutureWarning)
    print(json.dumps(main(*sys.argv[1:3])))
