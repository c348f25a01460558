"""Fourier transforms as products with constant matrices of cosines and sines, axis after axis.

_fft_r2c    real numbers [.., n] to half of the frequencies, or all     [n, k * 2]
_fft_c2c    complex numbers [.., n, 2] to all of them                   [n * 2, n * 2]
_fft_c2r    half of the frequencies [.., k, 2] to n real numbers        [k * 2, n]
"""

from __future__ import annotations

import math

import numpy as np
from tvm import relax

from .....errors import UnsupportedError
from ....onnx.dimensions.dims import Dim
from ...node import Emitter, Node, dims_of, dtype_of
from ..table import converts_complex
from .pairs import pair

_LARGEST = 2**26
"""Elements of a matrix: 256 MiB in float32."""


@converts_complex("_fft_r2c.default")
def _from_real(emitter: Emitter, node: Node) -> relax.Expr:
    source, axes = node["self"], _axes(node, len(dims_of(node["self"])))
    *others, last = axes
    length = _length(dims_of(source)[last])
    kept = length // 2 + 1 if node["onesided"] else length
    scale = _scale(node, [dims_of(source)[axis] for axis in axes])
    matrix = _waves(length, kept, -1) * scale
    found = _multiplied(emitter, source, matrix.reshape(length, kept * 2), last, (kept, 2))
    for axis in others:
        found = _transformed(emitter, found, axis, -1, 1.0)
    return found


@converts_complex("_fft_c2c.default")
def _from_complex(emitter: Emitter, node: Node) -> relax.Expr:
    found = node["self"]
    if "self" not in node.complex:
        found = pair(emitter, found, None)
    axes = _axes(node, len(dims_of(found)) - 1)
    scale = _scale(node, [dims_of(found)[axis] for axis in axes])
    for at, axis in enumerate(axes):
        found = _transformed(emitter, found, axis, -1 if node["forward"] else 1, scale if at == 0 else 1.0)
    return found


@converts_complex("_fft_c2r.default")
def _to_real(emitter: Emitter, node: Node) -> relax.Expr:
    found = node["self"]
    *others, last = _axes(node, len(dims_of(found)) - 1)
    length = _length(node["last_dim_size"])
    for axis in others:
        found = _transformed(emitter, found, axis, 1, 1.0)
    kept = _length(dims_of(found)[last])
    scale = _scale(node, [*(dims_of(found)[axis] for axis in others), length])
    waves = _waves(kept, length, 1, length)  # each frequency stands for itself and for its mirror image
    counts = np.where((np.arange(kept) == 0) | (2 * np.arange(kept) == length), 1.0, 2.0)
    counts[2 * np.arange(kept) > length] = 0.0
    matrix = np.stack([waves[..., 0], -waves[..., 1]], 1) * counts[:, None, None] * scale
    return _multiplied(emitter, found, matrix.reshape(kept * 2, length), last, (length,), parts=True)


def _axes(node: Node, rank: int) -> list[int]:
    return [axis % rank for axis in node["dim"]]


def _length(extent: Dim) -> int:
    if not isinstance(extent, int):
        raise UnsupportedError(
            "a Fourier transform along an axis whose length varies; expected a known length"
        )
    return extent


def _scale(node: Node, extents: list[Dim]) -> float:
    """The factor of results: 1, or one over the number of elements or over its root."""
    if node["normalization"] == 0:
        return 1.0
    count = math.prod(map(_length, extents))
    return 1 / math.sqrt(count) if node["normalization"] == 1 else 1 / count


def _waves(taken: int, kept: int, sign: int, period: int | None = None) -> np.ndarray:
    """exp(sign 2 pi i row column / period) as pairs, [taken, kept, 2]; the period is the number of rows."""
    if taken * kept * 4 > _LARGEST:
        raise UnsupportedError(
            f"a Fourier transform of {max(taken, kept):,} elements; expected fewer, since it becomes a "
            "matrix product"
        )
    period = period or taken
    angles = sign * 2 * np.pi * (np.outer(np.arange(taken), np.arange(kept)) % period) / period
    waves = np.stack([np.cos(angles), np.sin(angles)], -1)
    return np.where(
        np.abs(waves) < 1e-14, 0.0, waves
    )  # what float64 makes of sin(pi) turns real numbers' angles


def _transformed(emitter: Emitter, pairs: relax.Expr, axis: int, sign: int, scale: float) -> relax.Expr:
    """All frequencies of complex numbers along an axis."""
    length = _length(dims_of(pairs)[axis])
    waves = _waves(length, length, sign) * scale
    turned = np.stack([-waves[..., 1], waves[..., 0]], -1)
    matrix = np.stack([waves, turned], 1).reshape(length * 2, length * 2)
    return _multiplied(emitter, pairs, matrix, axis, (length, 2), parts=True)


def _multiplied(
    emitter: Emitter,
    source: relax.Expr,
    matrix: np.ndarray,
    axis: int,
    result: tuple[int, ...],
    *,
    parts: bool = False,
) -> relax.Expr:
    """An axis, with the parts of complex numbers, times a matrix, in the axis's place."""
    rank = len(dims_of(source)) - parts
    order = [*(at for at in range(rank) if at != axis), axis]
    moved = source
    if axis != rank - 1:
        moved = emitter.emit(relax.op.permute_dims(source, [*order, rank] if parts else order))
    rest = [dims_of(source)[at] for at in order[:-1]]
    flat = emitter.reshaped(moved, [*rest, matrix.shape[0]])
    dtype = dtype_of(source)
    found = emitter.emit(relax.op.matmul(flat, relax.const(matrix.astype(dtype), dtype)))
    found = emitter.reshaped(found, [*rest, *result])
    if axis == rank - 1:
        return found
    back = [order.index(at) for at in range(rank)]
    return emitter.emit(relax.op.permute_dims(found, [*back, rank] if len(result) == 2 else back))
