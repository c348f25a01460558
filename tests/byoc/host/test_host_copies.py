"""``tile`` and ``repeat`` in the host library: slices that take the one element of new axes over and over."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.opcheck import checking

N = tvm.tirx.Var("n", "int64")
TILES = [
    ((2, 3), (2, 1, 3)),
    ((2, 3), (3,)),
    ((2, 3), (2, 2)),
    ((), (2,)),
    ((2, 3), (2, 0)),
    ((0, 3), (2, 2)),
]
REPEATS = [((2, 3, 5), 2, 1), ((2, 3, 5), 3, -1), ((2, 5), 3, None), ((2, 5), 0, 0), ((4, 0), 2, 0)]


def by_host(
    function: Callable[[relax.Expr], relax.Expr], array: np.ndarray, shape: tuple[object, ...] | None = None
) -> tuple[np.ndarray, tvm_mxplan.Executable]:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(array.shape if shape is None else shape, str(array.dtype)))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(function(x))
        builder.emit_func_output(y)
    options = {"machine": "default", "verify": "all", "cache": "disabled"}
    ex = tvm_mxplan.compile(builder.get(), "host, llvm", options=options)
    with checking() as checker:
        found = ex(array)[0].numpy()
    assert not checker.result().differences and not ex.report.verification.refused
    return found, ex


def filled(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (np.random.default_rng(0).standard_normal(shape) * 9).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("shape, counts", TILES)
def test_tile(shape: tuple[int, ...], counts: tuple[int, ...], dtype: str) -> None:
    array = filled(shape, dtype)
    found, ex = by_host(lambda x: relax.op.tile(x, counts), array)
    np.testing.assert_array_equal(found, np.tile(array, counts))
    assert [step.kind for region in ex.report.regions for step in region.steps] == ["strided_slice"]


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("shape, count, axis", REPEATS)
def test_repeat(shape: tuple[int, ...], count: int, axis: int | None, dtype: str) -> None:
    array = filled(shape, dtype)
    found, ex = by_host(lambda x: relax.op.repeat(x, count, axis), array)
    np.testing.assert_array_equal(found, np.repeat(array, count, axis))
    assert [step.kind for region in ex.report.regions for step in region.steps] == ["strided_slice"]


def test_named_sizes() -> None:
    array = filled((3, 5), "float32")
    found, ex = by_host(lambda x: relax.op.tile(x, [2, 2]), array, (N, 5))
    np.testing.assert_array_equal(found, np.tile(array, [2, 2]))
    assert ex.report.regions
    found, ex = by_host(lambda x: relax.op.repeat(x, 3, 1), array, (N, 5))
    np.testing.assert_array_equal(found, np.repeat(array, 3, 1))
    assert ex.report.regions


@pytest.mark.parametrize(
    "function, shape, reason",
    [
        (lambda x: relax.op.tile(x, [2] * 7), (2,) * 7, "rank 14 with the axes of its copies"),
        (lambda x: relax.op.repeat(x, 2), (N, 5), "no axis, of a symbolic shape"),
    ],
)
def test_what_is_refused(
    function: Callable[[relax.Expr], relax.Expr], shape: tuple[object, ...], reason: str
) -> None:
    array = filled(tuple(dim if isinstance(dim, int) else 3 for dim in shape), "float32")
    _, ex = by_host(function, array, shape)
    assert not ex.report.regions and any(reason in one.reason for one in ex.report.fallbacks)
