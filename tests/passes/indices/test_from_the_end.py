"""Indices that count from the end, told by the operators that an importer writes for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import tvm
from tvm import relax, tirx

from tvm_mxplan.passes.indices.from_the_end import from_the_end

N = tirx.Var("n", "int64")
M = tirx.Var("m", "int64")
INDICES = relax.Var("i", relax.TensorType((4,), "int64"))
OTHER = relax.Var("j", relax.TensorType((4,), "int64"))


def constant(*numbers: int, dtype: str = "int64") -> relax.Expr:
    array = np.array(numbers if len(numbers) != 1 else numbers[0], dtype)
    return relax.const(array, dtype)


def counted(
    extent: relax.Expr,
    *,
    given: relax.Expr = INDICES,
    asked: relax.Expr = INDICES,
    added: relax.Expr = INDICES,
    zero: int = 0,
) -> relax.Expr:
    """where(less(asked, zero), add(added, extent), given)"""
    return relax.op.where(relax.op.less(asked, constant(zero)), relax.op.add(added, extent), given)


def found(expr: relax.Expr, *extents: object) -> relax.Expr | None:
    return from_the_end(expr, extents, lambda one: one)  # type: ignore[arg-type]


def data(*shape: object) -> relax.Expr:
    return relax.Var("data", relax.TensorType(shape, "float32"))


def shape(*dims: object) -> relax.Expr:
    """The shape of data as a tensor."""
    return relax.op.shape_to_tensor(relax.op.shape_of(data(*dims)))


def test_a_number_that_is_the_extent() -> None:
    assert found(counted(constant(7)), 7).same_as(INDICES)
    assert found(counted(constant(7)), 6) is None
    assert found(counted(constant(7)), 8) is None
    assert found(counted(constant(7)), N) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"given": OTHER},
        {"asked": OTHER},
        {"added": OTHER},
        {"zero": 1},
        {"zero": -1},
    ],
)
def test_anything_else_is_no_counting_from_the_end(wrong: dict) -> None:
    assert found(counted(constant(7), **wrong), 7) is None


def test_other_operators_are_none() -> None:
    less, add = relax.op.less(INDICES, constant(0)), relax.op.add(INDICES, constant(7))
    assert found(relax.op.where(less, add, INDICES), 7) is not None
    assert found(INDICES, 7) is None
    assert found(relax.op.where(relax.op.greater(INDICES, constant(0)), add, INDICES), 7) is None
    assert found(relax.op.where(less, relax.op.multiply(INDICES, constant(7)), INDICES), 7) is None
    assert found(relax.op.where(less, INDICES, add), 7) is None


def test_several_axes_have_an_extent_each() -> None:
    both = counted(constant(7, 9))
    assert found(both, 7, 9) is not None
    for extents in ((9, 7), (7, 8), (7,), (7, 9, 1), ()):
        assert found(both, *extents) is None


EXTENTS: list[tuple[str, relax.Expr, Sequence[object]]] = [
    ("all axes", shape(5, N), (5, N)),
    ("a shape that is written out", relax.op.shape_to_tensor(relax.ShapeExpr([3, N])), (3, N)),
    ("an axis", relax.op.take(shape(5, N), constant(1), axis=0), (N,)),
    ("an axis from the end", relax.op.take(shape(5, N), constant(-2), axis=0), (5,)),
    (
        "an axis as a slice",
        relax.op.reshape(relax.op.strided_slice(shape(5, N), [0], [1], [2]), relax.ShapeExpr([])),
        (N,),
    ),
    ("a cast", relax.op.astype(relax.op.take(shape(5, 6), constant(0), axis=0), "int32"), (5,)),
    ("some axes", relax.op.strided_slice(shape(5, N, 7), [0], [1], [3]), (N, 7)),
    ("every other axis", relax.op.strided_slice(shape(5, N, 7), [0], [0], [3], [2]), (5, 7)),
]


@pytest.mark.parametrize(
    ("extent", "extents"), [case[1:] for case in EXTENTS], ids=[case[0] for case in EXTENTS]
)
def test_extents_read_off_the_shape(extent: relax.Expr, extents: Sequence[object]) -> None:
    assert found(counted(extent), *extents) is not None
    for at, dim in enumerate(extents):
        for wrong in (4, M, 1):
            others = [*extents[:at], wrong, *extents[at + 1 :]]
            assert dim in others[at : at + 1] or found(counted(extent), *others) is None
    assert found(counted(extent), *extents, 1) is None


UNKNOWN: list[tuple[str, relax.Expr]] = [
    ("behind the last axis", relax.op.take(shape(5, 5), constant(2), axis=0)),
    ("before the first axis", relax.op.take(shape(5, 5), constant(-3), axis=0)),
    (
        "an axis that varies",
        relax.op.take(shape(5, 5), relax.Var("k", relax.TensorType((), "int64")), axis=0),
    ),
    ("backwards", relax.op.strided_slice(shape(5, 5), [0], [1], [0], [-1])),
    ("a parameter", relax.Var("e", relax.TensorType((), "int64"))),
    ("another operator", relax.op.add(constant(2), constant(3))),
    (
        "a shape without numbers",
        relax.op.shape_to_tensor(relax.Var("s", relax.ShapeType(ndim=1))),
    ),
]


@pytest.mark.parametrize("extent", [case[1] for case in UNKNOWN], ids=[case[0] for case in UNKNOWN])
def test_extents_that_are_not_known(extent: relax.Expr) -> None:
    assert found(counted(extent), 5) is None


def test_variables_are_seen_through() -> None:
    names = {
        relax.Var(f"v{at}", relax.TensorType((4,), kind)): None
        for at, kind in enumerate(("bool", "int64", "int64", "int64"))
    }
    below, add, extent, whole = names
    definitions: dict[tvm.ir.Expr, tvm.ir.Expr] = {
        below: relax.op.less(INDICES, constant(0)),
        add: relax.op.add(INDICES, extent),
        extent: relax.op.take(shape(5, N), constant(1), axis=0),
        whole: relax.op.where(below, add, INDICES),
    }
    assert from_the_end(whole, [N], lambda one: definitions.get(one, one)).same_as(INDICES)
    assert from_the_end(whole, [N], lambda one: one) is None
