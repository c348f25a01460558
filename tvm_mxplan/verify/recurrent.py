"""Whether a recurrent layer gave what it has to: all steps, for the samples that a budget allows."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.opcheck.compare import differ
from tvm_mxplan.opcheck.references import evaluate
from tvm_mxplan.opcheck.result import Finding

from .drawing import Array
from .sample import slices

MULTIPLIED = 1 << 31
"""Multiply-adds in float64 that a check may take."""
_WEIGHTS = ("weights", "recurrence", "bias", "peepholes")
"""Operands without samples; of all others the axis before the last is theirs."""


def judge(step: ir.Step, given: Mapping[str, Array], results: Mapping[str, Array]) -> Finding | None:
    """The worst element of the first result that has a wrong one; its index is among what was looked at.

    Raises
    ------
    UnsupportedError : one sample alone takes more than the budget.
    """
    steps, samples = given["src"].shape[:2]
    each = steps * sum(math.prod(given[role].shape) for role in ("weights", "recurrence") if role in given)
    if each > MULTIPLIED:
        raise UnsupportedError(f"{steps} steps take more multiply-adds than a check does")
    at = slices(samples, max(1, min(samples, MULTIPLIED // max(each, 1))))
    inputs = {role: [_taken(role, array, at)] for role, array in given.items()}
    shape = _taken("dst", results["dst"], at).shape
    for role, estimate in evaluate(step, shape, inputs, ()).items():
        if role in results:
            finding, _ = differ(role, _taken(role, results[role], at), estimate)
            if finding is not None:
                return finding
    return None


def _taken(role: str, array: Array, samples: Array) -> Array:
    return array if role in _WEIGHTS else np.take(array, samples, -2)
