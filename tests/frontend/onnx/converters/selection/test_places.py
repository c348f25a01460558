"""Gathers and scatters with constant indices, against onnxruntime: slices and puts where they are regular."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_models import check, model, normal, of_node
from tvm import relax

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.passes.canonicalize import SimplifyInference


def made(
    operator: str, data: np.ndarray, indices: object, updates: np.ndarray | None = None, **attributes: object
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    inputs = {"x": data} if updates is None else {"x": data, "u": updates}
    names = ["x", "i", "u"][: 2 if updates is None else 3]
    node = onnx.helper.make_node(operator, names, ["y"], **attributes)
    return of_node(node, inputs, {"i": np.asarray(indices, "int64")}), inputs


def became(parsed: onnx.ModelProto) -> list[str]:
    """Names of the operators that the model's node is in the end."""
    mod = SimplifyInference()(relax.transform.ConvertToDataflow(1)(import_model(parsed)))
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    calls = [binding.value for binding in bindings if isinstance(binding.value, relax.Call)]
    names = [str(call.op.name).removeprefix("relax.") for call in calls]
    return [name for name in names if name not in ("reshape", "permute_dims")]


@pytest.mark.parametrize(
    ("indices", "operator"),
    [
        ([[2]], "mxplan.put"),
        ([[1], [3], [5]], "mxplan.put"),
        ([[-6], [-5]], "mxplan.put"),
        ([[3], [1]], "scatter_nd"),
        ([[-1], [0]], "scatter_nd"),
        ([[[1, 2], [1, 3]], [[2, 2], [2, 3]]], "mxplan.put"),
        ([[4, 0], [4, 2], [4, 4]], "mxplan.put"),
        ([[[1, 2], [2, 2]], [[1, 3], [2, 3]]], "scatter_nd"),
        ([[1, 1], [2, 2]], "scatter_nd"),
        ([[0], [1], [2], [3], [4], [5]], None),
    ],
)
def test_parts_that_are_put(indices: list[object], operator: str | None) -> None:
    data, places = normal(6, 5, 3), np.array(indices)
    updates = normal(*places.shape[:-1], *data.shape[places.shape[-1] :])
    parsed, inputs = made("ScatterND", data, indices, updates)
    found = set(became(parsed))
    assert operator in found if operator else not found
    assert not found & {"less", "where", "shape_of"}, "places are counted from the front beforehand"
    check(parsed, inputs)


ROWS, COLUMNS = np.meshgrid(np.array([[0, 2], [1, 3]]), np.array([[0, 3], [1, 4], [2, 5]]), indexing="ij")
WINDOWS = np.stack([ROWS, COLUMNS], -1).reshape(2, 2, 3, 2, 2)
"""Places of windows of 2 x 3 side by side over an image of 4 x 6."""


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_windows_that_are_written(reduction: str) -> None:
    parsed, inputs = made("ScatterND", normal(4, 6, 3), WINDOWS, normal(2, 2, 3, 2, 3), reduction=reduction)
    assert became(parsed) == (["add"] if reduction == "add" else [])
    check(parsed, inputs)


def test_windows_that_are_read() -> None:
    parsed, inputs = made("GatherND", normal(5, 6, 3), WINDOWS)
    assert became(parsed) == ["strided_slice"]
    check(parsed, inputs)


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_a_box_that_is_written(reduction: str) -> None:
    indices = np.stack(np.meshgrid([1, 3], [2, 3], indexing="ij"), -1)
    parsed, inputs = made("ScatterND", normal(6, 5, 3), indices, normal(2, 2, 3), reduction=reduction)
    assert became(parsed).count("mxplan.put") == 2
    check(parsed, inputs)


def test_parts_that_are_added_stay_a_scatter() -> None:
    parsed, inputs = made("ScatterND", normal(6, 5), [[1], [1], [-1]], normal(3, 5), reduction="add")
    assert became(parsed) == ["scatter_nd"]
    check(parsed, inputs)


@pytest.mark.parametrize(
    ("indices", "operator"),
    [
        ([[2], [3]], "strided_slice"),
        ([[[0, 1], [0, 3]]], "strided_slice"),
        ([[[5, 4]], [[3, 4]]], "gather_nd"),
        ([[-1, -1, -1]], "strided_slice"),
        ([[0, 1], [1, 0]], "gather_nd"),
    ],
)
def test_parts_that_are_read(indices: list[object], operator: str) -> None:
    parsed, inputs = made("GatherND", normal(6, 5, 3), indices)
    assert became(parsed) == [operator]
    check(parsed, inputs)


