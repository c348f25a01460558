"""Matrix products."""

from __future__ import annotations

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..estimate import Array, Estimate, gamma
from .operands import Operands, absolute


def matmul(_attrs: ir.MatMul, operands: Operands) -> Estimate:
    return _product(operands.src, operands["weights"], operands)


def inner_product(_attrs: ir.InnerProduct, operands: Operands) -> Estimate:
    rows = operands.src.reshape(operands.src.shape[0], -1)
    weights = operands["weights"]
    return _product(rows, weights.reshape(weights.shape[0], -1).T, operands)


def _product(src: Array, weights: Array, operands: Operands) -> Estimate:
    value = np.matmul(src, weights)
    size = np.matmul(absolute(src), absolute(weights)).astype(np.float64)
    bias = operands.get("bias")
    if bias is not None:
        value, size = value + bias, size + np.abs(bias)
    return Estimate(value, gamma(src.shape[-1] + 1) * size)
