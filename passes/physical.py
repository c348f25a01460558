"""Physical layouts as Relax sees them: a tensor of the physical shape, and what that says in operators.

x: (1, 17, 8, 8)   in acdb     (1, 8, 8, 17)         permute_dims
                   in aBcd16b  (1, 2, 8, 8, 16)      pad, reshape, permute_dims; back: and strided_slice
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax

from tvm_mxplan.core.layout.layout import Layout, parse_layout
from tvm_mxplan.core.layout.layout_arrays import pack


def physical_type(tensor: relax.TensorType, layout: str) -> relax.TensorType:
    """The type of a tensor stored in ``layout``; blocked dimensions must be known."""
    shape = parse_layout(layout).physical_shape(_dims(tensor))
    return relax.TensorType(shape, tensor.dtype, tensor.vdevice)


def to_physical(x: relax.Expr, layout: str) -> relax.Expr:
    """``x`` in ``layout``, tails zero."""
    parsed, shape = parse_layout(layout), _dims(x.ty)
    tails = parsed.tails(shape)
    if tails:
        x = relax.op.nn.pad(x, [extent for dim in range(len(shape)) for extent in (0, tails.get(dim, 0))])
    if parsed.blocks:
        x = relax.op.reshape(x, parsed.split_shape(shape))
    return relax.op.permute_dims(x, list(parsed.stored_order()))


def to_plain(x: relax.Expr, layout: str, plain: relax.TensorType) -> relax.Expr:
    """The tensor of type ``plain`` that ``x`` is in ``layout``."""
    parsed, shape = parse_layout(layout), _dims(plain)
    x = relax.op.permute_dims(x, list(parsed.split_order()))
    if parsed.blocks:
        x = relax.op.reshape(x, parsed.padded_shape(shape))
    cut = list(parsed.tails(shape))
    return relax.op.strided_slice(x, cut, [0] * len(cut), [shape[dim] for dim in cut]) if cut else x


def physical_array(array: np.ndarray, layout: str, shape: Sequence[object]) -> np.ndarray:
    """A constant that broadcasts to ``shape``, such that it broadcasts to the same tensor in ``layout``.

    Its tail is zero where its extent is that of ``shape``.
    """
    parsed = parse_layout(layout)
    array = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    spread = {dim for dim in range(array.ndim) if array.shape[dim] == 1}
    blocks = tuple((1 if dim in spread else size, dim) for size, dim in parsed.blocks)
    return pack(array, Layout(parsed.order, blocks))


def _dims(tensor: relax.TensorType) -> list[Any]:
    """Dimensions of a type: integers where they are known, else TVM's expressions."""
    return [int(dim.value) if hasattr(dim, "value") else dim for dim in tensor.shape.values]
