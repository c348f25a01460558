"""Networks with operators of the host library between two convolutions of oneDNN's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax

import tvm_mxplan


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


X = np.random.default_rng(3).standard_normal((2, 3, 9, 7), np.float32)
PREFER = {"conv2d": "dnnl", **dict.fromkeys(("mean", "subtract", "erf", "strided_slice"), "host")}
"""Operators of `for_both`, so that both libraries have some, whoever comes first."""


def for_both() -> tvm.IRModule:
    """Two convolutions with a mean over one axis, a function and a backwards slice between them."""
    return between_convolutions(
        lambda y: relax.op.subtract(y, relax.op.mean(y, [2], keepdims=True)),
        lambda y: relax.op.strided_slice(relax.op.erf(y), [2], [8], [-10], [-1]),
    )


def ran_by_both(ex: tvm_mxplan.Executable) -> bool:
    """Whether steps of both libraries stand in the one region that there is."""
    (region,) = ex.report.regions
    kinds: dict[bool, set[str]] = {True: set(), False: set()}
    for step in region.steps:
        kinds[step.implementation.startswith("host:")].add(step.kind)
    return "convolution" in kinds[False] and {"reduction", "eltwise", "strided_slice"} <= kinds[True]
