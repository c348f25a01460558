"""NonMaxSuppression against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import check, model

RANDOM = np.random.default_rng(5)


def boxes(count: int, *, centred: bool) -> np.ndarray:
    middle, size = RANDOM.random((2, count, 2)) * 10, RANDOM.random((2, count, 2)) * 3
    ends = (middle, size) if centred else (middle - size / 2, middle + size / 2)
    return np.concatenate(ends, -1).astype("float32")


@pytest.mark.parametrize("centred", [False, True])
def test_boxes_of_two_rows_and_three_classes(centred: bool) -> None:
    parsed = model(
        f"""agraph (float[2, 37, 4] boxes, float[2, 3, 37] scores, int64[1] most) => (int64[n, 3] y)
        <float[1] overlap = {{0.4}}, float[1] least = {{0.3}}> {{
            y = NonMaxSuppression<center_point_box = {int(centred)}>(boxes, scores, most, overlap, least)
        }}"""
    )
    inputs = {
        "boxes": boxes(37, centred=centred),
        "scores": RANDOM.random((2, 3, 37)).astype("float32"),
        "most": np.array([6]),
    }
    check(parsed, inputs)


def test_corners_in_any_order_and_nothing_that_is_good_enough() -> None:
    parsed = model(
        """agraph (float[1, b, 4] boxes, float[1, 1, b] scores, float[1] least) => (int64[n, 3] y)
        <int64[1] most = {19}, float[1] overlap = {0.2}> {
            y = NonMaxSuppression(boxes, scores, most, overlap, least)
        }"""
    )
    turned = boxes(19, centred=False)[:1, :, [2, 3, 0, 1]]
    scores = RANDOM.random((1, 1, 19)).astype("float32")
    for least in (0.1, 2.0):
        check(parsed, {"boxes": turned, "scores": scores, "least": np.array([least], "float32")})
