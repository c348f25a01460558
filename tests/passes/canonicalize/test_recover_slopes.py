"""Leaky ReLU and PReLU that are written as a choice; other choices stay."""

from __future__ import annotations

import numpy as np
import pytest
from dataflow_text import dataflow, operators
from relax_programs import normal, result_of

from tvm_mxplan.passes.canonicalize import SimplifyInference

SLOPES = 'R.const([[[0.5]], [[-2.0]], [[0.25]]], "float32")'
ROWS = [[[0.5] * 4], [[1.0, 2.0, 3.0, 4.0]], [[0.0] * 4]]
ZERO = 'R.const(0.0, "float32")'


@pytest.mark.parametrize(
    ("condition", "branches"),
    [("greater", "x, m"), ("greater_equal", "x, m"), ("less", "m, x"), ("less_equal", "m, x")],
)
@pytest.mark.parametrize(
    ("product", "activation"),
    [
        ('R.multiply(x, R.const(0.125, "float32"))', "nn.leakyrelu"),
        ('R.multiply(R.const([[[0.5]], [[0.5]], [[0.5]]], "float32"), x)', "nn.leakyrelu"),
        (f"R.multiply(x, {SLOPES})", "nn.prelu"),
    ],
)
def test_choices_between_a_number_and_a_multiple_of_it(condition, branches, product, activation):
    mod = dataflow(f"z = {ZERO}\nc = R.{condition}(x, z)\nm = {product}\ny = R.where(c, {branches})")
    found = SimplifyInference()(mod)
    assert [operator.name for operator in operators(found)] == [f"relax.{activation}"]
    x = normal(3, 2, 3, 4, 4)
    x[0, 0, 0] = [0.0, -0.0, np.inf, -np.inf]
    np.testing.assert_array_equal(result_of(found, x), result_of(mod, x))


@pytest.mark.parametrize(
    "lines",
    [
        "c = R.greater(x, z)\nm = R.multiply(x, s)\ny = R.where(c, m, x)",
        "c = R.greater(x, R.const(1.0, 'float32'))\nm = R.multiply(x, s)\ny = R.where(c, x, m)",
        "c = R.greater(x, z)\nm = R.multiply(v, s)\ny = R.where(c, x, m)",
        "c = R.greater(v, z)\nm = R.multiply(x, s)\ny = R.where(c, x, m)",
        "c = R.greater(x, z)\nm = R.multiply(x, v)\ny = R.where(c, x, m)",
        "c = R.greater(x, z)\nm = R.add(x, s)\ny = R.where(c, x, m)",
        "c = R.greater(x, z)\nm = R.multiply(x, R.const(float('inf'), 'float32'))\ny = R.where(c, x, m)",
        "c = R.greater(x, z)\nm = R.multiply(x, t)\ny = R.where(c, x, m)",
    ],
)
def test_other_choices_stay(lines):
    constants = f"z = {ZERO}\ns = {SLOPES}\nt = R.const({ROWS}, 'float32')\n"
    parameters = 'x: R.Tensor((2, 3, 4, 4), "float32"), v: R.Tensor((2, 3, 4, 4), "float32")'
    found = [
        operator.name for operator in operators(SimplifyInference()(dataflow(constants + lines, parameters)))
    ]
    assert found[-1] == "relax.where"
