"""Comparisons of numbers with themselves, which only NaN is not equal to, and of booleans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from tvm import relax

import tvm_mxplan
from tvm_mxplan.passes.kernels import ExactComparisons

ROW = np.array([1, np.nan, np.inf, -0.0, -np.nan], "float32")
COMPARISONS = {"equal": relax.op.equal, "not_equal": relax.op.not_equal}
OPTIONS = {"cache": "disabled"}


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
    assert called(ExactComparisons()(module(relax.op.not_equal))) == ["isnan"]
    assert called(ExactComparisons()(module(relax.op.equal))) == ["isnan", "logical_not"]
    assert called(ExactComparisons()(module(relax.op.equal, "bool", True))) == ["logical_xor", "logical_not"]


@pytest.mark.parametrize(("dtype", "other"), [("int32", False), ("float32", True)])
def test_other_comparisons_stay(dtype: str, other: bool) -> None:
    before = module(relax.op.equal, dtype, other)
    tvm.ir.assert_structural_equal(ExactComparisons()(before), before)


@pytest.mark.parametrize("target", ["llvm", "dnnl, llvm", "dnnl, host, llvm"])
@pytest.mark.parametrize("name", COMPARISONS)
def test_nan(name: str, target: str) -> None:
    (actual,) = tvm_mxplan.compile(module(COMPARISONS[name]), target, options=OPTIONS).run([ROW, ROW])
    np.testing.assert_array_equal(actual, getattr(np, name)(ROW, ROW))


@pytest.mark.parametrize("target", ["llvm", "dnnl, llvm", "dnnl, host, llvm"])
@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_nan_beside_numbers(name: str, target: str, dtype: str) -> None:
    a, b = ROW.astype(dtype), ROW[::-1].astype(dtype)
    compared = module(COMPARISONS[name], dtype, True)
    (actual,) = tvm_mxplan.compile(compared, target, options=OPTIONS).run([a, b])
    np.testing.assert_array_equal(actual, getattr(np, name)(a, b))


@pytest.mark.parametrize("name", COMPARISONS)
def test_booleans(name: str) -> None:
    a, b = np.array([[0, 1, 0, 1, 1], [0, 0, 1, 1, 0]], bool)
    executable = tvm_mxplan.compile(module(COMPARISONS[name], "bool", True), options=OPTIONS)
    (actual,) = executable.run([a, b])
    np.testing.assert_array_equal(actual, getattr(np, name)(a, b))


def test_a_comparison_that_is_compared() -> None:
    """As exporters write a division that rounds down; LLVM's verifier refused it."""
    true, three = (
        onnx.numpy_helper.from_array(np.array(value), name) for value, name in ((True, "t"), (3, "3"))
    )
    nodes = [
        make_node("Less", ["x", "3"], ["less"]),
        make_node("Equal", ["less", "t"], ["is"]),
        make_node("Mod", ["x", "3"], ["rest"]),
        make_node("Cast", ["rest"], ["some"], to=TensorProto.BOOL),
        make_node("And", ["is", "some"], ["both"]),
        make_node("Cast", ["both"], ["y"], to=TensorProto.INT64),
    ]
    ports = [make_tensor_value_info(name, TensorProto.INT64, [7]) for name in "xy"]
    graph = make_graph(nodes, "g", ports[:1], ports[1:], [true, three])
    model = make_model(graph, opset_imports=[make_opsetid("", 17)], ir_version=8)
    x = np.arange(-2, 5)
    (actual,) = tvm_mxplan.compile(model, options=OPTIONS).run(x)
    np.testing.assert_array_equal(actual, (x < 3) & (x % 3 != 0))
