"""Functions of one tensor as exporters spell them out: one post-op where they mean one."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_node import Graph, check, computing, post_ops, run, tolerance

from tvm_mxplan.testing.reference import relative_l2


def _swish(g: Graph, x: str) -> str:
    return g.op("Mul", x, g.op("Sigmoid", x))


def _swish_swapped(g: Graph, x: str) -> str:
    return g.op("Mul", g.op("Sigmoid", x), x)


def _relu6_of_x_plus_3(g: Graph, x: str) -> str:
    return g.op("Clip", g.op("Add", x, g.scalar(3)), g.scalar(0), g.scalar(6))


def _hardswish(g: Graph, x: str) -> str:
    return g.op("Mul", x, g.op("Div", _relu6_of_x_plus_3(g, x), g.scalar(6)))


def _hardswish_product_first(g: Graph, x: str) -> str:
    return g.op("Div", g.op("Mul", x, _relu6_of_x_plus_3(g, x)), g.scalar(6))


def _hardswish_of_hardsigmoid(g: Graph, x: str) -> str:
    return g.op("Mul", x, g.op("HardSigmoid", x, alpha=1 / 6, beta=0.5))


def _hardsigmoid(g: Graph, x: str) -> str:
    return g.op("Mul", _relu6_of_x_plus_3(g, x), g.scalar(1 / 6))


def _mish(g: Graph, x: str) -> str:
    return g.op("Mul", x, g.op("Tanh", g.op("Softplus", x)))


def _erf_gate(g: Graph, x: str) -> str:
    return g.op("Add", g.op("Erf", g.op("Div", x, g.scalar(2**0.5))), g.scalar(1))


def _gelu_half_last(g: Graph, x: str) -> str:
    return g.op("Mul", g.op("Mul", x, _erf_gate(g, x)), g.scalar(0.5))


def _gelu_half_inside(g: Graph, x: str) -> str:
    return g.op("Mul", x, g.op("Mul", g.scalar(0.5), _erf_gate(g, x)))


def _gelu_half_first(g: Graph, x: str) -> str:
    return g.op("Mul", g.op("Mul", x, g.scalar(0.5)), _erf_gate(g, x))


def _gelu_tanh(g: Graph, x: str, cube: str) -> str:
    bent = g.op("Add", x, g.op("Mul", g.scalar(0.044715), cube))
    gate = g.op("Add", g.scalar(1), g.op("Tanh", g.op("Mul", bent, g.scalar((2 / np.pi) ** 0.5))))
    return g.op("Mul", g.op("Mul", g.scalar(0.5), x), gate)


def _gelu_tanh_power(g: Graph, x: str) -> str:
    return _gelu_tanh(g, x, g.op("Pow", x, g.scalar(3)))


def _gelu_tanh_products(g: Graph, x: str) -> str:
    return _gelu_tanh(g, x, g.op("Mul", g.op("Mul", x, x), x))


def _square(g: Graph, x: str) -> str:
    return g.op("Mul", x, x)


SPELT_OUT = [
    (_swish, "swish"),
    (_swish_swapped, "swish"),
    (_hardswish, "hardswish"),
    (_hardswish_product_first, "hardswish"),
    (_hardswish_of_hardsigmoid, "hardswish"),
    (_hardsigmoid, "hardsigmoid"),
    (_mish, "mish"),
    (_gelu_half_last, "gelu_erf"),
    (_gelu_half_inside, "gelu_erf"),
    (_gelu_half_first, "gelu_erf"),
    (_gelu_tanh_power, "gelu_tanh"),
    (_gelu_tanh_products, "gelu_tanh"),
]


def test_spelt_out_functions_are_one_post_op():
    g = Graph()
    x = [g.op("MatMul", g.input(2, 5, 17), g.constant(17, 67)) for _ in SPELT_OUT]
    outputs = [spell(g, y) for y, (spell, _) in zip(x, SPELT_OUT, strict=True)]
    report = check(g, *outputs, steps={"matmul": len(outputs)}, reduction=17)
    assert post_ops(report, "matmul") == [(algorithm,) for _, algorithm in SPELT_OUT]


def test_spelt_out_function_whose_inside_is_read_elsewhere_is_its_parts():
    g = Graph()
    x = g.input(2, 17)
    gate = g.op("Sigmoid", x)
    product = g.op("Mul", gate, x)
    check(g, g.op("Add", gate, product), gate, steps={"eltwise": 1, "binary": 1})


def test_square():
    g = Graph()
    check(g, _square(g, g.input(2, 17, 5)), steps={"binary": 1})


@pytest.mark.parametrize(("three", "six"), [(2.5, 6.0), (3.0, 5.0)])
def test_what_only_looks_like_hardswish(three, six):
    g = Graph()
    x = g.input(1, 17, 5, 5)
    clip = g.op("Clip", g.op("Add", x, g.scalar(three)), g.scalar(0), g.scalar(6))
    y = g.op("Mul", x, g.op("Div", clip, g.scalar(six)))
    report = check(g, y, steps={"binary": 1})
    assert "hardswish" not in str(report)


def test_what_only_looks_like_gelu():
    g = Graph()
    x = g.input(2, 5, 17)
    gate = g.op("Add", g.op("Erf", g.op("Div", x, g.scalar(1.5))), g.scalar(1))
    y = g.op("Mul", g.op("Mul", x, gate), g.scalar(0.5))
    check(g, y, steps={"eltwise": 1, "binary": 1}, fallbacks={"erf": ""})


@pytest.mark.parametrize("kind", ["HardSwish", "Gelu", "Mish"])
def test_function_of_a_constant_is_evaluated(kind):
    g = Graph(opset=20)
    y = g.op("Add", g.op("Relu", g.input(2, 17)), g.op(kind, g.constant(2, 17)))
    ex, outputs, expected = run(g, y)
    assert "binary" in {step.kind for step in computing(ex.report)}
    assert not ex.report.fallbacks
    assert relative_l2(outputs[0], expected[0]) <= tolerance(1)
