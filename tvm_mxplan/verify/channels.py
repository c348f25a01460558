"""Whether a step that works channel by channel and has several results gave what it has to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.compare import differ
from tvm_mxplan.opcheck.references import evaluate
from tvm_mxplan.opcheck.result import Finding

from .drawing import Array
from .sample import slices

WORKED_OUT = 1 << 20
"""Numbers of the source that the reference is given; where it has more, of some channels."""
_LEAST = 8


def judge(step: ir.Step, given: Mapping[str, Array], results: Mapping[str, Array]) -> Finding | None:
    """The worst element of the first result that has a wrong one; its index is among what was looked at."""
    source = given["src"]
    channels = source.shape[1]
    at = slices(channels, max(_LEAST, WORKED_OUT * channels // max(1, source.size)))
    inputs = {role: [_taken(array, at)] for role, array in given.items()}
    shape = _taken(results["dst"], at).shape
    for role, estimate in evaluate(step, shape, inputs, ()).items():
        finding, _ = differ(role, _taken(results[role], at), estimate)
        if finding is not None:
            return finding
    return None


def _taken(array: Array, channels: Array) -> Array:
    return np.take(array, channels, 0 if array.ndim == 1 else 1)
