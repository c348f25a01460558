"""Attention on the operands of ``data``: some samples and queries, each over all keys and heads."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.compare import differ
from tvm_mxplan.opcheck.estimate import Estimate
from tvm_mxplan.opcheck.references.attention import joined, of_rows
from tvm_mxplan.opcheck.references.operands import Operands
from tvm_mxplan.opcheck.result import Finding

from .drawing import Array
from .sample import slices

SCORES = 1 << 19
"""Scores that are worked out; where there are more, those of some samples and queries are."""
_LEAST = 16


def worked_out(
    attrs: ir.Attention, arrays: Mapping[str, Array], shape: Sequence[int], dtype: np.dtype[Any]
) -> tuple[Estimate, Callable[[Array], Array]]:
    """The result, of type ``dtype``, where it is worked out, and what takes its elements of an array."""
    keys = sum(array.shape[2] for role, array in arrays.items() if role in ("key", "past_key"))
    scores = math.prod(shape[:3]) * keys
    rows = slices(shape[1], max(_LEAST, SCORES * shape[1] // max(1, scores)))
    scores = scores // max(1, shape[1]) * len(rows)
    samples = slices(shape[0], max(_LEAST, SCORES * shape[0] // max(1, scores)))
    cut = {
        role: array if role == "filled" else _taken(array.astype(np.float64), 0, samples)
        for role, array in arrays.items()
    }
    cut |= {role: _taken(cut[role], 2, rows) for role in ("src", "mask") if role in cut}
    with np.errstate(all="ignore"):
        operands = Operands({role: [array] for role, array in cut.items()}, tuple(shape), dtype)
        estimate = of_rows(attrs, operands, rows, shape[1])
    return estimate, lambda array: np.broadcast_to(array, shape)[np.ix_(samples, rows)]


def _taken(array: Array, axis: int, index: Array) -> Array:
    return array.take(index, axis) if array.shape[axis] != 1 else array


def misplaced(arrays: Mapping[str, Array], others: Mapping[str, Array]) -> Finding | None:
    """The differences of keys or values behind past ones, which are only moved."""
    operands = Operands({role: [array] for role, array in arrays.items()}, ())
    for role in ("key", "value"):
        if f"joined_{role}" in others:
            whole = joined(operands, role).astype(np.float64)
            finding, _ = differ(f"joined_{role}", others[f"joined_{role}"], Estimate(whole))
            if finding is not None:
                return finding
    return None
