"""Modules of several functions: each is planned, whether ``main`` calls it or somebody else does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.execution import machine

SHAPE = (2, 3, 9, 7)
X = np.random.default_rng(1).standard_normal(SHAPE, np.float32)


def between(
    builder: relax.BlockBuilder, x: relax.Expr, last: Callable[[relax.Expr], relax.Expr]
) -> relax.Expr:
    """A convolution, a cosine that no library takes, and a convolution."""
    rng = np.random.default_rng(0)
    weights = [relax.const(rng.standard_normal((3, 3, 3, 3), np.float32) / 5) for _ in range(2)]
    with builder.dataflow():
        y = builder.emit(relax.op.nn.conv2d(x, weights[0], padding=1))
        y = builder.emit(relax.op.nn.conv2d(builder.emit(relax.op.cos(y)), weights[1], padding=1))
        return builder.emit_output(last(y))


@pytest.fixture(scope="module")
def module() -> tvm.IRModule:
    """``main`` calls ``block`` twice; nothing here calls ``other``."""
    builder = relax.BlockBuilder()
    for name, last in (("block", relax.op.tanh), ("other", relax.op.exp)):
        x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
        with builder.function(name, [x], private=name == "block"):
            builder.emit_func_output(between(builder, x, last))
    block = builder.get().get_global_var("block")
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
    with builder.function("main", [x]):
        y = between(builder, builder.emit(relax.Call(block, [x])), relax.op.nn.relu)
        builder.emit_func_output(builder.emit(relax.Call(block, [y])))
    return builder.get()


@pytest.fixture(scope="module")
def compiled(module: tvm.IRModule) -> tvm_mxplan.Executable:
    return tvm_mxplan.compile(module, "dnnl, llvm", options={"cache": "disabled", "machine": "default"})


def result(ex: tvm_mxplan.Executable, function: str) -> np.ndarray:
    vm = machine.virtual_machine(getattr(ex.module, "mod", ex.module))
    return vm[function](machine.tensor_of(X)).numpy()


@pytest.mark.parametrize("function", ["main", "other"])
def test_each_function_computes_what_tvms_own_code_does(
    module: tvm.IRModule, compiled: tvm_mxplan.Executable, function: str
) -> None:
    alone = tvm_mxplan.compile(module, "llvm", options={"cache": "disabled"})
    assert not alone.report.regions and len(compiled.report.regions) == 6
    found, expected = result(compiled, function), result(alone, function)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_each_function_has_regions_and_one_arena_of_its_own(compiled: tvm_mxplan.Executable) -> None:
    report = compiled.report
    convolutions = [step for region in report.regions for step in region.steps if step.kind == "convolution"]
    assert len(convolutions) == 6 and [one.kind for one in report.kept] == ["relax.cos"] * 3
    functions = {one.region: one for one in report.memory if not one.region.startswith("mxplan_")}
    assert set(functions) == {"main", "block", "other"}
    lending = [one.stands_in for one in report.memory if one.region.startswith("mxplan_")]
    assert sorted(lending) == ["block", "block", "main", "main", "other", "other"]
    assert all(one.height < one.no_reuse for one in functions.values())
