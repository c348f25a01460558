"""Networks with operators of the host library between two convolutions of oneDNN's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax


def between_convolutions(*operators: Callable[[relax.Expr], relax.Expr]) -> tvm.IRModule:
    """A convolution of (2, 3, 9, 7) to 17 channels, the operators in turn, and a pointwise convolution."""
    rng = np.random.default_rng(0)
    weights = [relax.const(rng.standard_normal(s, np.float32) / 5) for s in ((17, 3, 3, 3), (5, 17, 1, 1))]
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 3, 9, 7), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.conv2d(x, weights[0], padding=1))
            for operator in operators:
                y = builder.emit(operator(y))
            y = builder.emit_output(relax.op.nn.conv2d(y, weights[1]))
        builder.emit_func_output(y)
    return builder.get()
