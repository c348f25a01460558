"""Reductions over no axes at all, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import check, model, normal

KINDS = ["Sum", "Prod", "Max", "Min", "Mean", "SumSquare", "L1", "L2", "LogSum", "LogSumExp"]


@pytest.mark.parametrize("kind", KINDS)
def test_elements_that_stand_alone(kind: str) -> None:
    """Functions before and after a sum still apply to each element."""
    parsed = model(
        f"""agraph (float[2, 3] x, int64[0] axes) => (float[2, 3] y, float[2, 3] z, float[2, 3] w)
        <int64[0] none = {{}}> {{
            y = Reduce{kind}<noop_with_empty_axes = 1>(x)
            z = Reduce{kind}<noop_with_empty_axes = 1, keepdims = 0>(x, none)
            w = Reduce{kind}<noop_with_empty_axes = 1>(x, axes)
        }}"""
    )
    data = normal(2, 3)
    check(parsed, {"x": np.abs(data) if kind == "LogSum" else data, "axes": np.zeros(0, "int64")})
