"""Largest and smallest elements of rows that are all infinity, and of all others."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.passes.kernels import ReductionsFromInfinity

RANDOM = np.random.default_rng(0)
OPERATORS = {"max": (relax.op.max, np.max, -np.inf), "min": (relax.op.min, np.min, np.inf)}


def module(kind: str, shape: list, dtype: str, axes: list[int] | None, keep: bool) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    data = relax.Var("x", relax.TensorType(shape, dtype))
    with builder.function("main", [data]):
        builder.emit_func_output(builder.emit(OPERATORS[kind][0](data, axes, keep)))
    return builder.get()


def called(mod: tvm.IRModule) -> list[str]:
    """Operators in the order of their bindings."""
    values = relax.analysis.get_var2val(mod["main"]).values()
    return [value.op.name for value in values if isinstance(value, relax.Call)]


def computed(mod: tvm.IRModule, data: np.ndarray) -> np.ndarray:
    vm = relax.VirtualMachine(tvm.compile(ReductionsFromInfinity()(mod), "llvm"), tvm.cpu())
    return vm["main"](tvm.runtime.tensor(data)).numpy()


@pytest.mark.parametrize("kind", OPERATORS)
@pytest.mark.parametrize(
    ("axes", "keep"), [([1], True), ([-1], False), ([0, 2], False), ([2, 0], True), (None, False)]
)
def test_numbers_and_infinities(kind: str, axes: list[int] | None, keep: bool) -> None:
    _, reference, start = OPERATORS[kind]
    data = RANDOM.normal(size=(3, 5, 7)).astype("float32")
    data[1], data[:, 2], data[..., 3] = start, start, start
    mod = module(kind, [3, 5, 7], "float32", axes, keep)
    after = ReductionsFromInfinity()(mod)
    assert called(after) == ["relax.call_tir"]
    assert {"max": "largest", "min": "smallest"}[kind] in {gvar.name_hint for gvar in after.functions}
    for x in (data, np.full_like(data, start)):
        expected = reference(x, axis=None if axes is None else tuple(axes), keepdims=keep)
        np.testing.assert_array_equal(computed(mod, x), expected)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_types_with_infinities(dtype: str) -> None:
    data = np.array([[-np.inf, -np.inf], [-1.5, -np.inf]], dtype)
    np.testing.assert_array_equal(computed(module("max", [2, 2], dtype, [1], False), data), data[:, 0])


def test_named_dimensions() -> None:
    n = tvm.tirx.Var("n", "int64")
    data = np.array([[-np.inf, -np.inf, -np.inf], [0.5, -np.inf, -2.5]], "float32")
    np.testing.assert_array_equal(
        computed(module("max", [n, 3], "float32", [1], True), data), [[-np.inf], [0.5]]
    )


@pytest.mark.parametrize(("shape", "dtype"), [([2, 3], "int32"), ([2, 0], "float32")])
def test_what_has_no_infinity_or_no_elements_is_left_alone(shape: list[int], dtype: str) -> None:
    assert called(ReductionsFromInfinity()(module("max", shape, dtype, [1], False))) == ["relax.max"]


def test_a_compiled_model() -> None:
    """Reductions of a model that are left to TVM go through the pass; integers as they are."""
    data = np.full((2, 3), -np.inf, "float32")
    executable = tvm_mxplan.compile(module("max", [2, 3], "float32", [1], False), "llvm")
    assert [one.operator for one in executable.report.fallbacks] == ["relax.max"]
    np.testing.assert_array_equal(executable(data)[0].numpy(), [-np.inf, -np.inf])
