"""Pointwise convolutions with a depthwise one behind them, taken apart again.

Before   v2 = convolution(x, w, depthwise_weights=d) post_ops=[clip, depthwise 3x3, relu]
After    v1 = convolution(x, w) post_ops=[clip];  v2 = convolution(v1, d) groups=channels post_ops=[relu]

The pair is one step because its middle is large in float32.  In a shorter type it is smaller, and oneDNN runs
such a pair as two primitives with the middle in a scratchpad of float32.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.graph import Graph

_MIDDLE = "depthwise"


def parts_of(name: str) -> tuple[str, str]:
    """Names of the two steps that a pair becomes."""
    return name, f"{name}.{_MIDDLE}"


def split_pairs(program: ir.Program, kept: Collection[str] = ()) -> ir.Program:
    """The program with every pair as two steps, but those named in ``kept``."""
    graph = Graph(program)
    for at, step in enumerate(program.steps):
        if step.has_depthwise and step.name not in kept:
            first, second = _split(graph, step)
            graph.replace(at, first)
            graph.insert_after(at, second)
    return graph.finish()


def _split(graph: Graph, step: ir.Step) -> tuple[ir.Step, ir.Step]:
    """Both steps; the value between them is added to the graph."""
    source, result = graph.values[step.operand("src")], graph.values[step.dst]
    channels = result.shape[1]
    at = next(at for at, post_op in enumerate(step.post_ops) if isinstance(post_op, ir.DepthwisePostOp))
    pair = step.post_ops[at]
    assert isinstance(pair, ir.DepthwisePostOp) and isinstance(channels, int)
    shape = (result.shape[0], channels, *source.shape[2:])
    middle = graph.add(ir.Value(step.name, shape, result.dtype, "local", result.layout))
    first, second = parts_of(step.name)
    axes = len(result.shape) - 2
    attrs = ir.Convolution((pair.stride,) * axes, (pair.padding,) * (2 * axes), (1,) * axes, channels)
    own = [o for o in step.operands if not o.role.startswith(_MIDDLE) and not o.is_result]
    behind = [
        ir.Operand(o.role.removeprefix(f"{_MIDDLE}_"), o.value)
        for o in step.operands
        if o.role.startswith(_MIDDLE)
    ]
    return (
        replace(step, name=first, operands=(*own, ir.Operand("dst", middle)), post_ops=step.post_ops[:at]),
        ir.Step(
            second,
            attrs,
            (ir.Operand("src", middle), *behind, ir.Operand("dst", step.dst)),
            step.post_ops[at + 1 :],
        ),
    )
