"""DFT and STFT as products with a constant matrix of cosines and sines, which libraries run.

    DFT of [.., n, 1 or 2]     a matrix product [.., n * parts] to [.., k * 2]; k is n, or n // 2 + 1 if real
    STFT of [b, t, 1 or 2]     one convolution along t: its filters are windowed waves, its stride is the step

Lengths, axes and steps have to be known; a window may be the call's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tvm import relax

from ....errors import UnsupportedError
from ...constants import constant
from ..dimensions.dims import Dim
from ..node import Emitter, Node, NotTaken
from ..values import Value, dtype_of
from ..way_out import LEAVE_OUT
from .table import converts

_LARGEST = 2**26
"""Elements of a matrix: 256 MiB in float32."""


@dataclass(frozen=True)
class _Transform:
    """A discrete Fourier transform.

    Attributes
    ----------
    taken : elements that are read; those behind ``length`` are left out, and missing ones are zero.
    parts : 1 for real elements, 2 for complex ones.
    kept : frequencies of the result.
    """

    length: int
    taken: int
    parts: int
    kept: int
    inverse: bool = False

    def matrix(self) -> np.ndarray:
        """By element and part, then by frequency and part: [taken, parts, kept, 2]."""
        steps = np.arange(min(self.taken, self.length))
        turns = np.outer(steps, np.arange(self.kept)) % self.length
        angles = 2 * np.pi * turns / self.length * (1 if self.inverse else -1)
        waves = np.zeros((self.taken, self.parts, self.kept, 2))
        scale = 1 / self.length if self.inverse else 1.0
        waves[: len(steps), 0] = np.stack([np.cos(angles), np.sin(angles)], -1) * scale
        if self.parts == 2:
            waves[: len(steps), 1] = np.stack([-np.sin(angles), np.cos(angles)], -1) * scale
        return waves


@converts("DFT", first_opset=17)
def _dft(emitter: Emitter, node: Node) -> Value:
    data = emitter.tensor(node.input(0))
    dims = emitter.shape(data)
    rank = len(dims)
    stated = node.known(2) if node.opset >= 20 else None
    axis = (-2 if node.opset >= 20 else 1) if stated is None else int(stated.reshape(-1)[0])
    axis = node.attribute("axis", axis) % rank
    length = node.known(1)
    taken, parts = dims[axis], dims[-1]
    if axis == rank - 1 or not _is_parts(parts) or not isinstance(taken, int):
        raise NotTaken
    transform = _transform(
        emitter, node, taken if length is None else int(length.reshape(-1)[0]), taken, parts, 0
    )
    last = rank - 2
    order = [*(at for at in range(rank - 1) if at != axis), axis, rank - 1]
    moved = data if axis == last else emitter.emit(relax.op.permute_dims(data, order))
    rest = [dims[at] for at in order[:-2]]
    flat = emitter.reshaped(moved, [*rest, taken * parts])
    matrix = transform.matrix().reshape(taken * parts, transform.kept * 2).astype(dtype_of(data))
    product = emitter.emit(relax.op.matmul(flat, constant(matrix)))
    result = emitter.reshaped(product, [*rest, transform.kept, 2])
    if axis == last:
        return result
    back = [order.index(at) for at in range(rank)]
    return emitter.emit(relax.op.permute_dims(result, back))


def _is_parts(extent: Dim) -> bool:
    """Whether the last axis holds real numbers, or pairs of a real and an imaginary one."""
    return isinstance(extent, int) and extent in (1, 2)


def _transform(
    emitter: Emitter, node: Node, length: int, taken: int, parts: int, onesided: int
) -> _Transform:
    half, inverse = bool(node.attribute("onesided", onesided)), bool(node.attribute("inverse", 0))
    if half and (inverse or parts == 2):
        raise UnsupportedError(
            f"{emitter.importer.called(node)}: onesided, of complex data or inverse; expected real "
            f"data; {LEAVE_OUT}"
        )
    kept = length // 2 + 1 if half else length
    if taken * parts * kept * 2 > _LARGEST:
        raise UnsupportedError(
            f"{emitter.importer.called(node)}: over {length:,} elements; expected fewer, since it becomes a "
            f"matrix product; {LEAVE_OUT}"
        )
    return _Transform(length, taken, parts, kept, inverse)


@converts("STFT", first_opset=17)
def _stft(emitter: Emitter, node: Node) -> Value:
    data = emitter.tensor(node.input(0))
    dims = emitter.shape(data)
    step, window, length = node.known(1), node.input(2), node.known(3)
    frame = _frame(emitter, window, length)
    parts = dims[2] if len(dims) == 3 else 1
    if step is None or not _is_parts(parts):
        raise NotTaken
    transform = _transform(emitter, node, frame, frame, parts, 1)
    channels = _channels_first(emitter, data, dims)
    waves_of = transform.matrix().transpose(2, 3, 1, 0).reshape(-1, parts, frame).astype(dtype_of(data))
    filters: Value = waves_of
    if isinstance(window, np.ndarray):
        filters = (waves_of * window.astype("float64")).astype(dtype_of(data))
    elif window is not None:
        filters = emitter.emit(relax.op.multiply(constant(waves_of), emitter.tensor(window)))
    waves = emitter.emit(
        relax.op.nn.conv1d(channels, emitter.tensor(filters), strides=int(step.reshape(-1)[0]))
    )
    frames = emitter.shape(waves)[2]
    turned = emitter.emit(relax.op.permute_dims(waves, [0, 2, 1]))
    return emitter.reshaped(turned, [dims[0], frames, transform.kept, 2])


def _frame(emitter: Emitter, window: Value, length: np.ndarray | None) -> int:
    """The elements of a frame: stated, or as many as the window has."""
    if length is not None:
        return int(length.reshape(-1)[0])
    extent = None if window is None else emitter.shape(window)[0]
    if not isinstance(extent, int):
        raise NotTaken
    return extent


def _channels_first(emitter: Emitter, data: relax.Expr, dims: Sequence[Dim]) -> Value:
    """A signal [b, t] or [b, t, parts] as an image of one row, [b, parts, t]."""
    if len(dims) == 2:
        return emitter.reshaped(data, [dims[0], 1, dims[1]])
    return emitter.emit(relax.op.permute_dims(data, [0, 2, 1]))
