"""Layouts that oneDNN announces to the registry, held against the same layouts in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.layouts import layout_registry
from tvm_mxplan.core.layout.layout_registry import STANDARD, numpy_registry

IMAGES = ("nchw", "nhwc", "nChw8c")


@pytest.mark.parametrize("channels", [1, 3, 8, 17, 130])
@pytest.mark.parametrize("source", [STANDARD, *IMAGES])
@pytest.mark.parametrize("target", [STANDARD, *IMAGES])
def test_onednn_converts_as_numpy_does(source: str, target: str, channels: int) -> None:
    ours, reference = layout_registry(8), numpy_registry(IMAGES)
    shape = (2, channels, 3, 5)
    array = np.random.default_rng(0).standard_normal(shape, np.float32)
    given = reference.convert(array, shape, STANDARD, source)
    expected = reference.convert(array, shape, STANDARD, target)
    np.testing.assert_array_equal(ours.convert(given, shape, source, target), expected)
    assert len(ours.path(source, target)) <= 2


@pytest.mark.parametrize("name", ["OIhw16i16o", "hwio", "Oihw16o"])
def test_layouts_of_weights(name: str) -> None:
    shape = (35, 17, 3, 3)
    array = np.random.default_rng(0).standard_normal(shape, np.float32)
    registry = layout_registry(16)
    packed = registry.convert(array, shape, STANDARD, name)
    np.testing.assert_array_equal(packed, numpy_registry([name]).convert(array, shape, STANDARD, name))
    np.testing.assert_array_equal(registry.convert(packed, shape, name, STANDARD), array)


def test_the_backend_announces_blocks_of_its_vector_length() -> None:
    backend = OneDNN()
    names = [record.name for record in backend.layouts()]
    assert f"nChw{backend.block}c" in names
    assert f"OIhw{backend.block}i{backend.block}o" in names


@pytest.mark.parametrize("block", [8, 16])
def test_images_of_every_rank_and_weights_have_names(block: int) -> None:
    spatial = {"ncw": "w", "nchw": "hw", "ncdhw": "dhw"}
    images = {f"{n}{order}" for axes in spatial.values() for n, order in (("nc", axes), ("n", f"{axes}c"))}
    images |= {f"nC{axes}{block}c" for axes in spatial.values()}
    weights = {"oihw", "hwio", f"OIhw{block}i{block}o", f"Oihw{block}o"}
    assert {record.name for record in layout_registry(block)} == images | weights
