"""Reference results from onnxruntime, and the measures to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx


def onnxruntime_outputs(
    model: onnx.ModelProto | str, inputs: Mapping[str, np.ndarray], threads: int = 1, optimise: bool = True
) -> list[np.ndarray]:
    """The outputs of ``model``, a proto or the path of a file, computed by onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model if isinstance(model, str) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(inputs))


def relative_l2(actual: np.ndarray, expected: np.ndarray) -> float:
    """|actual - expected| / |expected|; infinite where the shapes differ or either is not finite."""
    if actual.shape != expected.shape:
        return float("inf")
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    if not (np.isfinite(a).all() and np.isfinite(e).all()):
        return float("inf")
    difference, size = np.linalg.norm(a - e), np.linalg.norm(e)
    if size == 0:
        return 0.0 if difference == 0 else float("inf")
    return float(difference / size)


def worst_relative_l2(actual: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """The largest `relative_l2` over the outputs of a model; infinite where their number differs."""
    if len(actual) != len(expected):
        return float("inf")
    return max((relative_l2(a, e) for a, e in zip(actual, expected, strict=True)), default=0.0)


def max_abs_error(actual: np.ndarray, expected: np.ndarray) -> float:
    """The largest absolute difference; infinite where the shapes differ."""
    if actual.shape != expected.shape:
        return float("inf")
    return float(np.abs(actual.astype(np.float64) - expected.astype(np.float64)).max(initial=0.0))
