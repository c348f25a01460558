"""ScatterElements with fewer indices than elements along other axes, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import RANDOM, check, model, normal


@pytest.mark.parametrize(
    ("extents", "reduction"),
    [("4, 3, 5", "none"), ("4, 3, 5", "add"), ("4, 3, 5", "max"), ("n, m, k", "add")],
)
@pytest.mark.parametrize(("axis", "shape"), [(0, (2, 2, 2)), (0, (1, 3, 2)), (1, (2, 3, 4)), (-1, (2, 2, 3))])
def test_fewer_indices_along_several_axes(
    axis: int, shape: tuple[int, ...], reduction: str, extents: str
) -> None:
    rows = ", ".join(map(str, shape))
    parsed = model(
        f"""agraph (float[{extents}] x, int64[{rows}] places, float[{rows}] updates) => (float[a, b, c] y) {{
            y = ScatterElements<axis = {axis}, reduction = "{reduction}">(x, places, updates)
        }}"""
    )
    data = normal(4, 3, 5)
    extent = data.shape[axis]
    at = axis % 3
    places = np.argsort(RANDOM.random((*shape[:at], extent, *shape[at + 1 :])), at).take(range(shape[at]), at)
    check(parsed, {"x": data, "places": places - extent * (places % 2), "updates": normal(*shape)})
