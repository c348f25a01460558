"""Elementwise steps and reductions in the runtime against numpy, in the layouts that matter."""

from __future__ import annotations

import numpy as np
import pytest
from blocks import BLOCKED, LAYOUTS
from program_builder import (
    Builder,
    check,
    random,
)

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir

ELTWISES = {
    "relu": (0.1, 0.0, lambda x: np.where(x > 0, x, np.float32(0.1) * x)),
    "tanh": (0.0, 0.0, np.tanh),
    "elu": (0.5, 0.0, lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    "square": (0.0, 0.0, np.square),
    "abs": (0.0, 0.0, np.abs),
    "linear": (2.0, -1.0, lambda x: 2 * x - 1),
    "soft_relu": (1.0, 0.0, lambda x: np.log1p(np.exp(x))),
    "hardsigmoid": (0.2, 0.5, lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    "logistic": (0.0, 0.0, lambda x: 1 / (1 + np.exp(-x))),
    "mish": (0.0, 0.0, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "exp": (0.0, 0.0, np.exp),
    "gelu_tanh": (0.0, 0.0, lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))),
    "swish": (1.5, 0.0, lambda x: x / (1 + np.exp(-1.5 * x))),
    "clip": (-0.5, 0.5, lambda x: np.clip(x, -0.5, 0.5)),
    "clip_v2": (0.0, 0.7, lambda x: np.clip(x, 0.0, 0.7)),
    "hardswish": (1 / 6, 0.5, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "pow": (2.0, 3.0, lambda x: 2 * x**3),
    "round": (0.0, 0.0, np.round),
}


@pytest.mark.parametrize("algorithm", ELTWISES)
def test_eltwise(algorithm):
    alpha, beta, reference = ELTWISES[algorithm]
    x = random(2, 17, 5, 3)
    b = Builder()
    src = b.reorder(b.input(x.shape), BLOCKED)
    dst = b.view(src, x.shape, BLOCKED)  # in place
    b.step(ir.Eltwise(algorithm, alpha, beta), src=src, dst=dst)
    b.finish(dst)
    check(b.run(x), reference(x).astype("float32"), 64)


@pytest.mark.parametrize("algorithm", ["sqrt", "log"])
def test_eltwise_of_positive_numbers(algorithm):
    x = np.abs(random(3, 17)) + np.float32(0.1)
    b = Builder()
    b.step(ir.Eltwise(algorithm, 0.0, 0.0), src=b.input(x.shape), dst=b.output(x.shape))
    check(b.run(x), getattr(np, algorithm)(x), 16)


@pytest.mark.parametrize("shape", [(2, 17, 5, 3), (1, 17, 1, 1), (1, 1, 1, 1), (2, 1, 5, 3)])
@pytest.mark.parametrize("algorithm", ["add", "sub", "mul", "div", "min", "max"])
def test_binary(algorithm, shape):
    functions = {"min": "minimum", "max": "maximum", "add": "add", "sub": "subtract", "mul": "multiply"}
    x, y = random(2, 17, 5, 3), random(*shape, seed=1)
    if algorithm == "div":
        y = np.abs(y) + np.float32(0.5)
    b = Builder()
    src, src1 = b.input(x.shape), b.input(y.shape)
    b.step(ir.Binary(algorithm), src=src, src1=src1, dst=b.output(x.shape))
    check(b.run(x, y), getattr(np, functions.get(algorithm, "divide"))(x, y))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [32, 19])
def test_binary_with_a_vector_of_channels(channels, layout):
    x, y = random(2, channels, 5, 3), random(1, channels, 1, 1, seed=1)
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    dst = b.local(x.shape, layout)
    b.step(ir.Binary("mul"), src=src, src1=b.constant(y), dst=dst)
    b.finish(dst)
    check(b.run(x), x * y)
    assert not library.describe(b.build()).steps[1].is_reference


def test_binary_with_broadcast_src_is_refused():
    b = Builder()
    src, src1 = b.input((1, 3, 1, 1)), b.input((2, 3, 4, 4))
    b.step(ir.Binary("add"), src=src, src1=src1, dst=b.output((2, 3, 4, 4)))
    (step,) = library.describe(b.build()).steps
    assert "src would have to be broadcast" in step.error


@pytest.mark.parametrize("layout", LAYOUTS)
def test_prelu(layout):
    x, slope = random(2, 19, 5, 3), random(1, 19, 1, 1)
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    dst = b.local(x.shape, layout)
    b.step(ir.PReLU(), src=src, weights=b.constant(slope), dst=dst)
    b.finish(dst)
    check(b.run(x), np.where(x > 0, x, x * slope))


@pytest.mark.parametrize("axes", [(2, 3), (1,), (0, 1, 2, 3)])
@pytest.mark.parametrize("algorithm", ["mean", "sum", "max", "min", "mul"])
def test_reduction(algorithm, axes):
    x = random(2, 17, 5, 3)
    expected = getattr(np, {"mul": "prod"}.get(algorithm, algorithm))(x, axis=axes, keepdims=True)
    b = Builder()
    b.step(ir.Reduction(algorithm), src=b.input(x.shape), dst=b.output(expected.shape))
    check(b.run(x), expected, 100)
