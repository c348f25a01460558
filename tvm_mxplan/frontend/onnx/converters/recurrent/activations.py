"""Activations of recurrent layers by ONNX's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .....operators.recurrent import Activation
from ...node import NotTaken

_DEFAULTS: Mapping[str, tuple[float | None, float | None]] = {
    "sigmoid": (None, None),
    "tanh": (None, None),
    "relu": (None, None),
    "leakyrelu": (0.01, None),
    "thresholdedrelu": (1.0, None),
    "affine": (1.0, 0.0),
    "elu": (1.0, None),
    "hardsigmoid": (0.2, 0.5),
    "scaledtanh": (1.0, 1.0),
    "softplus": (None, None),
    "softsign": (None, None),
}
"""Alpha and beta where a function has them and the model does not say."""


def activations(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]
) -> tuple[Activation, ...]:
    """Activations by ONNX's names; those that have parameters take them from the lists in turn.

    Raises
    ------
    NotTaken : a name that ONNX does not have.
    """
    found, first, second = [], iter(alphas), iter(betas)
    for name in (name.lower() for name in names):
        if name not in _DEFAULTS:
            raise NotTaken
        alpha, beta = _DEFAULTS[name]
        found.append(
            Activation(
                name,
                0.0 if alpha is None else next(first, alpha),
                0.0 if beta is None else next(second, beta),
            )
        )
    return tuple(found)
