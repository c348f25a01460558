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
