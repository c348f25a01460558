"""Activations of recurrent layers by ONNX's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tvm import relax

from ..node import NotTaken


def activations(
    names: Sequence[str], alphas: list[float], betas: list[float]
) -> list[Callable[[relax.Expr], relax.Expr]]:
    """Activations by ONNX's names; those that have parameters take them from the lists in turn."""
    found: list[Callable[[relax.Expr], relax.Expr]] = []
    for name in names:
        rule = _FUNCTIONS.get(name.lower())
        if rule is None:
            raise NotTaken
        function, alpha, beta = rule
        first = alphas.pop(0) if alpha is not None and alphas else alpha
        second = betas.pop(0) if beta is not None and betas else beta
        found.append(lambda value, f=function, a=first, b=second: f(value, a, b))
    return found


def _number(value: float | None, _like: relax.Expr) -> relax.Expr:
    return relax.const(np.asarray(value, "float32"))


_FUNCTIONS: dict[str, tuple[Callable, float | None, float | None]] = {
    "sigmoid": (lambda x, a, b: relax.op.sigmoid(x), None, None),
    "tanh": (lambda x, a, b: relax.op.tanh(x), None, None),
    "relu": (lambda x, a, b: relax.op.nn.relu(x), None, None),
    "leakyrelu": (lambda x, a, b: relax.op.nn.leakyrelu(x, a), 0.01, None),
    "affine": (lambda x, a, b: relax.op.add(relax.op.multiply(x, _number(a, x)), _number(b, x)), 1.0, 0.0),
    "hardsigmoid": (
        lambda x, a, b: relax.op.clip(
            relax.op.add(relax.op.multiply(x, _number(a, x)), _number(b, x)), 0.0, 1.0
        ),
        0.2,
        0.5,
    ),
    "scaledtanh": (
        lambda x, a, b: relax.op.multiply(relax.op.tanh(relax.op.multiply(x, _number(b, x))), _number(a, x)),
        1.0,
        1.0,
    ),
    "softplus": (lambda x, a, b: relax.op.nn.softplus(x), None, None),
    "softsign": (
        lambda x, a, b: relax.op.divide(x, relax.op.add(relax.op.abs(x), _number(1.0, x))),
        None,
        None,
    ),
}
"""Activation, and the defaults of its alpha and beta where it has them."""
