"""Pools with the size of the data by strides, MaxUnpool, transposed convolutions to a stated shape."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx_models import check, model, normal, of_node

import tvm_mxplan
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.testing.reference import onnxruntime_outputs


@pytest.mark.parametrize("rule", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(
    ("size", "kernel", "stride"), [(7, 1, 3), (7, 2, 3), (8, 2, 3), (7, 2, 2), (8, 3, 2)]
)
def test_largest_of_windows_shorter_than_their_stride(rule: str, size: int, kernel: int, stride: int) -> None:
    parsed = model(
        f"""agraph (float[1, 2, {size}, {size}] x) => (float[1, 2, h, w] y, float[1, 2, p, q] z) {{
            y = MaxPool<auto_pad = "{rule}", kernel_shape = [{kernel}, {kernel}],
                strides = [{stride}, {stride}]>(x)
            z = AveragePool<auto_pad = "{rule}", kernel_shape = [{kernel}, {kernel}],
                strides = [{stride}, {stride}]>(x)
        }}"""
    )
    check(parsed, {"x": normal(1, 2, size, size)})


@pytest.mark.parametrize("rule", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("extent", ["9", "n"])
def test_dilated_windows_are_padded_by_their_reach(rule: str, extent: str) -> None:
    """As ONNX's text has it; onnxruntime and the reference leave the dilation out of the padding."""
    pools = {"MaxPool": "", "AveragePool": "", "LpPool": "p = 3,"}
    lines = [
        f"""{name} = {name}<{more} auto_pad = "{rule}", kernel_shape = [3], strides = [2],
            dilations = [2]>(x)"""
        for name, more in pools.items()
    ]
    heads = ", ".join(f"float[1, 2, {name}_size] {name}" for name in pools)
    parsed = model(f"agraph (float[1, 2, {extent}] x) => ({heads}) {{ {' '.join(lines)} }}", opset=19)
    if extent == "n":
        del parsed.graph.node[1:], parsed.graph.output[1:]
    x = normal(1, 2, 9)
    reached = np.pad(x, ((0, 0), (0, 0), (2, 2)), constant_values=np.nan)
    windows = np.stack([reached[..., at : at + 9 : 2] for at in (0, 2, 4)])
    expected = [
        np.nanmax(windows, 0),
        np.nanmean(windows, 0),
        np.nansum(np.abs(windows) ** 3, 0) ** (1 / 3),
    ]
    found = tvm_mxplan.compile(parsed, "llvm")(x)
    for ours, theirs in zip(found, expected, strict=False):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("dilations", [[1, 1], [2, 1]])
def test_norms_of_windows_that_reach_beyond_the_padding(p: int, dilations: list[int]) -> None:
    node = helper.make_node(
        "LpPool", ["x"], ["y"], p=p, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 0, 2], ceil_mode=1,
        dilations=dilations,
    )  # fmt: skip
    x = normal(2, 3, 7, 8)
    check(of_node(node, {"x": x}), {"x": x})


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0]])
@pytest.mark.parametrize("batch", ["1", "n"])
def test_unpooled_images_are_smaller_by_their_padding(pads: list[int], batch: str) -> None:
    """With a batch that is named too, and with the shape stated that is so."""
    height, width = 6 - pads[0] - pads[2], 6 - pads[1] - pads[3]
    parsed = model(
        f"""agraph (float[{batch}, 1, 3, 3] x, int64[{batch}, 1, 3, 3] places)
        => (float[k, 1, p, q] y, float[1, 1, r, s] z) <int64[4] shape = {{1, 1, {height}, {width}}}> {{
            y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2], pads = {pads}>(x, places)
            z = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2], pads = {pads}>(x, places, shape)
        }}"""
    )
    check(parsed, {"x": normal(1, 1, 3, 3), "places": np.arange(9)[::-1].reshape(1, 1, 3, 3).copy()})


def test_places_in_a_larger_image_are_refused() -> None:
    parsed = model(
        """agraph (float[1, 1, 2, 2] x, int64[1, 1, 2, 2] places) => (float[1, 1, 5, 5] y)
        <int64[4] shape = {1, 1, 5, 5}> {
            y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, places, shape)
        }"""
    )
    with pytest.raises(UnsupportedError, match=r"output_shape \[1, 1, 5, 5\] .* \[1, 1, 4, 4\]"):
        tvm_mxplan.compile(parsed, "llvm")


@pytest.mark.parametrize("rule", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_named_images_transposed_to_a_stated_shape(rule: str) -> None:
    """Larger images are cut more; smaller ones have zeros behind them, and the bias there too."""
    parsed = model(
        f"""agraph (float[b, 2, h, w] x, float[2, 3, 3, 3] filters, float[3] bias)
        => (float[b, 3, 10, 9] y) {{
            y = ConvTranspose<strides = [2, 2], output_shape = [10, 9], auto_pad = "{rule}">(x, filters, bias)
        }}"""
    )
    filters, bias = normal(2, 3, 3, 3), normal(3)
    executable = tvm_mxplan.compile(parsed, "llvm")
    for height, width in ((5, 4), (6, 5), (5, 6)):
        inputs = {"x": normal(2, 2, height, width), "filters": filters, "bias": bias}
        (expected,) = onnxruntime_outputs(parsed, dict(inputs))
        np.testing.assert_allclose(executable(**inputs)[0].numpy(), expected, rtol=1e-4, atol=1e-5)
