"""``TrustedIndices``: the kernels of reads are TVM's own, and nothing is printed when they are made."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax, tirx

import tvm_mxplan
from tvm_mxplan.passes.kernels import TrustedIndices

N = tirx.Var("n", "int64")
CASES = [
    ((4, 5, 6), (3,), 1),
    ((4, 5, 6), (2, 3), -1),
    ((7,), (), 0),
    ((N, 5, 6), (3,), 1),
    ((4, 5), (N,), 0),
]


def module(shape: tuple, indices: tuple, axis: int | None, mode: str = "fast") -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    i = relax.Var("i", relax.TensorType(indices, "int64"))
    with builder.function("main", [x, i]):
        with builder.dataflow():
            y = builder.emit_output(builder.emit(relax.op.take(x, i, axis, mode)))
        builder.emit_func_output(y)
    return builder.get()


def kernels(mod: tvm.IRModule) -> list[tirx.PrimFunc]:
    return [function for function in mod.functions.values() if isinstance(function, tirx.PrimFunc)]


@pytest.mark.parametrize("case", CASES)
def test_the_kernel_is_tvms(case: tuple, capfd: pytest.CaptureFixture[str]) -> None:
    mod = module(*case)
    (found,) = kernels(TrustedIndices()(mod))
    assert not capfd.readouterr().err
    (stock,) = kernels(relax.transform.LegalizeOps()(mod))
    assert "Fast mode" in capfd.readouterr().err  # a TVM that is silent needs no pass
    assert tvm_ffi.structural_equal(found, stock, map_free_vars=True)


def test_without_an_axis() -> None:
    (found,) = kernels(TrustedIndices()(module((7,), (2,), None)))
    (stock,) = kernels(TrustedIndices()(module((7,), (2,), 0)))
    assert tvm_ffi.structural_equal(found, stock, map_free_vars=True)


def test_other_modes_stay() -> None:
    mod = module((4, 5), (3,), 1, "clip")
    tvm.ir.assert_structural_equal(TrustedIndices()(mod), mod)


def test_a_compiled_model_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    executable = tvm_mxplan.compile(module((4, 5), (3,), 1), "llvm")
    x, i = np.arange(20, dtype="float32").reshape(4, 5), np.array([4, -5, 2])
    np.testing.assert_array_equal(executable(x, i)[0].numpy(), x[:, i])
    assert "Fast mode" not in capfd.readouterr().err
    with pytest.raises(Exception, match="5"):  # indices are still checked
        executable(x, np.array([0, 5, 0]))
