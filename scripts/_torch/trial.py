"""One network through one door, held against PyTorch, in a process of its own; prints JSON."""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import torch
from torch.utils import _pytree

import tvm_mxplan
from tvm_mxplan.execution.runner import save_outputs
from tvm_mxplan.frontend.torch import dynamo

from .architectures import PREFIX, NotMade, architecture, summary, with_named_axes
from .catalogue import Network, calibrated, network_of
from .libraries import library_network

_OPTIONS = {"cache": "disabled"}
_FIXED, _SEVERAL = (2,), (2, 3, 5)
_BATCHES = {
    "exported": _FIXED,
    "named": _SEVERAL,
    "onnx": _FIXED,
    "onnx named": _SEVERAL,
    "torch.compile": _SEVERAL,
}


def main(name: str, door: str, folder: str = "") -> dict[str, Any]:
    """Returns the error relative to PyTorch and what was compiled, or why no network was made.

    An ONNX model is kept in ``folder``, if one is given, with inputs of the same name beside it.
    """
    torch.manual_seed(0)
    try:
        network = architecture(name) if name.startswith(PREFIX) else library_network(name) or network_of(name)
        if name.startswith(PREFIX) and "named" in door:
            network = with_named_axes(network)
        model = calibrated(network.make(), network)
        given = _given(model, network, door)
        if folder and isinstance(given, bytes):
            _keep(Path(folder), f"{name} {door.removeprefix('onnx')}", given, network)
    except NotMade as error:
        return {"not_made": str(error)}
    start = time.perf_counter()
    with torch.no_grad():
        call, executables = _compiled(given, network, door)
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


def _given(model: torch.nn.Module, network: Network, door: str) -> torch.nn.Module | bytes:
    """The module itself, or the ONNX model that PyTorch's exporter makes of it."""
    if not door.startswith("onnx"):
        return model
    inputs = network.inputs(2)
    named = network.dynamic if door == "onnx named" else {}
    shapes = {name: dict.fromkeys(named.get(name, {}), torch.export.Dim.DYNAMIC) for name in inputs}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = Path(folder) / "model.onnx"
        try:
            torch.onnx.export(
                model,
                kwargs=inputs,
                f=str(path),
                dynamo=True,
                external_data=False,
                dynamic_shapes=shapes if named else None,
                verbose=False,
            )
        except Exception as error:
            raise NotMade(summary(error)) from error
        return path.read_bytes()


def _keep(folder: Path, name: str, model: bytes, network: Network) -> None:
    """Write a model and the inputs that it reads."""
    path = folder / re.sub(r"\W+", "_", name).strip("_")
    read = {value.name for value in onnx.load_from_string(model).graph.input}
    inputs = {name: tensor.numpy() for name, tensor in network.inputs(2).items() if name in read}
    folder.mkdir(parents=True, exist_ok=True)
    save_outputs(path.with_suffix(".npz"), inputs)
    path.with_suffix(".onnx").write_bytes(model)


def _compiled(
    given: torch.nn.Module | bytes, network: Network, door: str
) -> tuple[Callable[..., Any], Callable[[], list[tvm_mxplan.Executable]]]:
    """The compiled model as a function of named inputs, and the executables behind it."""
    if door == "torch.compile":
        compiled = torch.compile(given, backend="mxplan", options=_OPTIONS)
        return compiled, dynamo.executables
    if isinstance(given, bytes):
        model = onnx.load_from_string(given)
        names = {value.name for value in model.graph.input}
        executable = tvm_mxplan.compile(model, options=_OPTIONS)
    else:
        names = set(network.inputs(2))
        shapes = {name: dict(axes) for name, axes in network.dynamic.items()} if door == "named" else None
        executable = tvm_mxplan.compile(
            given, kwargs=network.inputs(2), dynamic_shapes=shapes, options=_OPTIONS
        )

    def call(**inputs: torch.Tensor) -> list[torch.Tensor]:
        arrays = {name: tensor.numpy() for name, tensor in inputs.items() if name in names}
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
    print(json.dumps(main(*sys.argv[1:4])))
