"""Operators with random attributes against onnxruntime; two of each kind in a model."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_node import LAYOUTS, Graph, computing, run
from random_operators import OPERATORS


@pytest.mark.parametrize("seed", range(4))
def test_random_operators(seed):
    g = Graph(seed, opset=13)
    outputs = [make(g) for make in OPERATORS * 2]
    ex, actual, expected = run(g, *outputs, layouts=LAYOUTS[seed % 3])
    kinds = {step.kind for step in computing(ex.report)}
    assert {"convolution", "deconvolution", "pooling", "softmax", "binary", "matmul"} <= kinds, str(ex.report)
    for make, ours, theirs in zip(OPERATORS * 2, actual, expected, strict=True):
        scale = max(1e-3, float(np.abs(theirs).max()))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-5 * scale, err_msg=make.__name__)
