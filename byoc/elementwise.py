"""Elementwise operators of Relax as the algorithms of steps: of one tensor, and of a tensor and a number."""

from __future__ import annotations

import math

import numpy as np

ELTWISE: dict[str, tuple[str, float, float]] = {
    "nn.relu": ("relu", 0.0, 0.0),
    "nn.gelu": ("gelu_erf", 0.0, 0.0),
    "nn.gelu_tanh": ("gelu_tanh", 0.0, 0.0),
    "nn.silu": ("swish", 1.0, 0.0),
    "tanh": ("tanh", 0.0, 0.0),
    "sigmoid": ("logistic", 0.0, 0.0),
    "log": ("log", 0.0, 0.0),
    "abs": ("abs", 0.0, 0.0),
    "sqrt": ("sqrt", 0.0, 0.0),
    "square": ("square", 0.0, 0.0),
    "negative": ("linear", -1.0, 0.0),
}
"""Algorithm, alpha and beta by the name of an operator."""

BINARY = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "maximum": "max",
    "minimum": "min",
}

COMMUTATIVE = ("add", "mul", "max", "min")
"""Algorithms of binary steps whose operands may be swapped."""

ACTIVATION_STEPS: dict[str, tuple[str, float, float]] = {
    "softplus_stable": ("soft_relu", 1.0, 0.0),
    "swish": ("swish", 1.0, 0.0),
    "gelu_erf": ("gelu_erf", 0.0, 0.0),
    "gelu_tanh": ("gelu_tanh", 0.0, 0.0),
    "hardswish": ("hardswish", 1 / 6, 0.5),
    "hardsigmoid_sixth": ("hardsigmoid", 1 / 6, 0.5),
    "mish": ("mish", 0.0, 0.0),
}
"""Steps for those of ``activations.ACTIVATIONS`` that have no parameters."""


def with_scalar(algorithm: str, number: float, swapped: bool) -> tuple[str, float, float] | None:
    """x (algorithm) number, or number (algorithm) x, as a function of one tensor if it is one."""
    match algorithm:
        case "max":
            return ("relu", 0.0, 0.0) if number == 0.0 else ("clip_v2", number, math.inf)
        case "add":
            return "linear", 1.0, number
        case "sub":
            return ("linear", -1.0, number) if swapped else ("linear", 1.0, -number)
        case "mul":
            return "linear", number, 0.0
        case "div" if swapped:
            return "pow", number, -1.0
        case "div" if _has_inverse(number):
            return "linear", 1.0 / number, 0.0
    return None  # a minimum, which as a clip would make -inf of NaN, or a quotient that is no product


def _has_inverse(number: float) -> bool:
    """True for a number whose inverse float32 holds to full precision."""
    tiny = float(np.finfo("float32").tiny)
    return tiny < abs(number) < 1 / tiny
