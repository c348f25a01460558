"""Products and the activations around them: FusedMatMul, MatMulNBits, and gelus with a bias."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax

from .....errors import UnsupportedError
from ...node import Emitter, Node
from ...values import Value, dtype_of, rank_of
from ..numbers import constant
from ..table import converts

_DOMAIN = "com.microsoft"


@converts("Gelu", "BiasGelu", domain=_DOMAIN)
def _gelu(emitter: Emitter, node: Node) -> Value:
    return emitter.emit(relax.op.nn.gelu(_with_bias(emitter, node)))


@converts("FastGelu", domain=_DOMAIN)
def _fast_gelu(emitter: Emitter, node: Node) -> Value:
    return emitter.emit(relax.op.nn.gelu_tanh(_with_bias(emitter, node)))


def _with_bias(emitter: Emitter, node: Node) -> relax.Expr:
    data, bias = emitter.tensor(node.input(0)), node.input(1)
    return data if bias is None else emitter.emit(relax.op.add(data, emitter.tensor(bias)))


@converts("QuickGelu", domain=_DOMAIN)
def _quick_gelu(emitter: Emitter, node: Node) -> Value:
    data = emitter.tensor(node.input(0))
    alpha = constant(node.attribute("alpha", 1.702), dtype_of(data))
    return emitter.emit(relax.op.multiply(data, relax.op.sigmoid(relax.op.multiply(data, alpha))))


@converts("FusedMatMul", domain=_DOMAIN)
def _fused_product(emitter: Emitter, node: Node) -> Value:
    """A product of operands that are transposed first, times a number."""
    left, right = (
        _turned(emitter, node, emitter.tensor(node.input(at)), side) for at, side in enumerate("AB")
    )
    result = emitter.emit(relax.op.matmul(left, right))
    alpha = node.attribute("alpha", 1.0)
    if alpha == 1.0:
        return result
    return emitter.emit(relax.op.multiply(result, constant(alpha, dtype_of(result))))


def _turned(emitter: Emitter, node: Node, data: relax.Expr, side: str) -> relax.Expr:
    rank = rank_of(data)
    order = list(range(rank))
    if node.attribute(f"transBatch{side}", 0) and rank > 2:
        order = [*order[1:-1], order[0], order[-1]]
    if node.attribute(f"trans{side}", 0) and rank > 1:
        order[-2:] = reversed(order[-2:])
    return data if order == list(range(rank)) else emitter.emit(relax.op.permute_dims(data, order))


@converts("MatMulNBits", domain=_DOMAIN)
def _product_of_few_bits(emitter: Emitter, node: Node) -> Value:
    """Weights of 2, 4 or 8 bits in blocks along the depth; they become float32 now."""
    operands = [node.input(at) for at in range(1, 5)]
    if any(value is not None and not isinstance(value, np.ndarray) for value in operands):
        raise UnsupportedError(
            f"{emitter.importer.called(node)}: weights that the model computes; expected initializers"
        )
    data, bias = emitter.tensor(node.input(0)), node.input(5)
    weights = _dequantised(node, *operands)
    dtype = dtype_of(data)
    result = emitter.emit(relax.op.matmul(data, constant(weights.T, dtype)))
    return result if bias is None else emitter.emit(relax.op.add(result, emitter.tensor(bias)))


def _dequantised(
    node: Node,
    packed: np.ndarray,
    scales: np.ndarray,
    zeros: np.ndarray | None,
    groups: np.ndarray | None,
) -> np.ndarray:
    """The weights as ``[N, K]`` in float32."""
    rows, depth = node.attributes["N"], node.attributes["K"]
    block, bits = node.attributes["block_size"], node.attribute("bits", 4)
    blocks = -(-depth // block)
    numbers = _unpacked(packed.reshape(rows, blocks, -1), bits)[:, :, :block].astype("float32")
    factors = scales.reshape(rows, blocks).astype("float32")
    if zeros is None:
        points = np.full((rows, blocks), 2.0 ** (bits - 1), "float32")
    elif zeros.dtype == np.uint8:
        points = _unpacked(zeros.reshape(rows, -1), bits)[:, :blocks].astype("float32")
    else:
        points = zeros.reshape(rows, blocks).astype("float32")
    if groups is None:
        whole = (numbers - points[:, :, None]) * factors[:, :, None]
        return whole.reshape(rows, -1)[:, :depth]
    at = groups.reshape(-1)[:depth]
    return (numbers.reshape(rows, -1)[:, :depth] - points[:, at]) * factors[:, at]


def _unpacked(data: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of few bits from bytes, the lowest first."""
    shifts = np.arange(0, 8, bits, dtype="uint8")
    parts = (data[..., None] >> shifts) & np.uint8(2**bits - 1)
    return parts.reshape(*data.shape[:-1], data.shape[-1] * math.ceil(8 / bits))
