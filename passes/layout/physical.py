"""Physical layouts as Relax sees them: a tensor of the physical shape, and what that says in operators.

x: (1, 17, 8, 8)   in acdb     (1, 8, 8, 17)         permute_dims
                   in aBcd16b  (1, 2, 8, 8, 16)      pad, reshape, permute_dims; back: and strided_slice
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax

from tvm_mxplan.core.layout import Layout, parse_layout


def physical_type(tensor: relax.TensorType, layout: str) -> relax.TensorType:
    """The type of a tensor stored in ``layout``; blocked dimensions must be known."""
    shape = parse_layout(layout).physical_shape(_dims(tensor))
    return relax.TensorType(shape, tensor.dtype, tensor.vdevice)


def to_physical(x: relax.Expr, layout: str) -> relax.Expr:
    """``x`` in ``layout``, tails zero."""
    parsed = parse_layout(layout)
    shape = _dims(x.ty)
    padded = _padded(parsed, shape)
    if any(high is not low for high, low in zip(padded, shape, strict=True)):
        width = [extent for low, high in zip(shape, padded, strict=True) for extent in (0, _tail(low, high))]
        x = relax.op.nn.pad(x, width)
    split, axes = _split(parsed, padded)
    if parsed.blocks:
        x = relax.op.reshape(x, split)
    return relax.op.permute_dims(x, axes)


def to_plain(x: relax.Expr, layout: str, plain: relax.TensorType) -> relax.Expr:
    """The tensor of type ``plain`` that ``x`` is in ``layout``."""
    parsed = parse_layout(layout)
    shape = _dims(plain)
    padded = _padded(parsed, shape)
    _, axes = _split(parsed, padded)
    x = relax.op.permute_dims(x, [int(axis) for axis in np.argsort(axes)])
    if parsed.blocks:
        x = relax.op.reshape(x, padded)
    cut = [dim for dim, (low, high) in enumerate(zip(shape, padded, strict=True)) if high is not low]
    return relax.op.strided_slice(x, cut, [0] * len(cut), [shape[dim] for dim in cut]) if cut else x


def physical_array(array: np.ndarray, layout: str, shape: Sequence[object]) -> np.ndarray:
    """A constant that broadcasts to ``shape``, such that it broadcasts to the same tensor in ``layout``.

    Its tail is zero where its extent is that of ``shape``.
    """
    parsed = parse_layout(layout)
    array = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    spread = {dim for dim in range(array.ndim) if array.shape[dim] == 1}
    blocks = tuple((1 if dim in spread else size, dim) for size, dim in parsed.blocks)
    fitted = Layout(parsed.order, blocks)
    padded = fitted.padded_shape(array.shape)
    array = np.pad(array, [(0, high - low) for low, high in zip(array.shape, padded, strict=True)])
    split, axes = _split(fitted, padded)
    return np.ascontiguousarray(array.reshape(split).transpose(axes))


def _dims(tensor: relax.TensorType) -> list[Any]:
    """Dimensions of a type: integers where they are known, else TVM's expressions."""
    return [int(dim.value) if hasattr(dim, "value") else dim for dim in tensor.shape.values]


def _padded(layout: Layout, shape: Sequence[Any]) -> list[Any]:
    """``shape`` rounded up to blocks; a dimension that stays as it is is the same object."""
    padded = list(shape)
    for size, dim in layout.blocks:
        if padded[dim] % size:
            padded[dim] = -(-padded[dim] // size) * size
    return padded


def _tail(low: Any, high: Any) -> int:
    return 0 if high is low else int(high - low)


def _split(layout: Layout, padded: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """The shape with blocked dimensions as outer part and blocks, and the order in which those are stored."""
    split: list[Any] = []
    outer: list[int] = []
    inner: dict[int, list[int]] = {}
    for dim, extent in enumerate(padded):
        sizes = [size for size, blocked in layout.blocks if blocked == dim]
        outer.append(len(split))
        inner[dim] = [len(split) + 1 + at for at in range(len(sizes))]
        split += [extent // int(np.prod(sizes)) if sizes else extent, *sizes]
    return split, [*(outer[dim] for dim in layout.order), *(inner[dim].pop(0) for _, dim in layout.blocks)]
