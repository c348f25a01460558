"""Regions of one convolution, with a batch that is a number or a name."""

from __future__ import annotations

import numpy as np
from program_builder import Builder, convolution, random

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Symbol

SAME = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)


W = random(17, 3, 3, 3)


def small(batch=2, layout="acdb"):
    """conv + relu between two reorders."""
    b = Builder("small")
    src = b.reorder(b.input((batch, 3, 8, 8)), layout)
    dst = b.local((batch, 17, 8, 8), layout)
    b.step(SAME, [ir.EltwisePostOp("relu", 0.0, 0.0)], src=src, weights=b.constant(W), dst=dst)
    b.finish(dst)
    return b


def symbolic():
    n = Symbol("n")
    b = small(batch=n)
    b.symbols.append(ir.SymbolBinding("n", 0, 0))
    return b


def expected(x):
    return np.maximum(convolution(x, W, SAME), 0)


def out(batch=2):
    return np.full((batch, 17, 8, 8), np.nan, "float32")
