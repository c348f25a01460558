"""Exported networks, compiled and held against onnxruntime at each size; prints JSON, a line for each."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from _models.trial import error, session

import tvm_mxplan

from .networks import NETWORKS, Network
from .tables import file_of


def main(folder: Path, items: list[str]) -> None:
    """Try networks; an item is a number in the table and an exporter."""
    for item in items:
        number, _, exporter = item.partition(":")
        try:
            found = _tried(int(number), folder / file_of(NETWORKS[int(number)], exporter))
        except Exception as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            found = {"failure": lines[-1] if lines else type(error).__name__}
        print(json.dumps({"item": item, **found}), flush=True)


def _tried(at: int, path: Path) -> dict[str, object]:
    """The largest error of ours, and of onnxruntime's plain graph, against its optimised one."""
    network = NETWORKS[at]
    reference, plain = session(path, True), session(path, False)
    executable = tvm_mxplan.compile(path, options={"cache": "disabled"})
    errors, own = [], []
    for sizes in network.sizes:
        inputs = _inputs(network, sizes)
        expected = reference.run(None, inputs)
        if not all(np.any(result) for result in expected):
            raise ValueError("a result is zero everywhere, which shows nothing")
        actual = [np.asarray(result.numpy()) for result in executable(**inputs)]
        errors.append(error(actual, expected))
        own.append(error(plain.run(None, inputs), expected))
    regions = executable.report.regions
    return {"error": max(errors), "own": max(own), "regions": len(regions), "sizes": len(network.sizes)}


def _inputs(network: Network, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    inputs = {}
    for name, exported in network.inputs.items():
        named = network.named.get(name, {})
        shape = tuple(sizes.get(named.get(axis, ""), extent) for axis, extent in enumerate(exported))
        if name == "mask":
            inputs[name] = np.ones(shape, "int64")
            inputs[name][0, shape[1] // 2 : -1] = 0  # some in the middle, so that every token sees one
        elif name == "ids":
            inputs[name] = random.integers(1, network.tokens, shape)
        else:
            inputs[name] = random.standard_normal(shape).astype("float32")
    return inputs


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
