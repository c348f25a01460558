"""Our own kernels for convolutions with few output channels, transposed ones too.

``byoc/runtime/onednn/few_outputs``: vectors hold columns of a row of the source, each of which is multiplied
once for every tap and output channel.  Beside the products stand, in cycles of a vector of columns:

    100     to begin
    3       for every output channel, row of the window and up to 64 input channels: products are added
    5       for every input channel: columns come side by side
    12      for every output channel of the result

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
_BEGUN, _ADDED, _SIDE_BY_SIDE, _FINISHED = 100.0, 3.0, 5.0, 12.0
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
    vectors = samples * math.prod(rows) * whole(columns, lanes) / lanes
    products = 2.0 * lanes * inputs * outputs * math.prod(window) / _SHARE
    added = outputs * math.prod(window[:-1]) * math.ceil(inputs / _PANEL)
    beside = _BEGUN + _ADDED * added + _SIDE_BY_SIDE * inputs
    finished = _FINISHED * math.prod(facts.shape("dst")) / lanes
    return vectors * (products + beside * cycle) + finished * cycle
