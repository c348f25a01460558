"""MatMulNBits: a product whose weights are integers of 2, 4 or 8 bits, in blocks along the depth.

    y [..., N] = a [..., K] x w,    w[k, n] = scale[n, b] * (number[n, k] - zero[n, b]), b the block of k

The weights stay in few bits (``operators/products/few_bits.py``).  Where ``g_idx`` puts blocks in
another order, rows are taken in that order first; weights with blocks of other sizes become real numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tvm import relax

from .....errors import InvalidInputError, UnsupportedError
from .....operators.products.few_bits import FewBits
from ...node import Emitter, Node
from ...values import Value, dtype_of, shape_of
from ..numbers import constant
from ..table import converts

_BITS = (2, 4, 8)
_LEAST_BLOCK = 16
_REAL = ("float32", "float16", "bfloat16")
_NAMES = ("B", "scales", "zero_points", "g_idx", "bias")
"""Operands behind the first, as onnxruntime calls them."""


@dataclass(frozen=True)
class _Packed:
    """Weights as a node has them.

    Attributes
    ----------
    groups : the block of each place along the depth, where they are not in a row.
    """

    rows: int
    depth: int
    block: int
    bits: int
    numbers: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray | None
    groups: np.ndarray | None

    @property
    def blocks(self) -> int:
        return -(-self.depth // self.block)


@converts("MatMulNBits", domain="com.microsoft")
def _product(emitter: Emitter, node: Node) -> Value:
    called = emitter.importer.called(node)
    data, bias = emitter.tensor(node.input(0)), node.input(5)
    packed = _packed(node, called)
    extents = shape_of(node.input(0))
    if extents and isinstance(extents[-1], int) and extents[-1] != packed.depth:
        raise InvalidInputError(
            f"{called}: A: expected {packed.depth} columns, which is K, got {extents[-1]}"
        )
    dtype = dtype_of(data)
    if dtype not in _REAL:
        raise InvalidInputError(f"{called}: A: expected {' or '.join(_REAL)}, got {dtype}")
    result = _multiplied(emitter, packed, data)
    if bias is None:
        return result
    if shape_of(bias) not in (None, [packed.rows]):
        raise InvalidInputError(f"{called}: bias: expected {packed.rows} numbers, got shape {shape_of(bias)}")
    return emitter.emit(relax.op.add(result, emitter.tensor(bias)))


def _packed(node: Node, called: str) -> _Packed:
    """The operands behind the first, held to what attributes say of them."""
    numbers, scales, zeros, groups = (_initializer(node, called, at) for at in range(1, 5))
    rows, depth, block, bits = (
        _number(node, called, name, default)
        for name, default in (("N", None), ("K", None), ("block_size", None), ("bits", 4))
    )
    if bits not in _BITS:
        raise UnsupportedError(f"{called}: bits: expected one of {', '.join(map(str, _BITS))}, got {bits}")
    if block < _LEAST_BLOCK or block & (block - 1):
        raise InvalidInputError(
            f"{called}: block_size: expected a power of two from {_LEAST_BLOCK} on, got {block}"
        )
    if numbers is None or scales is None:
        missing = "B" if numbers is None else "scales"
        raise InvalidInputError(f"{called}: {missing}: expected an initializer, got none")
    packed = _Packed(rows, depth, block, bits, numbers, scales, zeros, groups)
    if numbers.dtype != np.uint8:
        raise InvalidInputError(f"{called}: B: expected uint8, got {numbers.dtype}")
    _expect(called, "B", numbers, rows * packed.blocks * (block * bits // 8))
    _expect(called, "scales", scales, rows * packed.blocks)
    _expect_real(called, "scales", scales)
    if zeros is not None:
        short = zeros.dtype == np.uint8
        if not short:
            _expect_real(called, "zero_points", zeros)
        _expect(
            called, "zero_points", zeros, rows * (-(-packed.blocks * bits // 8) if short else packed.blocks)
        )
    if groups is not None:
        at = groups.reshape(-1)
        if at.size < depth or at.min() < 0 or at.max() >= packed.blocks:
            raise InvalidInputError(
                f"{called}: g_idx: expected {depth} blocks from 0 to {packed.blocks - 1}, got {at.size} from "
                f"{at.min()} to {at.max()}"
            )
    return packed


def _initializer(node: Node, called: str, index: int) -> np.ndarray | None:
    """An operand behind the first; None where it is left out."""
    value = node.input(index)
    if value is not None and not isinstance(value, np.ndarray):
        name = _NAMES[index - 1]
        raise UnsupportedError(f"{called}: {name} that the model computes; expected an initializer")
    return value


def _number(node: Node, called: str, name: str, default: int | None) -> int:
    value = node.attribute(name, default)
    if not isinstance(value, int) or value < 1:
        raise InvalidInputError(f"{called}: {name}: expected a number above 0, got {value}")
    return value


def _expect(called: str, name: str, array: np.ndarray, count: int) -> None:
    if array.size != count:
        raise InvalidInputError(
            f"{called}: {name}: expected {count} numbers for K, N, bits and block_size, got {array.size}"
        )


def _expect_real(called: str, name: str, array: np.ndarray) -> None:
    """Scales may be of either sign, and 0 in a block of zeros, as onnxruntime's quantiser makes them."""
    if str(array.dtype) not in _REAL:
        raise InvalidInputError(f"{called}: {name}: expected {' or '.join(_REAL)}, got {array.dtype}")
    if not np.isfinite(array.astype("float64")).all():
        raise InvalidInputError(f"{called}: {name}: expected finite numbers")


