"""``MergeAxes``: operators of seven axes run in regions; those of six and fewer stay as they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from relax_programs import result_of
from tvm import relax, tirx

import tvm_mxplan
from tvm_mxplan.passes.canonicalize import MergeAxes

SHAPE = (2, 1, 9, 4, 4, 3, 5)
ONES = np.ones((3, 5), "float32")
SUMMAND = np.arange(16, dtype="float32").reshape(4, 4, 1, 1)
Write = Callable[[relax.Expr], relax.Expr]
OPERATORS: dict[str, tuple[Write, Callable[[np.ndarray], np.ndarray], list[int]]] = {
    "softmax": (lambda x: relax.op.nn.softmax(x, 2), lambda x: softmax(x, 2), [2, 9, 240]),
    "softmax of the last": (lambda x: relax.op.nn.softmax(x, -1), lambda x: softmax(x, -1), [864, 5]),
    "sum": (lambda x: relax.op.sum(x, [2]), lambda x: x.sum(2), [2, 9, 240]),
    "kept axes": (
        lambda x: relax.op.mean(x, [-1, -2], keepdims=True),
        lambda x: x.mean((5, 6), keepdims=True),
        [288, 15],
    ),
    "layer norm": (
        lambda x: relax.op.nn.layer_norm(x, relax.const(ONES), relax.const(0 * ONES), [-2, -1], epsilon=0.0),
        lambda x: (x - x.mean((5, 6), keepdims=True)) / x.std((5, 6), keepdims=True),
        [288, 3, 5],
    ),
    "rms norm": (
        lambda x: relax.op.nn.rms_norm(x, relax.const(ONES), [-2, -1], epsilon=0.0),
        lambda x: x / np.sqrt((x**2).mean((5, 6), keepdims=True)),
        [288, 3, 5],
    ),
    "element by element": (relax.op.tanh, np.tanh, [4320]),
    "broadcast": (
        lambda x: relax.op.add(x, relax.const(SUMMAND)),
        lambda x: x + SUMMAND,
        [18, 16, 15],
    ),
    "with a number": (lambda x: relax.op.multiply(x, relax.const(3.0)), lambda x: 3 * x, [4320]),
}


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def module(write: Write, shape: tuple[object, ...]) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(builder.emit(write(x)))
        builder.emit_func_output(y)
    return builder.get()


def merged(mod: tvm.IRModule) -> list[int]:
    """The shape that the operator in the middle reads."""
    calls = list(relax.analysis.get_var2val(mod["main"]).values())
    names = [call.op.name.removeprefix("relax.") for call in calls if isinstance(call, relax.Call)]
    assert names[0] == names[-1] == "reshape" and len(names) == 3
    return [int(dim) for dim in calls[1].args[0].ty.shape.values]


@pytest.mark.parametrize("name", OPERATORS)
def test_many_axes_run_in_a_region(name: str) -> None:
    write, wanted, shape = OPERATORS[name]
    mod = module(write, SHAPE)
    assert merged(MergeAxes()(mod)) == shape
    executable = tvm_mxplan.compile(mod, options={"machine": "default"})
    assert len(executable.report.regions) == 1
    x = np.random.default_rng(3).standard_normal(SHAPE).astype("float32")
    np.testing.assert_allclose(executable(x)[0].numpy(), wanted(x.astype("float64")), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("axes", "shape"),
    [
        ([0, 3, 4, 1, 2, 6, 5], [2, 9, 16, 3, 5]),
        ([6, 5, 4, 3, 2, 1, 0], [2, 9, 4, 4, 3, 5]),
        ([0, 3, 4, 5, 6, 1, 2], [2, 9, 240]),
        (None, [2, 9, 4, 4, 3, 5]),
    ],
)
def test_axes_that_are_moved_together(axes: list[int] | None, shape: list[int]) -> None:
    mod = module(lambda x: relax.op.permute_dims(x, axes), SHAPE)
    few = MergeAxes()(mod)
    assert merged(few) == shape
    x = np.random.default_rng(3).standard_normal(SHAPE).astype("float32")
    np.testing.assert_array_equal(result_of(few, x), x.transpose(axes))


def test_norms_of_six_axes_are_of_rows() -> None:
    """Six axes stay, and the library's step has two."""
    shape = (2, 3, 2, 3, 4, 15)
    last = relax.const(np.ones(15, "float32"))
    mod = module(lambda x: relax.op.nn.layer_norm(x, last, last, [-1], epsilon=0.0), shape)
    tvm.ir.assert_structural_equal(MergeAxes()(mod), mod)
    executable = tvm_mxplan.compile(mod, options={"machine": "default"})
    assert len(executable.report.regions) == 1
    x = np.random.default_rng(3).standard_normal(shape).astype("float32")
    wanted = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) + 1
    np.testing.assert_allclose(executable(x)[0].numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axes", [[0, 2, 3, 1, 4, 5, 6], [1, 0, 2, 3, 4, 5, 6]])
def test_axes_of_one_element_that_are_moved(axes: list[int]) -> None:
    shape = (2, 1, 1, 3, 4, 5, 2) if axes[0] == 0 else (2, 1, 3, 4, 5, 2, 2)
    mod = MergeAxes()(module(lambda x: relax.op.permute_dims(x, axes), shape))
    calls = list(relax.analysis.get_var2val(mod["main"]).values())
    assert [call.op.name for call in calls if isinstance(call, relax.Call)] == ["relax.reshape"]


def test_named_extents() -> None:
    write, wanted, _ = OPERATORS["softmax"]
    mod = module(write, (tirx.Var("n", "int64"), *SHAPE[1:]))
    executable = tvm_mxplan.compile(mod)
    x = np.random.default_rng(3).standard_normal((3, *SHAPE[1:])).astype("float32")
    np.testing.assert_allclose(executable(x)[0].numpy(), wanted(x.astype("float64")), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [SHAPE[1:], (2, 3, 2, 3, 2, 3, 2)])
def test_what_stays(shape: tuple[int, ...]) -> None:
    """Six axes, and seven of which no two are alike."""
    axes = [1, 3, 5] if len(shape) == 7 else [2]
    mod = module(lambda x: relax.op.sum(x, axes), shape)
    tvm.ir.assert_structural_equal(MergeAxes()(mod), mod)
