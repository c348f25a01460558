"""Relax operators with attributes that ONNX models lack, and chains that only look like an operator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx_node import computing
from tvm import relax

import tvm_mxplan

Emit = Callable[[relax.Expr], relax.Expr]
nn, op = relax.op.nn, relax.op


def compiled(build: Callable[[Emit, relax.Var], relax.Expr], shape: tuple[int, ...], target: str):
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(build(builder.emit, x))
        builder.emit_func_output(y)
    return tvm_mxplan.compile(builder.get(), target)


def check(build, shape: tuple[int, ...], kinds: list[str], reason: str = "") -> None:
    """These steps run, for ``reason`` others do not, and numbers are those of TVM alone."""
    ours, alone = (compiled(build, shape, target) for target in ("dnnl, llvm", "llvm"))
    assert [step.kind for step in computing(ours.report)] == kinds, str(ours.report)
    if reason:
        assert reason in " ".join(fallback.reason for fallback in ours.report.fallbacks), str(ours.report)
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    (actual,), (expected,) = ours(x), alone(x)
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("threshold", "taken"), [(20.0, True), (1.0, False)])
def test_softplus_that_ends_early(threshold, taken):
    build = lambda emit, x: op.tanh(emit(nn.softplus(x, beta=2.0, threshold=threshold)))  # noqa: E731
    steps = ["eltwise", "eltwise", "binary", "binary"] if taken else ["eltwise"]
    check(build, (3, 17), steps, "" if taken else "threshold")


@pytest.mark.parametrize(("layout", "taken"), [("NCHW", True), ("NHWC", False)])
def test_adaptive_pooling_of_other_layouts(layout, taken):
    build = lambda emit, x: nn.adaptive_avg_pool2d(emit(op.tanh(x)), [2, 3], layout=layout)  # noqa: E731
    steps = ["eltwise", "pooling"] if taken else ["eltwise"]
    check(build, (2, 6, 6, 6), steps, "" if taken else "channels first")


@pytest.mark.parametrize(("axis", "taken"), [(1, True), (2, False), (4, False)])
def test_local_response_along_other_axes(axis, taken):
    number = lambda value: relax.const(np.float32(value))  # noqa: E731

    def build(emit, x):
        square = emit(op.expand_dims(emit(op.multiply(x, x)), [axis]))
        window = nn.avg_pool3d(square, (5, 1, 1), padding=(2, 0, 0, 2, 0, 0), count_include_pad=True)
        mean = emit(op.squeeze(emit(window), [axis]))
        base = emit(op.add(emit(op.multiply(mean, number(0.3))), number(2.0)))
        return op.divide(x, emit(op.power(base, number(0.75))))

    ours = compiled(build, (1, 32, 4, 3), "dnnl, llvm")
    assert ("lrn" in {step.kind for step in computing(ours.report)}) == taken
    check(build, (1, 32, 4, 3), [step.kind for step in computing(ours.report)])


@pytest.mark.parametrize("axes", [[2, 3], [-2, -1], [3, 2]])
def test_layer_norm_whose_axes_are_in_another_order(axes):
    """The scale's axes are in the order of ``axes``."""
    random = np.random.default_rng(1)
    shape = [(2, 3, 4, 5)[axis] for axis in axes]
    scale, shift = (relax.const(random.standard_normal(shape).astype("float32")) for _ in range(2))
    taken = axes != [3, 2]

    def build(emit, x):
        return nn.layer_norm(emit(op.tanh(x)), scale, shift, axes=axes)

    if taken:
        check(build, (2, 3, 4, 5), ["eltwise", "layer_normalization"])
    else:
        ours = compiled(build, (2, 3, 4, 5), "dnnl, llvm")
        assert [step.kind for step in computing(ours.report)] == ["eltwise"]
