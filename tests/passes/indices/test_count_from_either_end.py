"""Indices that an importer made count from the front, as they were given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.passes.indices import CountFromEitherEnd

DATA = np.random.default_rng(0).standard_normal((5, 4)).astype("float32")
Emit = Callable[[relax.Expr, relax.Expr], relax.Expr]


def counted(indices: relax.Expr, *added: int) -> relax.Expr:
    """Indices below zero with numbers added to them."""
    number = np.array(added if len(added) > 1 else added[0])
    below = relax.op.less(indices, relax.const(0, "int64"))
    return relax.op.where(below, relax.op.add(indices, relax.const(number, "int64")), indices)


def module(emit: Emit, *shape: int) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    indices = relax.Var("i", relax.TensorType(shape, "int64"))
    with builder.function("main", [indices]):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(emit(relax.const(DATA), indices)))
        builder.emit_func_output(result)
    return builder.get()


# operator, what is added to indices below zero, their shape
CASES: dict[str, tuple[Emit, tuple[int, ...], tuple[int, ...]]] = {
    "take": (lambda x, i: relax.op.take(x, counted(i, 4), 1), (4,), (3,)),
    "gather_elements": (lambda x, i: relax.op.gather_elements(x, counted(i, 5), 0), (5,), (2, 4)),
    "gather_nd": (lambda x, i: relax.op.gather_nd(x, counted(i, 5, 4)), (5, 4), (3, 2)),
    "scatter_elements": (
        lambda x, i: relax.op.scatter_elements(x, counted(i, 5), relax.const(DATA[:2] + 1), 0),
        (5,),
        (2, 4),
    ),
    "scatter_nd": (
        lambda x, i: relax.op.scatter_nd(x, counted(i, 5), relax.const(DATA[:2] + 1)),
        (5,),
        (2, 1),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operators_read_indices_as_they_are_given(name: str) -> None:
    emit, _, shape = CASES[name]
    mod = module(emit, *shape)
    assert "R.where" in mod.script()
    found = CountFromEitherEnd()(mod)
    assert not any(word in found.script() for word in ("R.where", "R.less", "R.add"))
    assert f"R.{name}(" in found.script()


def both(x: relax.Expr, i: relax.Expr) -> relax.Expr:
    return relax.op.index_tensor(x, relax.Tuple([counted(i, 5), counted(i, 4)]))


def one(x: relax.Expr, i: relax.Expr) -> relax.Expr:
    return relax.op.index_tensor(x, relax.Tuple([i, counted(i, 4)]))


@pytest.mark.parametrize("emit", [both, one])
def test_several_tensors_of_indices(emit: Emit) -> None:
    found = CountFromEitherEnd()(module(emit, 3))
    assert "R.where" not in found.script()
    given = np.array([0, -1, -4])
    compiled = tvm_mxplan.compile(module(emit, 3), options={"cache": "disabled"})
    np.testing.assert_array_equal(compiled(given)[0].numpy(), DATA[given, given])


@pytest.mark.parametrize("added", [3, 5])
def test_other_numbers_are_somebodys_own_arithmetic(added: int) -> None:
    mod = module(lambda x, i: relax.op.take(x, counted(i, added), 1), 3)
    tvm.ir.assert_structural_equal(CountFromEitherEnd()(mod), mod)


def test_one_of_two_tensors_is_counted_otherwise() -> None:
    mod = module(lambda x, i: relax.op.index_tensor(x, relax.Tuple([counted(i, 4), counted(i, 4)])), 3)
    assert CountFromEitherEnd()(mod).script().count("R.where") == 1


def test_what_does_not_suit_the_data_is_said_by_the_checks() -> None:
    """Names of operators come later than this pass."""
    mod = module(lambda x, i: relax.op.gather_elements(x, counted(i, 5), 0), 2, 5)
    tvm.ir.assert_structural_equal(CountFromEitherEnd()(mod), mod)
    with pytest.raises(InvalidInputError, match="gather_elements_0: indices have 5 entries on axis 1"):
        tvm_mxplan.compile(mod, options={"cache": "disabled"})


@pytest.mark.parametrize("target", ["llvm", "dnnl, llvm"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_counted_twice(name: str, target: str) -> None:
    """An index as far below zero as twice the extent is an error, whoever runs the operator."""
    emit, extents, shape = CASES[name]
    compiled = tvm_mxplan.compile(module(emit, *shape), target, options={"cache": "disabled"})
    lowest = np.broadcast_to(-np.array(extents), shape)
    compiled(np.ascontiguousarray(lowest))
    for number in range(1, max(extents) + 1):
        with pytest.raises(InvalidInputError, match=f"{name}_0: an index is out of bounds"):
            compiled(np.ascontiguousarray(lowest - number))


def test_nothing_is_counted_twice_in_a_region() -> None:
    """The host library counts indices itself."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((300, 500), "float32"))
    indices = relax.Var("i", relax.TensorType((200, 500), "int64"))
    with builder.function("main", [x, indices]):
        with builder.dataflow():
            picked = builder.emit(relax.op.gather_elements(x, counted(indices, 300), 0))
            result = builder.emit_output(builder.emit(relax.op.exp(picked)))
        builder.emit_func_output(result)
    compiled = tvm_mxplan.compile(builder.get(), options={"cache": "disabled"})
    (region,) = compiled.report.regions
    assert "gather_elements" in [step.kind for step in region.steps]
    data = np.random.default_rng(1).standard_normal((300, 500)).astype("float32")
    given = np.random.default_rng(2).integers(-300, 300, (200, 500))
    right = np.exp(np.take_along_axis(data, given, 0))
    np.testing.assert_allclose(compiled(data, given)[0].numpy(), right, rtol=1e-6)
    given[150, 7] = -301
    with pytest.raises(InvalidInputError, match="gather_elements_0: an index is out of bounds"):
        compiled(data, given)
