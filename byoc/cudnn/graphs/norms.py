"""Layer normalization: rows of a matrix, seen as images of one pixel whose channels are normalized."""

from __future__ import annotations

import math
from typing import Any

from tvm_mxplan.core.program import program as ir

from .tensors import GraphBuilder, Ints


def layer_norm(b: GraphBuilder, attrs: ir.LayerNormalization) -> dict[str, Any]:
    shape = b.shape(b.dst)
    rows, columns = math.prod(shape[:-1]), shape[-1]
    whole: Ints = (rows, columns, 1, 1)
    strides: Ints = (columns, 1, columns, columns)
    b.results(whole, strides)
    inputs = [b.stored(b.place("src"), whole, strides)]
    inputs += [b.vector(b.place(role), 1, 4) for role in ("scale", "shift")]
    b.node("layer_norm", [*inputs, b.number(attrs.epsilon)])
    return b.request(whole, strides)
