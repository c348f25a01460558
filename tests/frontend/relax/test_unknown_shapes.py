"""Relax modules in which a shape is not known: what cannot be built says which operator, what can runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import relax, tirx

import tvm_mxplan
from tvm_mxplan import UnsupportedError

N, M = (tirx.Var(name, "int64") for name in "nm")
UNCACHED = {"cache": "disabled"}


def module(shapes: list[list | int], make: Callable[..., list[relax.Expr]]) -> tvm.IRModule:
    """A module of what ``make`` emits for parameters of these shapes; a number is a rank alone."""
    builder = relax.BlockBuilder()
    types = [
        relax.TensorType(ndim=shape, dtype="float32")
        if isinstance(shape, int)
        else relax.TensorType(shape, "float32")
        for shape in shapes
    ]
    params = [relax.Var(name, kind) for name, kind in zip("xyz", types, strict=False)]
    with builder.function("main", params):
        with builder.dataflow():
            output = builder.emit_output(make(builder, *params))
        builder.emit_func_output(output)
    return builder.get()


def test_operands_that_may_differ_name_the_operator() -> None:
    def make(builder, x, y):
        return builder.emit(relax.op.nn.relu(builder.emit(relax.op.add(x, y))))

    with pytest.raises(
        UnsupportedError, match=r"main: 'lv' \(add\): the shape of its result .*\[n, .*R.match_cast"
    ):
        tvm_mxplan.compile(module([[N, 5], [M, 5]], make), options=UNCACHED)


def test_an_input_without_extents_names_its_reader() -> None:
    weights = relax.const(np.ones((5, 3, 1, 1), "float32"))
    with pytest.raises(UnsupportedError, match=r"\(nn.conv2d\): an operand of 4 dimensions has a shape that"):
        tvm_mxplan.compile(
            module([4], lambda builder, x: builder.emit(relax.op.nn.conv2d(x, weights))), options=UNCACHED
        )


def test_a_shape_with_a_condition_inside_is_built_and_right() -> None:
    """TVM writes the ends of a slice so; its own fusion fails on that."""
    weights = np.random.default_rng(3).standard_normal((5, 3, 3, 3)).astype("float32")

    def make(builder, x):
        part = builder.emit(relax.op.strided_slice(x, axes=[2], begin=[N - 4], end=[N]))
        return builder.emit(relax.op.nn.relu(builder.emit(relax.op.nn.conv2d(part, relax.const(weights)))))

    mod = module([[2, 3, N, 7]], make)
    assert "if_then_else" in mod.script()
    x = np.random.default_rng(4).standard_normal((2, 3, 9, 7)).astype("float32")
    (y,) = tvm_mxplan.compile(mod, options=UNCACHED)(x)
    fixed = module(
        [[2, 3, 4, 7]], lambda builder, x: builder.emit(relax.op.nn.conv2d(x, relax.const(weights)))
    )
    executable = tvm_mxplan.compile(fixed, options=UNCACHED)
    assert executable.report.regions
    (expected,) = executable(np.ascontiguousarray(x[:, :, 5:]))
    np.testing.assert_allclose(y.numpy(), np.maximum(expected.numpy(), 0), rtol=1e-4, atol=1e-5)
