"""Images times gates made of themselves."""

from __future__ import annotations

import math

import numpy as np

from tvm_mxplan.core.program import program as ir

from ...estimate import Array, Estimate, gamma
from ..elementwise import apply_binary, apply_eltwise
from ..operands import Operands


def squeeze_excite(attrs: ir.SqueezeExcite, operands: Operands) -> Estimate:
    """Errors of means become those of products, and those, through the functions, the gates'.

    A gate below the smallest normal number may be 0.
    """
    src = operands.src
    pixels = math.prod(src.shape[2:])
    flat = src.reshape(*src.shape[:2], pixels)
    made = Estimate(flat.mean(2), gamma(pixels + 1) * np.abs(flat).mean(2))
    made = _product(made, operands["weights"], operands.get("bias"))
    gate_weights = operands.get("gate_weights")
    if gate_weights is not None:
        made = apply_eltwise(made, attrs.function, attrs.function_alpha, attrs.function_beta)
        made = _product(made, gate_weights, operands.get("gate_bias"))
    made = apply_eltwise(made, attrs.gate, attrs.gate_alpha, attrs.gate_beta)
    per_channel = (*src.shape[:2], *(1,) * (src.ndim - 2))
    error = np.broadcast_to(made.error, made.value.shape).reshape(per_channel) + np.finfo(np.float32).tiny
    gates = Estimate(made.value.reshape(per_channel), error)
    return apply_binary(gates, "mul", src)


def _product(rows: Estimate, weights: Array, bias: Array | None) -> Estimate:
    value, size = rows.value @ weights.T, np.abs(rows.value) @ np.abs(weights).T
    if bias is not None:
        value, size = value + bias, size + np.abs(bias)
    error = np.broadcast_to(rows.error, rows.value.shape)
    return Estimate(value, gamma(weights.shape[1] + 1) * size + error @ np.abs(weights).T)
