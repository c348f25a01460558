"""One model, compiled and held against onnxruntime, in a process of its own; prints JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import numpy as np
import onnxruntime

import tvm_mxplan

from .catalogue import MODELS, Shapes

_TYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(bool)": "bool",
}
_ROUNDS = 5
_BURST = 8


def main(at: int, path: Path, *, named: bool) -> dict[str, object]:
    """Returns the results of the model: seconds, errors relative to onnxruntime, latencies in ms."""
    model = MODELS[at]
    plain, reference = (session(path, optimised) for optimised in (False, True))
    if named and not any(
        isinstance(dim, str | None) for value in reference.get_inputs() for dim in value.shape
    ):
        return {"skipped": "no open dimensions"}
    inputs = _inputs(reference, model.shapes, model.integers)
    before = time.perf_counter()
    fixed = {name: list(array.shape) for name, array in inputs.items() if array.ndim}
    shapes = {name: list(shape) for name, shape in model.named.items()} if named else fixed
    executable = tvm_mxplan.compile(path, shapes=shapes, options={"cache": "disabled"})
    seconds = time.perf_counter() - before
    several = [inputs]
    if named and model.other:
        several.append(_inputs(reference, model.other, model.integers))
    errors, own = [], []
    for one in several:
        expected = reference.run(None, one)
        errors.append(error([np.asarray(result.numpy()) for result in executable(**one)], expected))
        own.append(error(plain.run(None, one), expected))
    times: dict[str, list[float]] = {"ours": [], "onnxruntime": []}
    for _ in range(_ROUNDS):
        for name, call in (
            ("ours", lambda: executable(**inputs)),
            ("onnxruntime", lambda: reference.run(None, inputs)),
        ):
            for turn in range(_BURST):
                start = time.perf_counter()
                call()
                if turn >= _BURST // 2:  # the threads of the other one still look for work in the first ones
                    times[name].append(1e3 * (time.perf_counter() - start))
    return {
        "compile": seconds,
        "error": max(errors),
        "own": max(own),
        "regions": len(executable.report.regions),
        **{name: median(row) for name, row in times.items()},
    }


def _inputs(
    session: onnxruntime.InferenceSession, shapes: Shapes, integers: Mapping[str, int]
) -> dict[str, np.ndarray]:
    """Random inputs of these shapes; the sample rate of a voice is a number that the model knows."""
    random = np.random.default_rng(0)
    inputs = {}
    for value in session.get_inputs():
        stated = [dim if isinstance(dim, int) else 1 for dim in value.shape]
        shape = shapes.get(value.name, tuple(stated))
        dtype = _TYPES[value.type]
        if value.name == "sr":
            inputs[value.name] = np.asarray(16000, dtype)
        elif dtype.startswith("int"):
            inputs[value.name] = random.integers(0, integers.get(value.name, 2), shape).astype(dtype)
        else:
            inputs[value.name] = random.random(shape).astype(dtype)
    return inputs


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
