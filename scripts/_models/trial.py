"""One model, compiled and held against onnxruntime, in a process of its own; prints JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
import onnxruntime

import tvm_mxplan

from .catalogue import MODELS

_TYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(bool)": "bool",
}
_ROUNDS = 15


def main(at: int, path: Path, *, named: bool) -> dict[str, object]:
    """What came of the model: seconds, errors relative to onnxruntime, latencies in ms."""
    model = MODELS[at]
    plain, reference = (session(path, optimised) for optimised in (False, True))
    random = np.random.default_rng(0)
    inputs = {}
    for value in reference.get_inputs():
        stated = [dim if isinstance(dim, int) else 1 for dim in value.shape]
        shape = model.shapes.get(value.name, tuple(stated))
        dtype = _TYPES[value.type]
        if value.name == "sr":
            inputs[value.name] = np.asarray(16000, dtype)
        elif dtype.startswith("int"):
            inputs[value.name] = random.integers(0, model.integers.get(value.name, 2), shape).astype(dtype)
        else:
            inputs[value.name] = random.random(shape).astype(dtype)
    expected = reference.run(None, inputs)
    before = time.perf_counter()
    shapes = None if named else {name: list(array.shape) for name, array in inputs.items() if array.ndim}
    executable = tvm_mxplan.compile(path, shapes=shapes, options={"cache": "disabled"})
    seconds = time.perf_counter() - before
    actual = [np.asarray(result.numpy()) for result in executable(**inputs)]
    times: dict[str, list[float]] = {"ours": [], "onnxruntime": []}
    for _ in range(_ROUNDS):
        for name, call in (
            ("ours", lambda: executable(**inputs)),
            ("onnxruntime", lambda: reference.run(None, inputs)),
        ):
            start = time.perf_counter()
            call()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {
        "compile": seconds,
        "error": error(actual, expected),
        "own": error(plain.run(None, inputs), expected),
        "regions": len(executable.report.regions),
        **{name: median(row) for name, row in times.items()},
    }


def session(path: Path, optimised: bool) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def error(actual: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """The largest relative error of a result, in the L2 norm; infinite where shapes differ."""
    if any(a.shape != np.shape(b) for a, b in zip(actual, expected, strict=True)):
        return float("inf")
    pairs = ((a.astype("float64"), np.asarray(b, "float64")) for a, b in zip(actual, expected, strict=True))
    return max(float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30)) for a, b in pairs)


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), Path(sys.argv[2]), named=sys.argv[3] == "named")))
