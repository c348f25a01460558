"""Reductions over the last axes: rows of a matrix, channels of images of one pixel."""

from __future__ import annotations

import math
from typing import Any

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError

from .tensors import GraphBuilder

_MODES = {"sum": "ADD", "max": "MAX", "min": "MIN"}


def reduction(b: GraphBuilder, attrs: ir.Reduction) -> dict[str, Any]:
    if attrs.algorithm not in _MODES or b.step.post_ops:
        raise UnsupportedError(f"cuDNN is given no reduction {attrs.algorithm} of this kind")
    source, shape = b.shape(b.place("src")), b.shape(b.dst)
    first = next((at for at, extent in enumerate(shape) if extent != source[at]), len(shape))
    if any(extent != 1 for extent in shape[first:]):
        raise UnsupportedError("a reduction over other axes than the last ones")
    rows, columns = math.prod(source[:first]), math.prod(source[first:])
    b.results((rows, 1, 1, 1), (1, 1, 1, 1))
    x = b.stored(b.place("src"), (rows, columns, 1, 1), (columns, 1, columns, columns))
    b.node("reduction", [x], mode=_MODES[attrs.algorithm])
    return b.request((rows, 1, 1, 1), (1, 1, 1, 1))