def _multiplied(emitter: Emitter, packed: _Packed, data: relax.Expr) -> relax.Expr:
    """The product in the type of ``data``."""
    emit, dtype = emitter.emit, dtype_of(data)
    numbers, scales, points = _numbers(packed)
    order = None if packed.groups is None else _order(packed)
    if packed.groups is not None and order is None:
        return emit(relax.op.matmul(data, constant(_real(packed, numbers, scales, points).T, dtype)))
    if order is not None and (order != np.arange(packed.depth)).any():
        data = emit(relax.op.take(data, constant(order, "int64"), axis=-1))
        numbers = numbers[:, order]
    matrix = emit(FewBits(numbers, scales, points, packed.bits, packed.block).expression())
    wide = data if dtype == "float32" else emit(relax.op.astype(data, "float32"))
    result = emit(relax.op.matmul(wide, emit(relax.op.permute_dims(matrix, [1, 0]))))
    return result if dtype == "float32" else emit(relax.op.astype(result, dtype))


def _numbers(packed: _Packed) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Numbers ``[N, K]``, scales and zero points ``[N, blocks]``, these None where they are the middle."""
    rows, blocks, bits = packed.rows, packed.blocks, packed.bits
    numbers = _unpacked(packed.numbers.reshape(rows, -1), bits)[:, : packed.depth]
    scales = packed.scales.reshape(rows, blocks).astype("float32")
    if packed.zeros is None:
        return numbers, scales, None
    if packed.zeros.dtype == np.uint8:
        return numbers, scales, _unpacked(packed.zeros.reshape(rows, -1), bits)[:, :blocks]
    return numbers, scales, packed.zeros.reshape(rows, blocks).astype("float32")


def _order(packed: _Packed) -> np.ndarray | None:
    """The order of the depth in which blocks are in a row; None where these have other sizes."""
    assert packed.groups is not None
    groups = packed.groups.reshape(-1)[: packed.depth]
    order = np.argsort(groups, kind="stable")
    whole = (groups[order] == np.arange(packed.depth) // packed.block).all()
    return order if whole else None


def _real(packed: _Packed, numbers: np.ndarray, scales: np.ndarray, points: np.ndarray | None) -> np.ndarray:
    """The weights as ``[N, K]`` in float32, each number in the block that ``g_idx`` names."""
    assert packed.groups is not None
    at = packed.groups.reshape(-1)[: packed.depth]
    zero = 2.0 ** (packed.bits - 1) if points is None else points[:, at].astype("float32")
    return np.asarray((numbers.astype("float32") - zero) * scales[:, at], "float32")


def _unpacked(data: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of few bits from bytes, the lowest first."""
    shifts = np.arange(0, 8, bits, dtype="uint8")
    parts = (data[..., None] >> shifts) & np.uint8(2**bits - 1)
    return parts.reshape(*data.shape[:-1], data.shape[-1] * 8 // bits)
