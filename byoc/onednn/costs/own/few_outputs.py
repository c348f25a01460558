"""Our own kernels for convolutions with few output channels, transposed ones too.

``byoc/runtime/onednn/few_outputs``: vectors hold columns of a row of the source, each of which is multiplied
once for every tap and output channel.  Beside the products stand, in cycles of a vector of columns:

    2       for every tap and output channel and up to 64 input channels: its products are added to sums
    4       for every input channel: columns come side by side

Read off a processor with AMX, one thread, windows of 2x2 to 9x9 and 5x5x5 over 2 to 512 channels.
"""

from __future__ import annotations

import math

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from ..vectors import vector_of, whole

FEW_OUTPUTS = "few_outputs"
"""The family of these kernels."""
_SHARE = 0.9
_ADDED, _SIDE_BY_SIDE = 2.0, 4.0
_PANEL = 64


def few_outputs(facts: StepFacts, cycle: float) -> float:
    """Operations of a step by these kernels, as many as the peak allows in the time that it takes.

    Parameters
    ----------
    cycle : those that it allows in a cycle of a core.
    """
    attrs = facts.step.attrs
    assert isinstance(attrs, ir.Convolution | ir.Deconvolution)
    samples, inputs, *rows, columns = facts.shape("src")
    outputs, _, *window = facts.shape("weights")
    lanes = vector_of(facts.info)
    terms = outputs * math.prod(window)
    vectors = samples * math.prod(rows) * whole(columns, lanes) / lanes
    products = 2.0 * lanes * inputs * terms / _SHARE
    beside = _ADDED * terms * math.ceil(inputs / _PANEL) + _SIDE_BY_SIDE * inputs
    return vectors * (products + beside * cycle)
