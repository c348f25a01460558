"""``RecoverRmsNorms``: every way of writing a norm by the mean square is one operator; others stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import tvm
from dataflow_text import calls
from tvm import relax

import tvm_mxplan
from tvm_mxplan.passes.canonicalize import RecoverRmsNorms

op = relax.op
SHAPE, WIDTH, EPSILON = (2, 5, 19), 19, 1e-3
Emit = Callable[[relax.Expr], relax.Expr]
Write = Callable[..., relax.Expr]


def number(value: float) -> relax.Expr:
    return relax.const(value, "float32")


def function(write: Write, *shapes: Sequence[int]) -> tvm.IRModule:
    """A function of tensors of these shapes that ``write`` emits, given them."""
    builder = relax.BlockBuilder()
    params = [relax.Var(f"p{at}", relax.TensorType(shape, "float32")) for at, shape in enumerate(shapes)]
    with builder.function("main", params):
        with builder.dataflow():
            result = write(builder.emit, *params)
            result = [result] if isinstance(result, relax.Expr) else result
            outputs = [builder.emit_output(one) for one in result]
        builder.emit_func_output(outputs[0] if len(outputs) == 1 else relax.Tuple(outputs))
    return builder.get()


def run_by_tvm(mod: tvm.IRModule, arrays: Sequence[np.ndarray]) -> np.ndarray:
    machine = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    return machine["main"](*[tvm.runtime.tensor(array) for array in arrays]).numpy()


def names(mod: tvm.IRModule) -> list[str]:
    return sorted(str(call.op.name).removeprefix("relax.") for call in calls(mod))


# --- the parts, by every way of writing them -------------------------------------------------------------

SQUARES: dict[str, Write] = {
    "power": lambda emit, x: emit(op.power(x, number(2.0))),
    "product": lambda emit, x: emit(op.multiply(x, x)),
    "square": lambda emit, x: emit(op.square(x)),
}
MEANS: dict[str, Write] = {
    "mean": lambda emit, x: emit(op.mean(x, [-1], keepdims=True)),
    "scaled sum": lambda emit, x: emit(op.multiply(emit(op.sum(x, [2], keepdims=True)), number(1 / WIDTH))),
    "divided sum": lambda emit, x: emit(op.divide(emit(op.sum(x, [2], keepdims=True)), number(WIDTH))),
}
SCALED: dict[str, Write] = {
    "rsqrt": lambda emit, x, inside: emit(op.multiply(x, emit(op.rsqrt(inside)))),
    "rsqrt in front": lambda emit, x, inside: emit(op.multiply(emit(op.rsqrt(inside)), x)),
    "root": lambda emit, x, inside: emit(op.divide(x, emit(op.sqrt(inside)))),
    "power of a half": lambda emit, x, inside: emit(op.divide(x, emit(op.power(inside, number(0.5))))),
    "reciprocal": lambda emit, x, inside: emit(
        op.multiply(x, emit(op.divide(number(1.0), emit(op.sqrt(inside)))))
    ),
    "power": lambda emit, x, inside: emit(op.multiply(x, emit(op.power(inside, number(-0.5))))),
    "power of the root": lambda emit, x, inside: emit(
        op.multiply(x, emit(op.power(emit(op.sqrt(inside)), number(-1.0))))
    ),
}


def norm(square: str = "power", mean: str = "mean", scaled: str = "rsqrt") -> Write:
    def write(emit: Emit, x: relax.Expr, weight: relax.Expr | None = None) -> relax.Expr:
        inside = emit(op.add(MEANS[mean](emit, SQUARES[square](emit, x)), number(EPSILON)))
        bare = SCALED[scaled](emit, x, inside)
        return bare if weight is None else emit(op.multiply(bare, weight))

    return write


def weight_in_front(emit: Emit, x: relax.Expr, weight: relax.Expr) -> relax.Expr:
    return emit(op.multiply(weight, norm()(emit, x)))


def constant_weight(emit: Emit, x: relax.Expr, _weight: relax.Expr) -> relax.Expr:
    return emit(op.multiply(norm()(emit, x), relax.const(np.linspace(1, 2, WIDTH, dtype="float32")[None])))


FORMS: dict[str, Write] = {
    **{f"square by {name}": norm(square=name) for name in SQUARES},
    **{f"mean by {name}": norm(mean=name) for name in MEANS},
    **{f"scale by {name}": norm(scaled=name) for name in SCALED},
    "weight in front": weight_in_front,
    "constant weight": constant_weight,
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("weight", [(WIDTH,), (1, 1, WIDTH)])
def test_every_form_is_one_operator(name: str, weight: tuple[int, ...]) -> None:
    mod = function(FORMS[name], SHAPE, weight)
    found = RecoverRmsNorms()(mod)
    assert [one for one in names(found) if one != "squeeze"] == ["nn.rms_norm"]
    random = np.random.default_rng(5)
    arrays = [random.standard_normal(shape).astype("float32") for shape in (SHAPE, weight)]
    wanted = run_by_tvm(mod, arrays)
    np.testing.assert_allclose(run_by_tvm(found, arrays), wanted, rtol=2e-6, atol=1e-6)


def test_it_runs_as_one_step() -> None:
    mod = function(norm(), SHAPE, (WIDTH,))
    random = np.random.default_rng(5)
    arrays = [random.standard_normal(shape).astype("float32") for shape in (SHAPE, (WIDTH,))]
    executable = tvm_mxplan.compile(mod)
    assert executable.report.offloaded == 1
    (got,) = executable(*arrays)
    np.testing.assert_allclose(got.numpy(), run_by_tvm(mod, arrays), rtol=2e-6, atol=1e-6)


def test_a_norm_without_a_weight_and_over_two_axes() -> None:
    def write(emit: Emit, x: relax.Expr) -> relax.Expr:
        mean = emit(op.mean(emit(op.square(x)), [1, 2], keepdims=True))
        return emit(op.multiply(x, emit(op.rsqrt(emit(op.add(number(EPSILON), mean))))))

    found = RecoverRmsNorms()(function(write, SHAPE))
    (call,) = calls(found)
    assert call.op.name == "relax.nn.rms_norm" and [int(axis) for axis in call.attrs.axes] == [-2, -1]


# --- what stays ------------------------------------------------------------------------------------------


def read_twice(emit: Emit, x: relax.Expr) -> list[relax.Expr]:
    inside = emit(op.add(emit(op.mean(emit(op.square(x)), [-1], keepdims=True)), number(EPSILON)))
    root = emit(op.rsqrt(inside))
    return [emit(op.multiply(x, root)), emit(op.exp(root))]


def other_source(emit: Emit, x: relax.Expr) -> relax.Expr:
    inside = emit(op.add(emit(op.mean(emit(op.square(x)), [-1], keepdims=True)), number(EPSILON)))
    return emit(op.multiply(emit(op.abs(x)), emit(op.rsqrt(inside))))


def other_axis(emit: Emit, x: relax.Expr) -> relax.Expr:
    inside = emit(op.add(emit(op.mean(emit(op.square(x)), [1], keepdims=True)), number(EPSILON)))
    return emit(op.multiply(x, emit(op.rsqrt(inside))))


def a_sum(emit: Emit, x: relax.Expr) -> relax.Expr:
    inside = emit(op.add(emit(op.sum(emit(op.square(x)), [-1], keepdims=True)), number(EPSILON)))
    return emit(op.multiply(x, emit(op.rsqrt(inside))))


def a_cube(emit: Emit, x: relax.Expr) -> relax.Expr:
    inside = emit(op.add(emit(op.mean(emit(op.power(x, number(3.0))), [-1], keepdims=True)), number(EPSILON)))
    return emit(op.multiply(x, emit(op.rsqrt(inside))))


def the_other_quotient(emit: Emit, x: relax.Expr) -> relax.Expr:
    inside = emit(op.add(emit(op.mean(emit(op.square(x)), [-1], keepdims=True)), number(EPSILON)))
    return emit(op.divide(emit(op.sqrt(inside)), x))


@pytest.mark.parametrize("write", [read_twice, other_source, other_axis, a_sum, a_cube, the_other_quotient])
def test_what_is_only_like_it_stays(write: Write) -> None:
    assert "nn.rms_norm" not in names(RecoverRmsNorms()(function(write, SHAPE)))


def test_a_norm_that_something_else_reads_keeps_its_result() -> None:
    def write(emit: Emit, x: relax.Expr, weight: relax.Expr) -> list[relax.Expr]:
        bare = norm()(emit, x)
        return [emit(op.exp(bare)), emit(op.multiply(bare, weight))]

    found = names(RecoverRmsNorms()(function(write, SHAPE, (WIDTH,))))
    assert found == ["exp", "multiply", "nn.rms_norm"]


@pytest.mark.parametrize("weight", [(5, WIDTH), (5, 1), (1,)])
def test_other_factors_are_no_weights(weight: tuple[int, ...]) -> None:
    found = names(RecoverRmsNorms()(function(norm(), SHAPE, weight)))
    assert found == ["multiply", "nn.rms_norm"]
