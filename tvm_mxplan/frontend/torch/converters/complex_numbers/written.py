"""Tensors of one complex number, and those with others in the place of slices of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tvm import relax

from .....errors import UnsupportedError
from ...node import Emitter, Node, dims_of, dtype_of
from ..puts import put_at_index, put_in_slice
from ..table import converts_complex
from .pairs import pair


@converts_complex("full.default", "full_like.default")
def _filled(emitter: Emitter, node: Node) -> relax.Expr:
    number = complex(node["fill_value"])
    parts = np.array([number.real, number.imag], node.result.dtype)
    return emitter.broadcast(relax.const(parts), node.result.shape)


@converts_complex("copy.default")
def _copied(emitter: Emitter, node: Node) -> relax.Expr:
    """The other tensor, as large as this one."""
    if "self" not in node.complex:
        raise UnsupportedError("complex numbers copied into real ones; expected torch.real of them")
    value = _pairs(emitter, node, "src", node.result.dtype)
    missing = len(node.result.shape) - len(dims_of(value))
    return emitter.broadcast(emitter.reshaped(value, [1] * missing + dims_of(value)), node.result.shape)


@converts_complex("slice_scatter.default")
def _put_in_slice(emitter: Emitter, node: Node) -> relax.Expr:
    return put_in_slice(emitter, _of_pairs(emitter, node))


@converts_complex("select_scatter.default")
def _put_at_index(emitter: Emitter, node: Node) -> relax.Expr:
    return put_at_index(emitter, _of_pairs(emitter, node))


def _of_pairs(emitter: Emitter, node: Node) -> Node:
    """The node on real numbers, whose axes are counted from the front: one more is behind them."""
    source = node["self"]
    axis = node["dim"] % (len(dims_of(source)) - 1)
    put = {"dim": axis, "src": _pairs(emitter, node, "src", dtype_of(source))}
    return replace(node, operands={**node.operands, **put})


def _pairs(emitter: Emitter, node: Node, name: str, dtype: str) -> relax.Expr:
    """An operand, which may be real, as pairs of a type."""
    value = emitter.cast(node[name], dtype)
    return value if name in node.complex else pair(emitter, value, None)
