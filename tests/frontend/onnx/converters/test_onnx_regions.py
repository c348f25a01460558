"""RoiAlign against onnxruntime: where regions begin, and the largest of samples."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import check, model, normal

REGIONS = np.array([[4, 4, 20, 28], [0, 2, 9, 31], [8, 8, 8, 8]], "float32")


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("samples", [0, 2])
def test_regions_of_a_scaled_image(mode: str, coordinates: str, samples: int) -> None:
    """The last region has no extent: with a sample to each pixel it has none in pixels' coordinates."""
    parsed = model(
        f"""agraph (float[2, 3, 8, 8] x, float[3, 4] regions, int64[3] images) => (float[k, 3, 3, 2] y) {{
            y = RoiAlign<mode = "{mode}", coordinate_transformation_mode = "{coordinates}", output_height = 3,
                output_width = 2, sampling_ratio = {samples}, spatial_scale = 0.25>(x, regions, images)
        }}"""
    )
    check(parsed, {"x": normal(2, 3, 8, 8), "regions": REGIONS, "images": np.array([0, 1, 1])})


def test_the_first_version_begins_at_corners() -> None:
    parsed = model(
        """agraph (float[1, 1, 8, 8] x, float[3, 4] regions, int64[3] images) => (float[3, 1, 1, 1] y) {
            y = RoiAlign<spatial_scale = 0.25>(x, regions, images)
        }""",
        opset=11,
    )
    check(parsed, {"x": normal(1, 1, 8, 8), "regions": REGIONS, "images": np.array([0, 0, 0])})
