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


def _with_ones(x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    result = x.copy()
    np.put_along_axis(result, indices, 1.0, 0)
    return result


def _scattered(x: relax.Expr, i: relax.Expr) -> relax.Expr:
    return relax.op.scatter_elements(x, i, relax.op.ones((200, 500), "float32"), 0)


# kind of the step, operator, the shape of its indices, the result in numpy
IN_REGIONS: dict[str, tuple[str, Emit, tuple[int, ...], Callable[..., np.ndarray]]] = {
    "take": (
        "gather",
        lambda x, i: relax.op.take(x, i, 0),
        (200,),
        lambda x, i: x[i],
    ),
    "gather_elements": (
        "gather_elements",
        lambda x, i: relax.op.gather_elements(x, i, 0),
        (200, 500),
        lambda x, i: np.take_along_axis(x, i, 0),
    ),
    "scatter_elements": ("scatter_elements", _scattered, (200, 500), _with_ones),
    "scatter_nd": (
        "scatter",
        lambda x, i: relax.op.scatter_nd(x, i, relax.op.ones((200, 500), "float32")),
        (200, 1),
        lambda x, i: _with_ones(x, np.broadcast_to(i, (200, 500))),
    ),
}


@pytest.mark.parametrize("name", IN_REGIONS)
def test_nothing_is_counted_twice_in_a_region(name: str) -> None:
    """The host library counts indices itself."""
    kind, emit, shape, right = IN_REGIONS[name]
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((300, 500), "float32"))
    indices = relax.Var("i", relax.TensorType(shape, "int64"))
    with builder.function("main", [x, indices]):
        with builder.dataflow():
            found = builder.emit(emit(x, counted(indices, 300)))
            result = builder.emit_output(builder.emit(relax.op.exp(found)))
        builder.emit_func_output(result)
    options = {"cache": "disabled", "prefer": {name: "host"}}  # whether it pays or not
    compiled = tvm_mxplan.compile(builder.get(), options=options)
    (region,) = compiled.report.regions
    assert kind in [step.kind for step in region.steps]
    data = np.random.default_rng(1).standard_normal((300, 500)).astype("float32")
    given = np.random.default_rng(2).integers(-300, 300, shape)
    np.testing.assert_allclose(compiled(data, given)[0].numpy(), np.exp(right(data, given)), rtol=1e-6)
    given.flat[-7] = -301
    with pytest.raises(InvalidInputError, match=f"{name}_0: an index is out of bounds"):
        compiled(data, given)