@pytest.mark.parametrize(
    ("row", "shape", "operator"),
    [
        ([1], (4, 1, 3), "mxplan.put"),
        ([0, 2, 4], (4, 3, 3), "mxplan.put"),
        ([-2, -1], (4, 2, 3), "mxplan.put"),
        ([1, 2], (4, 2, 3), "mxplan.put"),
        ([3, 0], (4, 2, 3), "scatter_elements"),
    ],
)
def test_elements_that_are_put(row: list[int], shape: tuple[int, ...], operator: str) -> None:
    indices = np.broadcast_to(np.array(row)[:, None], shape)
    parsed, inputs = made("ScatterElements", normal(4, 5, 3), indices, normal(*shape), axis=1)
    assert operator in became(parsed)
    check(parsed, inputs)


@pytest.mark.parametrize(
    ("row", "operator"), [([0, 1, 2], "strided_slice"), ([4, 2], "gather_elements"), ([-1], "strided_slice")]
)
def test_elements_that_are_read(row: list[int], operator: str) -> None:
    indices = np.broadcast_to(np.array(row)[:, None], (4, len(row), 3))
    parsed, inputs = made("GatherElements", normal(4, 5, 3), indices, axis=1)
    assert became(parsed) == [operator]
    check(parsed, inputs)


@pytest.mark.parametrize(
    ("indices", "operator"),
    [
        ([1, 2, 3], "strided_slice"),
        ([[0, 1], [2, 3], [4, 5]], None),
        ([[0, 2, 4], [1, 3, 5]], None),
        ([[-6, -5], [-3, -2]], "take"),
        ([[0, 1, 2], [2, 3, 4]], "take"),
        ([[5, 4, 3]], "take"),
        ([0, 2, 4, 1, 3, 5], None),
        ([1, 3, 2, 4], "strided_slice"),
        ([0, 3, 1, 4], "take"),
        ([0, 2, 4, 1, 3], "take"),
        ([0, 1, 2, 2, 3, 4], "take"),
    ],
)
def test_windows_side_by_side(indices: list[object], operator: str | None) -> None:
    parsed, inputs = made("Gather", normal(2, 6, 3), indices, axis=1)
    assert became(parsed) == ([operator] if operator else [])
    check(parsed, inputs)


def test_one_place_is_a_slice_and_one_outside_is_an_error() -> None:
    parsed, inputs = made("Gather", normal(2, 5, 3), -2, axis=1)
    assert became(parsed) == ["strided_slice"]
    check(parsed, inputs)
    outside, _ = made("Gather", normal(2, 5, 3), [[0], [5]], axis=1)
    with pytest.raises(InvalidInputError, match=r"\(Gather\): index 5 .* expected -5 to 4"):
        tvm_mxplan.compile(outside, "llvm")


def test_elements_at_places_of_their_own() -> None:
    indices = np.array([[0, 1, 2], [3, 3, -4]])
    parsed, inputs = made("GatherElements", normal(4, 3), indices, axis=0)
    assert became(parsed) == ["gather_elements"]
    check(parsed, inputs)


@pytest.mark.parametrize("extent", ["n", "3"])
def test_rows_of_a_named_extent(extent: str) -> None:
    """Places along an axis of no known extent are looked at when the model runs."""
    node = onnx.helper.make_node("ScatterND", ["x", "i", "u"], ["y"])
    parsed = of_node(node, {"x": normal(3, 2), "u": normal(1, 2)}, {"i": np.array([[-1]])})
    if extent == "n":
        parsed.graph.input[0].type.tensor_type.shape.dim[0].dim_param = extent
    assert ("mxplan.put" in became(parsed)) is (extent == "3")
    check(parsed, {"x": normal(3, 2), "u": normal(1, 2)})


def test_places_of_as_many_rows_as_an_input_has() -> None:
    """A constant that is broadcast to a named extent has no numbers yet."""
    parsed = model(
        """agraph (float[3, 4] x, float[n] z) => (float[a, b, c] y)
        <int64[1, 2] two = {2, 0}, int64[1] last = {2}> {
            rows = Shape(z)
            shape = Concat<axis = 0>(rows, last)
            places = Expand(two, shape)
            y = Gather(x, places)
        }"""
    )
    assert became(parsed)[-1] == "take"
    check(parsed, {"x": normal(3, 4), "z": normal(5)})
