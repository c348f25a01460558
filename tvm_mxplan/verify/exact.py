"""Steps and post-ops that round nothing, in float32: what a kernel has to agree with to the bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.references import REFERENCES
from tvm_mxplan.opcheck.references.operands import Operands

from .drawing import Array

MOVING = (
    ir.Concat,
    ir.Shuffle,
    ir.Pad,
    ir.Slice,
    ir.StridedSlice,
    ir.Gather,
    ir.GatherElements,
    ir.GatherNd,
    ir.GatherPlaces,
    ir.Put,
    ir.Select,
    ir.Reorder,
)
"""Steps whose results are numbers that they read."""
_EXACT = (*MOVING, ir.Compare, ir.CumulativeSum, ir.ExtremeIndex)


def _numbers_of(compare: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """A comparison that gives 1 and 0 in the type of its operands."""
    return lambda a, b: compare(a, b).astype(a.dtype)


_EXACT_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
    "gt": _numbers_of(np.greater),
    "ge": _numbers_of(np.greater_equal),
    "le": _numbers_of(np.less_equal),
}


def exactly(step: ir.Step, given: dict[str, list[Array]], shape: tuple[int, ...]) -> Array | None:
    """The step in float32, where that has nothing to round; None where it has."""
    src = given["src"][0]
    match step.attrs:
        case ir.Pooling(algorithm="max") | ir.Reduction(algorithm="max" | "min") | ir.Resampling("nearest"):
            pass
        case ir.Binary(algorithm=algorithm) if algorithm in _EXACT_BINARY:
            return _EXACT_BINARY[algorithm](src, given["src1"][0])
        case ir.Eltwise(algorithm=algorithm, alpha=alpha, beta=beta):
            return _exact_function(src, algorithm, alpha, beta)
        case _ if not isinstance(step.attrs, _EXACT):
            return None
    value: Array = REFERENCES[type(step.attrs)](step.attrs, Operands(given, shape)).value
    return value


def exact_post_op(post_op: ir.PostOp, value: Array, other: Array | None) -> Array | None:
    """A post-op in float32, where that has nothing to round; None where it has."""
    if value.dtype != np.float32:
        return None
    match post_op:
        case ir.EltwisePostOp(algorithm=algorithm, alpha=alpha, beta=beta):
            return _exact_function(value, algorithm, alpha, beta)
        case ir.SumPostOp(scale=1.0):
            return value + other
        case ir.BinaryPostOp(algorithm=algorithm) if algorithm in _EXACT_BINARY:
            assert other is not None
            return np.asarray(_EXACT_BINARY[algorithm](value, other))
        case ir.BinaryPostOp(algorithm="mul"):
            assert other is not None
            product = value.astype(np.float64) * other
            rounded = product.astype(np.float32)
            return rounded if np.array_equal(rounded, product) else None
    return None


def _exact_function(x: Array, algorithm: str, alpha: float, beta: float) -> Array | None:
    match algorithm:
        case "relu" if alpha == 0:
            return np.maximum(x, np.float32(0))
        case "clip" | "clip_v2":
            return np.clip(x, np.float32(alpha), np.float32(beta))
        case "abs":
            return np.abs(x)
    return None
