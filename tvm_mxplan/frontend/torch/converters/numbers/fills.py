"""Tensors of one number: small ones are constants, which every library takes."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax

from .....core.element_types import numpy_type
from ....onnx.dimensions.dims import expression
from ...node import Emitter, Node
from ..table import converts

_MOST = 1 << 14
"""Elements of a constant; larger ones would take their bytes in exported libraries."""


@converts("full_like.default")
def _filled_like(emitter: Emitter, node: Node) -> relax.Expr:
    shape, dtype = node.result.shape, node.result.dtype
    if all(isinstance(dim, int) for dim in shape) and math.prod(shape) <= _MOST:
        return relax.const(np.full(shape, node["fill_value"], numpy_type(dtype)), dtype)
    extents = relax.ShapeExpr([expression(dim) for dim in shape])
    return emitter.emit(relax.op.full(extents, relax.const(node["fill_value"], dtype)))


@converts("arange.start_step")
def _counted(emitter: Emitter, node: Node) -> relax.Expr:
    """``start + step * i``, which PyTorch computes in float64 where the result is of real numbers."""
    start, end, step, dtype = node["start"], node["end"], node["step"], node.result.dtype
    if isinstance(step, int) and step > 0 and not isinstance(start, float) and not isinstance(end, float):
        return emitter.emit(relax.op.arange(*map(expression, (start, end, step)), dtype))
    wide = "float64" if "float" in dtype else "int64"
    (count,) = node.result.shape
    places = emitter.emit(relax.op.arange(0, expression(count), 1, "int64"))
    steps = emitter.emit(relax.op.multiply(emitter.cast(places, wide), emitter.scalar(step, wide)))
    return emitter.cast(emitter.emit(relax.op.add(steps, emitter.scalar(start, wide))), dtype)
