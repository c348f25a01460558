"""Resize by every rule, to sizes that are numbers, named dimensions and computed by the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import check, normal, of_node, operators

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.testing.reference import onnxruntime_outputs


def resizes(
    shape: list,
    rows: Sequence[tuple[dict[str, np.ndarray], dict]],
    given: dict[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    """Resizes of an input ``x``, one for each row of constant operands and attributes.

    Operands in ``given`` are inputs of the model.
    """
    given, constants, nodes = given or {}, [], []
    for at, (operands, attributes) in enumerate(rows):
        names = []
        for name in ("roi", "scales", "sizes"):
            stated = f"{name}_{at}" if name in operands else ""
            names.append(name if name in given else stated)
        constants += [numpy_helper.from_array(data, f"{name}_{at}") for name, data in operands.items()]
        nodes.append(helper.make_node("Resize", ["x", *names], [f"y{at}"], **attributes))
    inputs = [helper.make_tensor_value_info("x", 1, shape)] + [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(data.dtype), data.shape)
        for name, data in given.items()
    ]
    outputs = [helper.make_tensor_value_info(node.output[0], 1, None) for node in nodes]
    made = helper.make_graph(nodes, "g", inputs, outputs, constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def resize(shape: list, operands: dict[str, np.ndarray], **attributes: object) -> onnx.ModelProto:
    return resizes(shape, [(operands, attributes)])


def sizes(*numbers: int) -> np.ndarray:
    return np.array(numbers, "int64")


def scales(*numbers: float) -> np.ndarray:
    return np.array(numbers, "float32")


RULES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_rules_to_sizes_and_by_scales(mode: str) -> None:
    rows = []
    for coordinates in RULES:
        options = {"mode": mode, "coordinate_transformation_mode": coordinates}
        # onnxruntime rounds the length of the result down before it aligns corners, ONNX's cases do not.
        factors = (3, 2) if coordinates == "align_corners" else (0.63, 2.37)
        rows += [({"sizes": sizes(2, 3, 11, 4)}, options), ({"scales": scales(1, 1, *factors)}, options)]
    check(resizes([2, 3, 7, 9], rows), {"x": normal(2, 3, 7, 9)})


def test_roundings_of_the_nearest() -> None:
    rows = [
        (
            {"sizes": sizes(1, 3, 24, 3)},
            {"mode": "nearest", "coordinate_transformation_mode": coordinates, "nearest_mode": rounding},
        )
        for coordinates in RULES[:4]
        for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    ]
    check(resizes([1, 3, 8, 5], rows), {"x": normal(1, 3, 8, 5)})


def test_cubic_at_the_edges() -> None:
    rows = [
        ({"sizes": sizes(1, 1, 9, 3)}, {"mode": "cubic", "exclude_outside": exclude, "cubic_coeff_a": -0.5})
        for exclude in (0, 1)
    ]
    check(resizes([1, 1, 5, 5], rows), {"x": normal(1, 1, 5, 5)})


CROP = {
    "mode": "linear",
    "coordinate_transformation_mode": "tf_crop_and_resize",
    "extrapolation_value": 7.5,
}


def test_a_part_of_the_image() -> None:
    roi = np.array([0, 0, 0.3, -0.2, 1, 1, 0.9, 1.1], "float32")
    to = {"sizes": sizes(1, 3, 5, 6)}
    check(resize([1, 3, 7, 9], {"roi": roi, **to}, **CROP), {"x": normal(1, 3, 7, 9)})
    check(resizes([1, 3, 7, 9], [(to, CROP)], {"roi": roi}), {"x": normal(1, 3, 7, 9), "roi": roi})


def test_the_nearest_of_a_part_is_found_in_float32() -> None:
    """0.3 * 5 is 1.5 in float32, and a little more in float64, where it is rounded up."""
    crop = CROP | {"mode": "nearest"}
    roi = np.array([0, 0, 0.2, 0.3, 1, 1, 0.9, 0.8], "float32")
    to = {"sizes": sizes(1, 2, 1, 4)}
    check(resize([1, 2, 5, 6], {"roi": roi, **to}, **crop), {"x": normal(1, 2, 5, 6)})
    check(resizes([1, 2, 5, 6], [(to, crop)], {"roi": roi}), {"x": normal(1, 2, 5, 6), "roi": roi})


def test_the_aspect_ratio_is_kept() -> None:
    rows = [
        ({"sizes": sizes(13, 13)}, {"mode": "linear", "keep_aspect_ratio_policy": policy, "axes": [2, 3]})
        for policy in ("not_larger", "not_smaller")
    ]
    check(resizes([1, 3, 7, 9], rows), {"x": normal(1, 3, 7, 9)})


@pytest.mark.parametrize("operand", ["sizes", "scales"])
def test_operands_that_the_model_gets(operand: str) -> None:
    """In every mode; the scale of sizes is theirs, and scales are taken as they are."""
    given = {"sizes": sizes(11, 4)} if operand == "sizes" else {"scales": scales(0.63, 2.37)}
    rows = [
        ({}, {"mode": mode, "coordinate_transformation_mode": "asymmetric"})
        for mode in ("nearest", "linear", "cubic")
    ]
    check(resizes([7, 9], rows, given), {"x": normal(7, 9), **given})


@pytest.mark.parametrize("factors", [(2.0, 3.0), (0.5, 1.25)])
def test_images_of_named_sizes(factors: tuple[float, float]) -> None:
    rows = [
        (
            {"scales": scales(1, 1, *factors)},
            {"mode": mode, "coordinate_transformation_mode": "align_corners"},
        )
        for mode in ("nearest", "linear", "cubic")
    ]
    parsed = resizes(["n", 3, "h", "w"], rows)
    check(parsed, {"x": normal(2, 3, 8, 12)})


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("nearest", {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
        ("linear", {"coordinate_transformation_mode": "half_pixel"}),
        ("linear", {"coordinate_transformation_mode": "align_corners"}),
        ("cubic", {"coordinate_transformation_mode": "align_corners"}),
        ("cubic", {"coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.5}),
    ],
)
def test_what_libraries_resize_is_left_to_them(mode: str, options: dict) -> None:
    parsed = resize([1, 3, 8, 8], {"scales": scales(1, 1, 2, 2)}, mode=mode, **options)
    assert operators(parsed) == ["image.resize2d"]
    check(parsed, {"x": normal(1, 3, 8, 8)})


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias_takes_in_every_pixel(mode: str) -> None:
    """Weights sum to one and are symmetric; onnxruntime treats the edges in another way than ONNX says."""
    x = normal(1, 1, 24, 1)
    parsed = resize([1, 1, 24, 1], {"sizes": sizes(1, 1, 5, 1)}, mode=mode, antialias=1)
    run = tvm_mxplan.compile(parsed, "llvm")
    found = run(x)[0].numpy().ravel()
    whole = tvm_mxplan.compile(resize([24], {"sizes": sizes(5)}, mode=mode, antialias=1), "llvm")
    np.testing.assert_allclose(found, whole(x.ravel())[0].numpy(), rtol=1e-5)
    np.testing.assert_allclose(run(x[:, :, ::-1].copy())[0].numpy().ravel(), found[::-1], atol=1e-6)
    np.testing.assert_allclose(run(np.ones_like(x))[0].numpy(), 1.0, rtol=1e-6)
    moved = x.copy()
    moved[0, 0, 12] += 1.0
    assert np.abs(run(moved)[0].numpy().ravel() - found).max() > 0.1


def test_refusals_name_the_node() -> None:
    with pytest.raises(InvalidInputError, match="Number of elements of input 'sizes'"):
        tvm_mxplan.compile(resize([1, 3, 8, 8], {"sizes": sizes(4, 4)}), "llvm")
    with pytest.raises(UnsupportedError, match="antialias with a scale that is not known"):
        tvm_mxplan.compile(
            resizes([8], [({}, {"mode": "linear", "antialias": 1})], {"sizes": sizes(4)}), "llvm"
        )


@pytest.mark.parametrize("factor", [1.3, 7 / 3, 0.7])
def test_named_sizes_by_scales_that_float32_rounds_down(factor: float) -> None:
    """90 * 1.3 is 116.99999 in float32: an expression over the named dimension would make 117 of it."""
    parsed = resize([1, "c", "h", 3], {"scales": scales(1, 1, factor, 2)}, mode="linear")
    executable = tvm_mxplan.compile(parsed, "llvm")
    for height in (27, 90, 30):
        data = normal(1, 2, height, 3)
        (expected,) = onnxruntime_outputs(parsed, {"x": data})
        (found,) = executable(data)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", [0.34, 0.5, 0.6, 0.7, 1.0, 1.5, 2.0])
def test_nearest_of_version_10_rounds_up_where_an_axis_shrinks(scale):
    x = normal(1, 2, 6, 7)
    node = helper.make_node("Resize", ["x", "s"], ["y"], mode="nearest")
    scales = np.array([1, 1, scale, scale], "float32")
    check(of_node(node, {"x": x}, {"s": scales}, 10), {"x": x})


@pytest.mark.parametrize("rounding", ["floor", "ceil"])
def test_coordinates_that_are_whole_are_not_rounded(rounding):
    x = normal(1, 2, 5, 7)
    parsed = resize(
        [1, 2, 5, 7],
        {"scales": np.array([1, 1, 2, 0.5], "float32")},
        mode="nearest",
        coordinate_transformation_mode="half_pixel_symmetric",
        nearest_mode=rounding,
    )
    check(parsed, {"x": x})
