"""Arithmetic that decides a whole number stays with TVM, which computes it as the model states it."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.passes.dispatch.whole_numbers import whole_number_operators
from tvm_mxplan.passes.region.name_operators import NameOperators


def _module(*, cut: bool) -> tvm.IRModule:
    """Buckets of distances on a logarithmic scale: ``8 log(x) / log(16)``, and its digits where not cut."""
    x = relax.Var("x", relax.TensorType([5, 7], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            scaled = builder.emit(relax.op.divide(relax.op.log(x), relax.const(np.float32(np.log(16)))))
            scaled = builder.emit(relax.op.multiply(scaled, relax.const(np.float32(8))))
            whole = builder.emit(relax.op.astype(scaled, "int64")) if cut else scaled
            other = builder.emit(relax.op.nn.relu(x))
            result = builder.emit_output(relax.Tuple([whole, other]))
        builder.emit_func_output(result)
    return builder.get()


def test_arithmetic_in_front_of_a_cast_is_found():
    assert whole_number_operators(NameOperators()(_module(cut=True))) == {"log_0", "divide_0", "multiply_0"}
    assert whole_number_operators(NameOperators()(_module(cut=False))) == set()


def test_what_comes_from_products_is_not_among_them_but_integers_are():
    """A network cast to pixels at its end keeps its biases and sums; what is found by comparing is exact."""
    x = relax.Var("x", relax.TensorType([1, 3, 5, 7], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit(relax.op.nn.conv2d(x, relax.const(np.full((3, 3, 1, 1), 0.3, "float32"))))
            made = builder.emit(relax.op.add(made, relax.const(np.float32(0.7))))
            summed = builder.emit(relax.op.add(made, x))
            scaled = builder.emit(relax.op.multiply(summed, relax.const(np.float32(255))))
            pixels = builder.emit(relax.op.astype(scaled, "uint8"))
            best = builder.emit(relax.op.astype(relax.op.argmax(made, axis=1), "float32"))
            half = builder.emit(relax.op.divide(best, relax.const(np.float32(3))))
            cells = builder.emit(relax.op.floor(half))
            result = builder.emit_output(relax.Tuple([pixels, cells]))
        builder.emit_func_output(result)
    assert whole_number_operators(NameOperators()(builder.get())) == {"divide_0"}


@pytest.mark.parametrize(
    ("dtype", "found"),
    [("uint8", {"divide_0"}), ("int32", {"divide_0"}), ("bool", {"divide_0"}), ("float64", set())],
)
def test_integers_have_no_digits_of_products(dtype: str, found: set[str]):
    """Of any width, with a sign or without; numbers of more digits keep those of the products."""
    x = relax.Var("x", relax.TensorType([1, 3, 5, 7], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit(relax.op.nn.conv2d(x, relax.const(np.full((3, 3, 1, 1), 0.3, "float32"))))
            other = builder.emit(relax.op.astype(builder.emit(relax.op.astype(made, dtype)), "float32"))
            half = builder.emit(relax.op.divide(other, relax.const(np.float32(3))))
            result = builder.emit_output(builder.emit(relax.op.floor(half)))
        builder.emit_func_output(result)
    assert whole_number_operators(NameOperators()(builder.get())) == found


ONE = ("negative", "abs", "sqrt", "rsqrt", "exp", "log")
TWO = ("add", "subtract", "multiply", "divide", "power", "minimum", "maximum")


def _floored(made, dtype: str = "float32") -> set[str]:
    """Names of the operators behind which a floor stands: those that ``made`` emits for x."""
    x = relax.Var("x", relax.TensorType([5, 7], dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(relax.op.floor(builder.emit(made(x)))))
        builder.emit_func_output(result)
    return whole_number_operators(NameOperators()(builder.get()))


@pytest.mark.parametrize("name", [*ONE, *TWO, "clip", "where"])
def test_arithmetic_is_each_of_these(name: str) -> None:
    half = relax.const(np.float32(0.5))
    calls = {
        **{one: lambda x, one=one: getattr(relax.op, one)(x) for one in ONE},
        **{two: lambda x, two=two: getattr(relax.op, two)(x, half) for two in TWO},
        "clip": lambda x: relax.op.clip(x, -0.5, 0.5),
        "where": lambda x: relax.op.where(relax.const(np.ones((5, 7), "bool")), x, half),
    }
    assert _floored(calls[name]) == {f"{name}_0"}


def test_other_operators_are_none() -> None:
    assert _floored(relax.op.tanh) == set()
    assert _floored(relax.op.nn.relu) == set()


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc"])
def test_whole_numbers_are_made_by_each_of_these(name: str) -> None:
    x = relax.Var("x", relax.TensorType([5, 7], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit(relax.op.exp(x))
            result = builder.emit_output(builder.emit(getattr(relax.op, name)(made)))
        builder.emit_func_output(result)
    assert whole_number_operators(NameOperators()(builder.get())) == {"exp_0"}


@pytest.mark.parametrize("product", ["conv2d", "matmul"])
def test_digits_of_products_are_the_librarys(product: str) -> None:
    x = relax.Var("x", relax.TensorType([1, 3, 3, 3], "float32"))
    weights = relax.const(np.full((3, 3, 1, 1) if product == "conv2d" else (3, 3), 0.3, "float32"))
    call = relax.op.nn.conv2d if product == "conv2d" else relax.op.matmul
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            scaled = builder.emit(
                relax.op.multiply(builder.emit(call(x, weights)), relax.const(np.float32(255)))
            )
            result = builder.emit_output(builder.emit(relax.op.astype(scaled, "uint8")))
        builder.emit_func_output(result)
    assert whole_number_operators(NameOperators()(builder.get())) == set()


def test_powers_of_the_base_fall_into_the_buckets_that_the_model_says():
    """As TVM alone has them: the logarithm's own last digit is its library's."""
    x = np.maximum(np.float32(2.0) ** np.arange(35, dtype="float32").reshape(5, 7) % np.float32(2**20), 1)
    alone = tvm_mxplan.compile(_module(cut=True), "llvm", options={"cache": "disabled"})
    executable = tvm_mxplan.compile(_module(cut=True), options={"cache": "disabled"})
    assert executable.report.regions, "the relu is taken all the same"
    np.testing.assert_array_equal(executable(x)[0].numpy(), alone(x)[0].numpy())
    assert "whole number" in str(executable.report.fallbacks)


def _counts(cut: bool) -> tvm.IRModule:
    """Counts of the numbers above 0 in each column, as integers or as they are."""
    x = relax.Var("x", relax.TensorType([393, 131], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            above = builder.emit(relax.op.greater(x, relax.const(np.float32(0))))
            total = builder.emit(relax.op.sum(builder.emit(relax.op.astype(above, "float32")), [0]))
            result = builder.emit_output(relax.op.astype(total, "int32") if cut else total)
        builder.emit_func_output(result)
    return builder.get()


@pytest.mark.parametrize("target", ["dnnl, host, llvm", "dnnl, llvm"])
def test_counts_are_whole(target: str) -> None:
    """oneDNN's pool, a mean times how many there are, would be a little less for some."""
    assert whole_number_operators(NameOperators()(_counts(cut=True))) == {"sum_0"}
    ex = tvm_mxplan.compile(_counts(cut=True), target)
    x = np.random.default_rng(0).standard_normal((393, 131), "float32")
    np.testing.assert_array_equal(ex(x)[0].numpy(), (x > 0).sum(0))
    kinds = {step.kind for region in ex.report.regions for step in region.steps}
    assert "pooling" not in kinds and ("reduction" in kinds) == ("host" in target)


def test_sums_that_are_not_cut_stay_with_the_library() -> None:
    ex = tvm_mxplan.compile(_counts(cut=False))
    assert "pooling" in {step.kind for region in ex.report.regions for step in region.steps}
