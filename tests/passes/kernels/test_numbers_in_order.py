"""Places of extremes, and orders, of rows with NaN and infinities, by TVM's kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.passes.kernels import NumbersInOrder

ROWS = np.array(
    [
        [1, np.nan, 3, 4, np.nan],
        [-np.inf] * 5,
        [np.nan] * 5,
        [2, -0.0, 0.0, np.inf, -3],
        [-1, -2, -np.inf, -0.5, -4],
    ]
)
TYPES = ["float16", "float32", "float64"]


def module(make: Callable[[relax.Expr], relax.Expr], dtype: str) -> tvm.IRModule:
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType(ROWS.shape, dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(make(x))
        builder.emit_func_output(y)
    return builder.get()


def answers(make: Callable[[relax.Expr], relax.Expr], dtype: str) -> list[np.ndarray]:
    executable = tvm_mxplan.compile(module(make, dtype), "llvm", options={"cache": "disabled"})
    return executable.run([ROWS.astype(dtype)])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_of_extremes(name: str, axis: int | None, dtype: str) -> None:
    (found,) = answers(lambda x: getattr(relax.op, name)(x, axis), dtype)
    np.testing.assert_array_equal(found, getattr(np, name)(ROWS.astype(dtype), axis))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_orders(axis: int, dtype: str) -> None:
    (places,) = answers(lambda x: relax.op.argsort(x, axis, dtype="int64"), dtype)
    np.testing.assert_array_equal(places, np.argsort(ROWS.astype(dtype), axis, kind="stable"))
    (values,) = answers(lambda x: relax.op.sort(x, axis), dtype)
    np.testing.assert_array_equal(values, np.sort(ROWS.astype(dtype), axis))


@pytest.mark.parametrize("kind", ["both", "values", "indices"])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("places_of", ["int32", "int64"])
def test_the_first_of_an_order(kind: str, largest: bool, places_of: str) -> None:
    found = answers(lambda x: relax.op.topk(x, 3, 1, kind, largest, places_of), "float32")
    ordered = np.sort(ROWS.astype("float32"), 1)
    expected = ordered[:, ::-1][:, :3] if largest else ordered[:, :3]
    assert [one.dtype for one in found] == {"both": ["float32", places_of], "values": ["float32"]}.get(
        kind, [places_of]
    )
    if kind != "indices":
        np.testing.assert_array_equal(found[0], expected)
    if kind != "values":
        np.testing.assert_array_equal(
            np.take_along_axis(ROWS.astype("float32"), found[-1].astype("int64"), 1), expected
        )


def test_whole_numbers_stay() -> None:
    before = module(relax.op.argmax, "int32")
    tvm.ir.assert_structural_equal(NumbersInOrder()(before), before)
