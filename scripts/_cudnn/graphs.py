"""Prints the engines of operation graphs that no step makes yet, as docs/cudnn.md shows them, without a GPU.

scripts/cudnn graphs tests/byoc/cudnn/devices/*.json
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tvm_mxplan.byoc.cudnn import library
from tvm_mxplan.byoc.cudnn.device import read_device

Graph = dict[str, Any]
_IMAGE, _FILTERS, _CHANNELS = (8, 64, 28, 28), (64, 64, 3, 3), (1, 64, 1, 1)
_WINDOW = {"pre_padding": [1, 1], "post_padding": [1, 1], "stride": [1, 1], "dilation": [1, 1]}


def _tensor(uid: int, shape: Sequence[int], dtype: str, virtual: bool = False) -> Graph:
    """Images and filters channels last, all else as it stands."""
    order = (0, 2, 3, 1) if len(shape) == 4 else range(len(shape))
    strides, step = [1] * len(shape), 1
    for axis in reversed(tuple(order)):
        strides[axis] = step
        step *= shape[axis]
    return {"uid": uid, "dim": list(shape), "stride": strides, "type": dtype, "virtual": virtual}


def _graph(nodes: list[Graph], tensors: list[Graph], io: str, compute: str = "FLOAT") -> Graph:
    types = {"io": io, "intermediate": "FLOAT", "compute": compute}
    return {"types": types, "tensors": tensors, "nodes": nodes}


def _convolution(result: str, source: str = "INT8") -> Graph:
    node = {"kind": "convolution", **_WINDOW, "in": [1, 2], "out": 3}
    tensors = [_tensor(1, _IMAGE, source), _tensor(2, _FILTERS, "INT8"), _tensor(3, _IMAGE, result)]
    return _graph([node], tensors, result, "INT32")


def _scaled(result: str, between: str) -> Graph:
    """A convolution of integers, and a scale for each channel behind it."""
    nodes = [
        {"kind": "convolution", **_WINDOW, "in": [1, 2], "out": 1000, "compute": "INT32"},
        {"kind": "pointwise", "mode": "MUL", "in": [1000, 4], "out": 3, "compute": "FLOAT"},
    ]
    tensors = [_tensor(1, _IMAGE, "INT8"), _tensor(2, _FILTERS, "INT8"), _tensor(4, _CHANNELS, "FLOAT")]
    tensors += [_tensor(1000, _IMAGE, between, virtual=True), _tensor(3, _IMAGE, result)]
    return _graph(nodes, tensors, result)


def _conversion(source: str, result: str) -> Graph:
    node = {"kind": "pointwise", "mode": "MUL", "in": [1, 4], "out": 3}
    tensors = [_tensor(1, _IMAGE, source), _tensor(4, _CHANNELS, "FLOAT"), _tensor(3, _IMAGE, result)]
    return _graph([node], tensors, result)


def _product(result: str) -> Graph:
    shapes = (1, 128, 64), (1, 64, 32), (1, 128, 32)
    types = ("INT8", "INT8", result)
    tensors = [
        _tensor(at + 1, shape, dtype) for at, (shape, dtype) in enumerate(zip(shapes, types, strict=True))
    ]
    return _graph([{"kind": "matmul", "in": [1, 2], "out": 3}], tensors, result, "INT32")


def _batch_norm(dtype: str) -> Graph:
    node = {"kind": "batch_norm", "in": [1, 2, 3, 500], "out": [4, 5, 6]}
    images = [_tensor(at, _IMAGE, dtype) for at in (1, 4)]
    numbers = [_tensor(at, _CHANNELS, "FLOAT") for at in (2, 3, 5, 6)]
    return _graph([node], [*images, *numbers, {"uid": 500, "number": 1e-5}], dtype)


def _batch_norm_gradient(dtype: str) -> Graph:
    node = {"kind": "batch_norm_gradient", "in": [1, 2, 3, 4, 5], "out": [6, 7, 8]}
    images = [_tensor(at, _IMAGE, dtype) for at in (1, 2, 6)]
    return _graph([node], [*images, *(_tensor(at, _CHANNELS, "FLOAT") for at in (3, 4, 5, 7, 8))], dtype)


GRAPHS: dict[str, Callable[[], Graph]] = {
    "int8 by int8 3x3, to int32": lambda: _convolution("INT32"),
    "to float32": lambda: _convolution("FLOAT"),
    "to int8": lambda: _convolution("INT8"),
    "uint8 by int8 3x3, to float32": lambda: _convolution("FLOAT", "UINT8"),
    "int8 by int8 3x3, scaled, to float32": lambda: _scaled("FLOAT", "FLOAT"),
    "scaled, to int8": lambda: _scaled("INT8", "INT32"),
    "int8 by int8 matrices, to float32": lambda: _product("FLOAT"),
    "float32 scaled to int8": lambda: _conversion("FLOAT", "INT8"),
    "int8 scaled to float32": lambda: _conversion("INT8", "FLOAT"),
    "batch norm in training, f16": lambda: _batch_norm("HALF"),
    "batch norm in training, f32": lambda: _batch_norm("FLOAT"),
    "its gradients, f16": lambda: _batch_norm_gradient("HALF"),
    "its gradients, f32": lambda: _batch_norm_gradient("FLOAT"),
}


def engine_of(graph: Graph, path: Path) -> str:
    """The engine and its workspace; a dash without one."""
    device = read_device(path)
    asked = {"notes": [], "behavior": [], "workspace_limit": -1, "refused": [], "all": False}
    answer = library.plan({**graph, "device": device.properties, "sm": device.sm, **asked})
    if "plan" not in answer:
        return "-"
    name = str(answer["engines"][answer["chosen"]]["name"]).partition("_")[0]
    return f"{name}, {answer['workspace'] / 1024:,.0f} KiB" if answer["workspace"] else name


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="scripts/cudnn graphs", description=__doc__)
    parser.add_argument("devices", nargs="+", type=Path, help="files of device properties")
    devices = parser.parse_args(arguments).devices
    print("| | " + " | ".join(f"SM {read_device(path).sm}" for path in devices) + " |")
    print("| --- " * (1 + len(devices)) + "|")
    for name, make in GRAPHS.items():
        print(f"| {name} | " + " | ".join(engine_of(make(), path) for path in devices) + " |", flush=True)


if __name__ == "__main__":
    main()
