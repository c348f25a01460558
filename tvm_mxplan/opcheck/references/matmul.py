"""Matrix products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


def few_bits_product(attrs: ir.FewBitsProduct, operands: Operands) -> Estimate:
    """The matrix in float64; kernels round its numbers, and sums of blocks, once more."""
    src = operands.src
    matrix = few_bits_matrix(attrs, operands.by_role, src.shape[-1])
    size = np.matmul(absolute(src), absolute(matrix).T).astype(np.float64)
    return Estimate(np.matmul(src, matrix.T), gamma(src.shape[-1] + 3) * size)


def grouped_product(_attrs: ir.GroupedProduct, operands: Operands) -> Estimate:
    """Row by row; those of no group are 0."""
    src, matrices = operands.src, operands["weights"]
    value = np.zeros((len(src), matrices.shape[-1]), np.result_type(src, matrices))
    size = np.zeros(value.shape)
    for row, group in enumerate(groups_of(operands["ends"], np.arange(len(src)))):
        if group < len(matrices):
            value[row] = src[row] @ matrices[group]
            size[row] = absolute(src[row]) @ absolute(matrices[group])
    return Estimate(value, gamma(src.shape[-1] + 1) * size)


def groups_of(ends: Array, rows: Array) -> Array:
    """The group of each row: the first that ends behind it, as many as there are where none does."""
    behind = ends.astype(np.int64) > rows[:, None]
    return np.where(behind.any(1), behind.argmax(1), len(ends))


def few_bits_matrix(attrs: ir.FewBitsProduct, given: Mapping[str, Sequence[Array]], depth: int) -> Array:
    """``[N, K]`` in float64: a number is ``bits`` of its word, the lowest first."""
    of_word = 32 // attrs.bits
    at = np.arange(depth)
    words = given["numbers"][0][0].astype(np.int64)[:, at // of_word]
    numbers = (words >> (at % of_word * attrs.bits)) & (2**attrs.bits - 1)
    blocks = at // attrs.block
    zero = float(2 ** (attrs.bits - 1))
    points = given["zero_points"][0][0][:, blocks] if "zero_points" in given else zero
    return np.asarray((numbers - points) * given["scales"][0][0].astype(np.float64)[:, blocks])


def _product(src: Array, weights: Array, operands: Operands) -> Estimate:
    value = np.matmul(src, weights)
    size = np.matmul(absolute(src), absolute(weights)).astype(np.float64)
    bias = operands.get("bias")
    if bias is not None:
        value, size = value + bias, size + np.abs(bias)
    return Estimate(value, gamma(src.shape[-1] + 1) * size)
