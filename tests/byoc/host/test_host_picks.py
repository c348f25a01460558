"""Steps that pick entries by indices: kernels against numpy, and operators between a network's layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import tvm
from host_networks import X, between_convolutions
from host_steps import drawn, one_step, ran
from tvm import relax

import tvm_mxplan
from tvm_mxplan import opcheck
from tvm_mxplan.byoc import registry
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import InvalidInputError

RANDOM = np.random.default_rng(23)
Shape = tuple[int, ...]
GATHERS = [
    ((17, 5, 3), (4,), 0), ((17, 5, 3), (2, 7), 1), ((17, 5, 3), (11,), 2), ((9,), (), 0),
    ((30011, 3), (5001,), 0), ((3, 30011), (20001,), 1), ((4, 3), (0,), 1), ((0, 3), (2,), 1),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bool", "int64", "int16"])
@pytest.mark.parametrize("shape, many, axis", GATHERS)
def test_gather(shape: Shape, many: Shape, axis: int, dtype: str) -> None:
    data = drawn(shape, dtype)
    indices = np.asarray(RANDOM.integers(-shape[axis], shape[axis], many))
    expected = np.take(data, indices, axis)
    for indices_type in ("int32", "int64"):
        operands = [("src", data), ("indices", indices.astype(indices_type))]
        assert np.array_equal(ran(ir.Gather(axis), operands, expected.shape, dtype), expected)


@pytest.mark.parametrize("index", [5, -6, 2**31, -(2**62)])
def test_an_index_out_of_bounds_is_an_error(index: int) -> None:
    operands = [("src", drawn((2, 5))), ("indices", np.array([0, index], "int64"))]
    program = one_step(ir.Gather(1), operands, (2, 2), "float32")
    function = registry.planner("host").trial(program, [])
    message = f"gather s: an index is out of bounds for axis 1 .* from -5 to 4, got {index}$"
    with pytest.raises(InvalidInputError, match=message):
        function(*(array for _, array in operands), np.empty((2, 2), "float32"))


PLACES = [
    # data, batch axes, places, axes that are indexed
    ((17,), 0, (4,), 1), ((17, 5), 0, (30,), 1), ((17, 5), 0, (3, 7), 2), ((6, 5, 9), 0, (), 2),
    ((3, 4, 700), 1, (6,), 1), ((2, 3, 4, 5), 2, (7,), 2), ((2, 3, 4, 5), 1, (2, 3), 2),
    ((4, 300, 40), 1, (2000,), 1), ((5, 4), 0, (0, 3), 1), ((0, 4, 3), 1, (2,), 1),
]  # fmt: skip


def indices_of(shape: Shape, batch: int, points: Shape, depth: int, dtype: str) -> np.ndarray:
    """Indices from either end."""
    extents = np.array(shape[batch : batch + depth], "int64")
    return np.asarray(RANDOM.integers(-extents, extents, (*shape[:batch], *points, depth)), dtype)


def picked(data: np.ndarray, batch: int, indices: np.ndarray) -> np.ndarray:
    """By numpy, sample by sample."""
    if batch == 0:
        return np.asarray(data[tuple(np.moveaxis(indices, -1, 0))])
    parts = [picked(one, batch - 1, at) for one, at in zip(data, indices, strict=True)]
    shape = (*indices.shape[1:-1], *data.shape[batch + indices.shape[-1] :])
    return np.stack(parts) if parts else np.empty((0, *shape), data.dtype)


@pytest.mark.parametrize("of", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "bool", "int16", "float64"])
@pytest.mark.parametrize("shape, batch, points, depth", PLACES)
def test_gather_nd(shape: Shape, batch: int, points: Shape, depth: int, dtype: str, of: str) -> None:
    data, indices = drawn(shape, dtype), indices_of(shape, batch, points, depth, of)
    expected = picked(data, batch, indices)
    found = ran(ir.GatherNd(batch), [("src", data), ("indices", indices)], expected.shape, dtype)
    assert np.array_equal(found, expected)


def module(batch_axes: int, shape: Shape, indices: Shape) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    at = relax.Var("at", relax.TensorType(indices, "int64"))
    with builder.function("main", [x, at]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.relu(x))
            y = builder.emit(relax.op.gather_nd(y, at, batch_axes))
            y = builder.emit_output(relax.op.nn.softmax(y))
        builder.emit_func_output(y)
    return builder.get()


@pytest.mark.parametrize("batch", [0, 1])
def test_between_steps_of_another_library(batch: int) -> None:
    shape, points = (4, 300, 64), (4, 50)
    indices = indices_of(shape, batch, points[batch:], 2 - batch, "int64")
    ex = tvm_mxplan.compile(module(batch, shape, indices.shape), options={"prefer": {"gather_nd": "host"}})
    (region,) = ex.report.regions
    assert "gather_nd" in [step.kind for step in region.steps]
    x = RANDOM.standard_normal(shape, np.float32)
    opcheck.check(ex, x, indices).raise_first()
    entries = picked(np.maximum(x, 0), batch, indices).astype("float64")
    expected = np.exp(entries) / np.exp(entries).sum(-1, keepdims=True)
    np.testing.assert_allclose(ex(x, indices)[0].numpy(), expected, rtol=1e-5)


def test_an_index_that_is_outside_is_named() -> None:
    ex = tvm_mxplan.compile(module(1, (2, 3, 8), (2, 4, 1)), options={"prefer": {"gather_nd": "host"}})
    assert [step.kind for region in ex.report.regions for step in region.steps].count("gather_nd") == 1
    indices = np.zeros((2, 4, 1), "int64")
    indices[1, 2] = 3
    with pytest.raises(
        InvalidInputError, match="out of bounds for axis 1 of the data, expected one from -3 to 2"
    ):
        ex(np.ones((2, 3, 8), np.float32), indices)


READS = [
    ((7,), {0: [3, 3, 0, 6, 5]}),
    ((2, 19, 6, 5), {2: [1, 0, 1, 2, 3, 4, 5, 4], 3: [0, 0, 1, 2, 3, 4, 4]}),
    ((2, 19, 6, 5), {1: [18, 0, 17, 3, 3], 3: [4, 3, 2, 1, 0]}),
    ((1, 3, 40, 70), {3: [0, *range(70), 69]}),
    ((2, 3, 4, 5, 6), {0: [1, 1, 0], 2: [0], 4: [5, 0]}),
    ((3, 4), {0: [], 1: [2, 1]}),
]


@pytest.mark.parametrize("dtype", ["float32", "bool", "int16", "int64"])
@pytest.mark.parametrize("layouts", [("", ""), ("acdb", "acdb"), ("aBcd8b", "aBcd8b"), ("abcd", "acdb")])
@pytest.mark.parametrize("shape, reads", READS)
def test_gather_places(shape: Shape, reads: dict[int, list[int]], layouts: Sequence[str], dtype: str) -> None:
    if layouts[0] and len(shape) != 4:
        layouts = ("", "")
    data = drawn(shape, dtype)
    expected = data
    for axis, places in reads.items():
        expected = expected.take(np.array(places, "int64"), axis)
    attrs = ir.GatherPlaces(tuple(reads), tuple(place for places in reads.values() for place in places))
    given = [] if not layouts[0] else list(layouts)
    assert np.array_equal(ran(attrs, [("src", data)], expected.shape, dtype, given), expected)


def mirrored(extent: int, pad: int) -> list[int]:
    around = np.abs(np.arange(-pad, extent + pad))
    return list(np.where(around >= extent, 2 * (extent - 1) - around, around))


def test_padding_by_mirrored_edges_is_one_step_in_any_layout() -> None:
    mod = between_convolutions(
        lambda y: relax.op.take(y, relax.const(mirrored(9, 2), "int64"), 2),
        lambda y: relax.op.take(y, relax.const(mirrored(7, 1), "int64"), 3),
    )
    options = {"cache": "disabled", "verify": "all", "prefer": {"take": "host"}}
    ex = tvm_mxplan.compile(mod, options=options)
    (region,) = ex.report.regions
    assert [step.kind for step in region.steps].count("gather_places") == 1
    assert "gather" not in [step.kind for step in region.steps]
    opcheck.check(ex, X).raise_first()
    apart = tvm_mxplan.compile(mod, "dnnl, llvm", options={"cache": "disabled"})
    np.testing.assert_allclose(ex(X)[0].numpy(), apart(X)[0].numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "axis, places, kind",
    [(2, [3, 1, 1], "gather_places"), (3, [5, 1, 1], "gather"), (3, [0, *range(7), 6], "gather_places")],
)
def test_elements_that_are_no_neighbours_are_gathered(axis: int, places: list[int], kind: str) -> None:
    mod = between_convolutions(lambda y: relax.op.take(y, relax.const(places, "int64"), axis))
    ex = tvm_mxplan.compile(mod, options={"cache": "disabled", "prefer": {"take": "host"}})
    kinds = [step.kind for region in ex.report.regions for step in region.steps]
    assert [one for one in kinds if one.startswith("gather")] == [kind]
    opcheck.check(ex, X).raise_first()


OPERATORS_READ_TWICE = {
    "places": (
        lambda x: relax.op.take(x, relax.const(mirrored(5, 1), "int64"), 1),
        lambda y: relax.op.take(y, relax.const(mirrored(9, 2), "int64"), 2),
    ),
    "sums from the end": (
        lambda x: relax.op.cumsum(relax.op.flip(x, 2), 2),
        lambda y: relax.op.flip(y, 2),
    ),
}


@pytest.mark.parametrize("name", OPERATORS_READ_TWICE)
def test_what_stands_inside_of_several_operators_may_be_read_too(name: str) -> None:
    first, second = OPERATORS_READ_TWICE[name]
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((3, 5, 9), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            inside = builder.emit(first(x))
            results = relax.Tuple([builder.emit(second(inside)), builder.emit(relax.op.exp(inside))])
            results = builder.emit_output(results)
        builder.emit_func_output(results)
    mod, given = builder.get(), RANDOM.standard_normal((3, 5, 9), np.float32)
    ex = tvm_mxplan.compile(mod, "host, llvm", options={"cache": "disabled"})
    assert ex.report.regions and not ex.report.kept
    expected = tvm_mxplan.compile(mod, "llvm", options={"cache": "disabled"})(given)
    for one, other in zip(ex(given), expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)
