"""Tensors that are infinity, or no number, everywhere, as masks are built of."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax, tirx

import tvm_mxplan
from tvm_mxplan.passes.kernels import InfiniteFills

NUMBERS = (np.inf, -np.inf, np.nan)


def module(number: float, dtype: str, like: bool = False) -> tvm.IRModule:
    """A mask of named sizes, or of a tensor's, added to that tensor."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([tirx.Var("n", "int64"), 3], dtype))
    value = relax.const(np.array(number, dtype), dtype)
    with builder.function("main", [x]):
        with builder.dataflow():
            filled = relax.op.full_like(x, value) if like else relax.op.full(x.ty.shape, value)
            mask = builder.emit(filled)
            y = builder.emit_output(relax.op.add(x, mask))
        builder.emit_func_output(y)
    return builder.get()


def called(mod: tvm.IRModule) -> list[str]:
    values = relax.analysis.get_var2val(mod["main"]).values()
    return [value.op.name.removeprefix("relax.") for value in values if isinstance(value, relax.Call)]


@pytest.mark.parametrize("like", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_that_are_none(number: float, dtype: str, like: bool) -> None:
    after = InfiniteFills()(module(number, dtype, like))
    assert called(after) == ["call_tir", "add"]
    data = np.ones((2, 3), dtype)
    vm = relax.VirtualMachine(tvm.compile(after, "llvm"), tvm.cpu())
    found = vm["main"](tvm.runtime.tensor(data)).numpy()
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, data + np.array(number, dtype))


def test_other_fills_stay() -> None:
    for mod in (module(3e38, "float32"), module(2, "int64"), module(0.5, "float32", like=True)):
        tvm.ir.assert_structural_equal(InfiniteFills()(mod), mod)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([], "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.full((2, 3), x)))
    tvm.ir.assert_structural_equal(InfiniteFills()(builder.get()), builder.get())


@pytest.mark.parametrize("target", ["llvm", "dnnl, host, llvm"])
@pytest.mark.parametrize("number", NUMBERS)
def test_a_compiled_model(number: float, target: str) -> None:
    data = np.ones((4, 3), "float32")
    found = tvm_mxplan.compile(module(number, "float32"), target)(data)[0].numpy()
    np.testing.assert_array_equal(found, data + np.float32(number))
