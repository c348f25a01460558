"""Shapes that only a call shows to be wrong: the tensor, the dimension, what was expected and what came."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax, tirx

import tvm_mxplan
from tvm_mxplan import InvalidInputError
from tvm_mxplan.execution.shape_errors import told


def squares() -> tvm.IRModule:
    """Twice a matrix of unknown extents, which has to be a square."""
    builder = relax.BlockBuilder()
    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType(ndim=2, dtype="float32"))
    with builder.function("main", [x]):
        square = builder.match_cast(x, relax.TensorType([n, n], "float32"))
        builder.emit_func_output(builder.emit(relax.op.add(square, square)))
    return builder.get()


def test_a_tensor_inside_of_the_model() -> None:
    executable = tvm_mxplan.compile(squares(), options={"cache": "disabled"})
    (y,) = executable(np.float32([[1.5, -2], [3, 0.25]]))
    np.testing.assert_array_equal(y.numpy(), [[3, -4], [6, 0.5]])
    with pytest.raises(
        InvalidInputError,
        match=r"inside of the model, of type R.Tensor\(\(n, n\).*: expected 2 in dimension 1, got 3;",
    ):
        executable(np.ones((2, 3), "float32"))
    with pytest.raises(InvalidInputError, match=r"input x, .*expected 2 dimensions, got 3; mend the shapes"):
        executable(np.ones((2, 3, 4), "float32"))


def test_other_errors_are_not_of_shapes() -> None:
    assert told(RuntimeError("Check failed: 3 == 4 (3 vs. 4) : out of memory")) is None
