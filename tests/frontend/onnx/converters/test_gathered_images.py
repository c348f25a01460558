"""Col2Im, DeformConv, AffineGrid and GridSample: odd extents, groups, named batches, sizes of the call."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import answers, model, normal, of_node

import tvm_mxplan

UNCACHED = {"cache": "disabled"}


def check(parsed: onnx.ModelProto, inputs: dict[str, np.ndarray], target: str = "llvm") -> None:
    expected = ReferenceEvaluator(parsed).run(None, inputs)[0]
    assert np.any(expected)
    executable = tvm_mxplan.compile(parsed, target, options=UNCACHED)
    assert target == "llvm" or executable.report.regions
    (actual,) = executable(**inputs)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("image", "block", "attributes", "windows"),
    [
        ((7, 9), (2, 3), "", 6 * 7),
        ((7, 9), (3, 2), "strides = [2, 3], pads = [1, 0, 2, 1]", 4 * 3),
        ((11, 5), (2, 3), "dilations = [3, 2]", 8 * 1),
        ((13,), (3,), "strides = [2]", 6),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_columns(image, block, attributes, windows, known):
    channels, rank = 3, len(image)
    sizes = {"image": np.array(image), "block": np.array(block)}
    declared = "" if known else f", int64[{rank}] image, int64[{rank}] block"
    result = ", ".join("abc"[: rank + 1])
    rows = channels * int(np.prod(block))
    text = f"agraph (float[n, {rows}, {windows}] x{declared}) => (float[n, {result}] y)"
    node = "y = Col2Im<ATTRIBUTES>(x, image, block)".replace(
        "<ATTRIBUTES>", f"<{attributes}>" if attributes else ""
    )
    if known:
        values = ", ".join(
            f"int64[{rank}] {name} = {{{', '.join(map(str, size))}}}" for name, size in sizes.items()
        )
        text += f" <{values}>"
    inputs = {"x": normal(2, rows, windows)}
    check(model(f"{text} {{ {node} }}"), inputs if known else inputs | sizes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "offset_group", "attributes", "out"),
    [
        (1, 1, "", (5, 8)),
        (2, 1, "strides = [2, 1], pads = [1, 0, 2, 1]", (4, 9)),
        (1, 3, "dilations = [2, 2], pads = [2, 2, 2, 2]", (7, 11)),
        (2, 2, "", (5, 8)),
    ],
)
def test_deformed(group, offset_group, attributes, out):
    """Offsets of up to some pixels, so that windows reach over the edges."""
    attributes = ", ".join(filter(None, [attributes, f"group = {group}, offset_group = {offset_group}"]))
    places = offset_group * 6
    rows, columns = out
    parsed = model(
        f"""agraph (float[n, 6, 7, 9] x, float[4, {6 // group}, 3, 2] w,
            float[n, {places * 2}, {rows}, {columns}] offset, float[4] bias,
            float[n, {places}, {rows}, {columns}] mask) => (float[n, 4, {rows}, {columns}] y) {{
                y = DeformConv<{attributes}>(x, w, offset, bias, mask)
            }}""",
        opset=19,
    )
    inputs = {
        "x": normal(2, 6, 7, 9),
        "w": normal(4, 6 // group, 3, 2),
        "offset": 2 * normal(2, places * 2, rows, columns),
        "bias": normal(4),
        "mask": normal(2, places, rows, columns),
    }
    check(parsed, inputs, "dnnl, llvm")


@pytest.mark.parametrize("size", [(2, 3, 1, 4), (2, 3, 5, 1), (2, 3, 1, 1), (2, 3, 4, 1, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("corners", [0, 1])
def test_a_grid_of_an_image_of_one_pixel(size, dtype, corners):
    """The only pixel of an axis stands at its first corner."""
    image = size[2:]
    theta = normal(2, len(image), len(image) + 1).astype(dtype)
    node = helper.make_node("AffineGrid", ["t", "s"], ["y"], align_corners=corners)
    (grid,) = answers(of_node(node, {"t": theta}, {"s": np.array(size)}, 20), {"t": theta})
    rows = [
        2 * np.arange(n) / max(n - 1, 1) - 1 if corners else (2 * np.arange(n) + 1) / n - 1 for n in image
    ]
    places = np.meshgrid(*rows, indexing="ij")[::-1]
    stacked = np.stack([*places, np.ones(image)], -1)
    expected = np.einsum("...c,nrc->n...r", stacked, theta.astype("float64"))
    assert grid.dtype == theta.dtype
    np.testing.assert_allclose(grid, expected, **({"rtol": 1e-12} if dtype == "float64" else {"atol": 1e-5}))


@pytest.mark.slow
@pytest.mark.parametrize("image", [(1, 1), (1, 4), (4, 1)])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_one_pixel_between_the_corners_is_reflected_everywhere(image, mode):
    x, grid = normal(1, 2, *image), 3 * normal(1, 4, 5, 2)
    node = helper.make_node(
        "GridSample", ["x", "g"], ["y"], mode=mode, padding_mode="reflection", align_corners=1
    )
    inputs = {"x": x, "g": grid}
    (y,) = answers(of_node(node, inputs, opset=20), inputs)
    wide = np.repeat(x, 3, 2) if image[0] == 1 else x
    wide = np.repeat(wide, 3, 3) if image[1] == 1 else wide  # any number of equal pixels is the same image
    inputs = {"x": wide, "g": grid}
    np.testing.assert_allclose(
        y, ReferenceEvaluator(of_node(node, inputs, opset=20)).run(None, inputs)[0], atol=1e-5
    )
