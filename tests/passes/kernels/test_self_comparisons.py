"""Numbers compared with themselves, which only NaN is not equal to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.passes.kernels import SelfComparisons

ROW = np.array([1, np.nan, np.inf, -0.0, -np.nan], "float32")
COMPARISONS = {"equal": relax.op.equal, "not_equal": relax.op.not_equal}


def module(compare: Callable[..., relax.Expr], dtype: str = "float32", other: bool = False) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x, y = (relax.Var(name, relax.TensorType([5], dtype)) for name in "xy")
    with builder.function("main", [x, y]):
        with builder.dataflow():
            z = builder.emit_output(compare(x, y if other else x))
        builder.emit_func_output(z)
    return builder.get()


def called(mod: tvm.IRModule) -> list[str]:
    values = relax.analysis.get_var2val(mod["main"]).values()
    return [value.op.name.removeprefix("relax.") for value in values if isinstance(value, relax.Call)]


def test_what_is_emitted() -> None:
    assert called(SelfComparisons()(module(relax.op.not_equal))) == ["isnan"]
    assert called(SelfComparisons()(module(relax.op.equal))) == ["isnan", "logical_not"]


@pytest.mark.parametrize(("dtype", "other"), [("int32", False), ("float32", True)])
def test_other_comparisons_stay(dtype: str, other: bool) -> None:
    before = module(relax.op.equal, dtype, other)
    tvm.ir.assert_structural_equal(SelfComparisons()(before), before)


@pytest.mark.parametrize("target", ["llvm", "dnnl, llvm", "dnnl, host, llvm"])
@pytest.mark.parametrize("name", COMPARISONS)
def test_results(name: str, target: str) -> None:
    options = {"cache": "disabled"}
    executable = tvm_mxplan.compile(module(COMPARISONS[name]), target, options=options)
    (actual,) = executable.run([ROW, ROW])
    np.testing.assert_array_equal(actual, getattr(np, name)(ROW, ROW))
