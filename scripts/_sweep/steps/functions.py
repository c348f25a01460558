"""The elementwise functions that steps and post-ops use, with their parameters."""

from __future__ import annotations

# Algorithm: alpha, beta.  Powers of two where there is a choice, so that results stay exact.
ELTWISE: dict[str, tuple[float, float]] = {
    "relu": (0.0, 0.0),
    "leaky": (0.25, 0.0),
    "tanh": (0.0, 0.0),
    "elu": (0.5, 0.0),
    "square": (0.0, 0.0),
    "abs": (0.0, 0.0),
    "sqrt": (0.0, 0.0),
    "linear": (0.5, 2.0),
    "soft_relu": (1.0, 0.0),
    "hardsigmoid": (0.25, 0.5),
    "logistic": (0.0, 0.0),
    "mish": (0.0, 0.0),
    "exp": (0.0, 0.0),
    "gelu_tanh": (0.0, 0.0),
    "gelu_erf": (0.0, 0.0),
    "swish": (1.0, 0.0),
    "log": (0.0, 0.0),
    "clip": (-2.0, 3.0),
    "clip_v2": (-2.0, 3.0),
    "hardswish": (0.25, 0.5),
    "pow": (1.0, 2.0),
    "round": (0.0, 0.0),
}
_SPELLED = {"leaky": "relu"}

# No rounding where the result has a place in float32.
EXACT_ELTWISE = frozenset(("relu", "leaky", "square", "abs", "linear", "clip", "clip_v2", "round"))
EXACT_ELTWISE |= {"hardsigmoid", "hardswish"}


def eltwise(name: str) -> tuple[str, float, float]:
    """Algorithm, alpha and beta as a program has them."""
    return (_SPELLED.get(name, name), *ELTWISE[name])
