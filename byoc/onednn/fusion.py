"""Post-ops: elementwise steps that run inside the primitive that made their operand.

Before   v1 = convolution(x, w);  v2 = binary add(v1, r);  v3 = eltwise relu(v2)
After    v3 = convolution(x, w) post_ops=[binary add r, eltwise relu]

A step is fused into its latest producer, which moves to the step's place, so that everything it reads is
there.  Chains grow to any length and in any order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvm_mxplan.core import program as ir

from .folding import fold
from .graph import Graph

_ROOTS = (
    ir.Convolution,
    ir.Deconvolution,
    ir.MatMul,
    ir.InnerProduct,
    ir.Pooling,
    ir.Eltwise,
    ir.Binary,
    ir.Reduction,
    ir.Resampling,
)
_COMMUTATIVE = ("add", "mul", "max", "min")
# oneDNN 3.2 takes at most 32 post-ops; long chains stop being one pass over registers well before.
MAX_POST_OPS = 16


def fuse(program: ir.Program, constants: list[np.ndarray]) -> tuple[ir.Program, list[np.ndarray]]:
    """Fold constants into weights, then fuse post-ops; returns the smaller program and its constants."""
    graph = Graph(program, constants)
    fold(graph)
    for at in range(len(graph.steps)):
        _fuse_step(graph, at)
    return graph.finish()


def _fuse_step(graph: Graph, at: int) -> None:
    step = graph.steps[at]
    if not step or step.post_ops:
        return
    if isinstance(step.attrs, ir.Eltwise):
        producer = graph.producer(step.operand("src"))
        _fuse_eltwise(graph, producer, at, step.attrs)
    elif isinstance(step.attrs, ir.Binary):
        candidates = []
        for role, other in (("src", "src1"), ("src1", "src")):
            if role == "src1" and step.attrs.algorithm not in _COMMUTATIVE:
                continue
            producer = graph.producer(step.operand(role))
            same_shape = graph.values[step.operand(role)].shape == graph.values[step.dst].shape
            if producer is not None and same_shape and _takes_post_op(graph, producer):
                candidates.append((producer, step.operand(other)))
        if candidates:
            producer, other_value = max(candidates)
            _append(graph, producer, at, ir.BinaryPostOp(step.attrs.algorithm, other_value))


def _fuse_eltwise(graph: Graph, producer: int | None, at: int, attrs: ir.Eltwise) -> None:
    root = graph.steps[producer] if producer is not None else None
    if producer is None or not root:
        return
    if isinstance(root.attrs, ir.BatchNormalization):
        if attrs.algorithm == "relu" and attrs.alpha == 0.0 and not root.attrs.relu:
            step = graph.steps[at]
            operands = (*root.operands[:-1], ir.Operand("dst", step.dst))  # type: ignore[union-attr]
            fused = replace(root, attrs=replace(root.attrs, relu=True), operands=operands)
            graph.merge(producer, at, fused)
    elif _takes_post_op(graph, producer):
        _append(graph, producer, at, ir.EltwisePostOp(attrs.algorithm, attrs.alpha, attrs.beta))


def _takes_post_op(graph: Graph, producer: int) -> bool:
    root = graph.steps[producer]
    return bool(root) and isinstance(root.attrs, _ROOTS) and len(root.post_ops) < MAX_POST_OPS  # type: ignore[union-attr]


def _append(graph: Graph, producer: int, at: int, post_op: ir.PostOp) -> None:
    root, step = graph.steps[producer], graph.steps[at]
    operands = tuple(
        ir.Operand("dst", step.dst) if operand.role == "dst" else operand  # type: ignore[union-attr]
        for operand in root.operands  # type: ignore[union-attr]
    )
    merged = replace(root, operands=operands, post_ops=(*root.post_ops, post_op))  # type: ignore[union-attr]
    graph.merge(producer, at, merged)  # type: ignore[arg-type]
