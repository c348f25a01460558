"""Constant matrices of few bits behind DequantizeLinear: they stay so (``operators/products/few_bits.py``).

y [K, N] = DequantizeLinear(numbers, scales, zero points?), with a block_size along either axis or none
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from ....operators.products.few_bits import LEAST_BLOCK, FewBits
from ..node import Emitter, Node

_BITS = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "int8": 8, "uint8": 8}


def has_few_bits(node: Node) -> bool:
    """Whether a node gives a constant matrix that stays in few bits."""
    return node.op_type == "DequantizeLinear" and _matrix(node) is not None


def few_bits(emitter: Emitter, node: Node) -> relax.Expr | None:
    """The matrix of such a node; None of others."""
    found = _matrix(node)
    if found is None:
        return None
    matrix, transposed = found
    value = emitter.emit(matrix.expression())
    return emitter.emit(relax.op.permute_dims(value, [1, 0])) if transposed else value


def _matrix(node: Node) -> tuple[FewBits, bool] | None:
    """The matrix with its blocks along the last axis, and whether that is the first one of the node's."""
    data, scale, zero = (node.input(at) for at in range(3))
    if not isinstance(data, np.ndarray) or not isinstance(scale, np.ndarray) or data.ndim != 2:
        return None
    if zero is not None and not isinstance(zero, np.ndarray):
        return None
    bits, block = _BITS.get(str(data.dtype)), int(node.attribute("block_size", 0))
    if bits is None or scale.dtype != np.float32 or (bits == 8 and not block) or 0 in data.shape:
        return None
    if node.attribute("output_dtype", 0) not in (0, 1) or (zero is not None and zero.shape != scale.shape):
        return None
    # A scale for each output has no blocks: the whole depth is one.
    axis = int(node.attribute("axis", 1)) % 2
    along = axis if block else 0 if scale.size == 1 else 1 - axis
    depth, columns = data.shape[along], data.shape[1 - along]
    if not block:
        block = -(-depth // LEAST_BLOCK) * LEAST_BLOCK
        if scale.size not in (1, columns):
            return None
        scale, zero = _rows(scale, columns), None if zero is None else _rows(zero, columns)
    elif along == 0:
        scale, zero = scale.T, None if zero is None else zero.T
    if block % LEAST_BLOCK and block < depth:
        return None
    block = -(-block // LEAST_BLOCK) * LEAST_BLOCK
    if scale.shape != (columns, -(-depth // block)):
        return None
    middle = 2 ** (bits - 1) if str(data.dtype).startswith("int") else 0
    numbers = (data.astype("int16") + middle).astype("uint8")
    centres = np.zeros(scale.shape, "int16") if zero is None else zero.astype("int16")
    points = (centres + middle).astype("uint8")
    stated = None if (points == 2 ** (bits - 1)).all() else points
    return FewBits(numbers.T if along == 0 else numbers, scale, stated, bits, block), along == 0


def _rows(array: np.ndarray, columns: int) -> np.ndarray:
    return np.broadcast_to(array.reshape(-1, 1), (columns, 1))
