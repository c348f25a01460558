"""Batch normalization with given statistics, layer normalization, local response normalization."""

from __future__ import annotations

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..estimate import UNIT_ROUNDOFF, Estimate, gamma
from .operands import Operands

_POWER = 4e-6  # relative error that oneDNN's tests allow exp and pow in float32


def batch_normalization(attrs: ir.BatchNormalization, operands: Operands) -> Estimate:
    mean, variance, scale, shift = (
        operands.channels(role) for role in ("mean", "variance", "scale", "shift")
    )
    factor = scale / np.sqrt(variance + attrs.epsilon)
    value = (operands.src - mean) * factor + shift
    # However it is arranged: x * factor + (shift - mean * factor), say.
    size = np.abs(operands.src * factor) + np.abs(mean * factor) + np.abs(shift)
    return Estimate(np.maximum(value, 0.0) if attrs.relu else value, 8 * UNIT_ROUNDOFF * size)


def layer_normalization(attrs: ir.LayerNormalization, operands: Operands) -> Estimate:
    src = operands.src
    sums = gamma(src.shape[-1])
    mean = src.mean(-1, keepdims=True)
    mean_error = (sums + UNIT_ROUNDOFF) * np.abs(src).mean(-1, keepdims=True)
    centred = src - mean
    centred_error = mean_error + UNIT_ROUNDOFF * np.abs(centred)
    variance = np.square(centred).mean(-1, keepdims=True)
    variance_error = (sums + 2 * UNIT_ROUNDOFF) * variance + (
        2 * np.abs(centred) * centred_error + centred_error**2
    ).mean(-1, keepdims=True)
    rest = variance + attrs.epsilon
    factor = 1 / np.sqrt(rest)
    factor_error = factor * (0.5 * variance_error / rest + 4 * UNIT_ROUNDOFF)
    value = centred * factor
    error = centred_error * factor + np.abs(centred) * factor_error + centred_error * factor_error
    if operands.get("scale") is not None:
        value, error = value * operands["scale"], error * np.abs(operands["scale"])
    if operands.get("shift") is not None:
        value = value + operands["shift"]
        error = error + UNIT_ROUNDOFF * np.abs(operands["shift"])
    return Estimate(value, error).rounded(2)


def rms_normalization(attrs: ir.RmsNormalization, operands: Operands) -> Estimate:
    src = operands.src
    square = np.square(src).mean(-1, keepdims=True)
    rest = square + attrs.epsilon
    value = src / np.sqrt(rest)
    relative = 0.5 * (gamma(src.shape[-1]) + 2 * UNIT_ROUNDOFF) * square / rest + 4 * UNIT_ROUNDOFF
    if operands.get("scale") is not None:
        value = value * operands["scale"]
    return Estimate(value, relative * np.abs(value)).rounded(2)


def lrn(attrs: ir.LRN, operands: Operands) -> Estimate:
    channels = operands.shape[1]
    pairs = [(0, 0)] * operands.src.ndim
    pairs[1] = ((attrs.size - 1) // 2, attrs.size // 2)
    squares = np.pad(np.square(operands.src), pairs)
    total = sum(squares[:, at : at + channels] for at in range(attrs.size))
    base = attrs.k + attrs.alpha / attrs.size * total
    value = operands.src * base**-attrs.beta
    relative = abs(attrs.beta) * (gamma(attrs.size) + 4 * UNIT_ROUNDOFF) + _POWER
    return Estimate(value, relative * np.abs(value))
