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

_MIDDLE = "depthwise"


def parts_of(name: str) -> tuple[str, str]:
    """Names of the two steps that a pair becomes."""
    return name, f"{name}.{_MIDDLE}"


def split_pairs(program: ir.Program, kept: Collection[str] = ()) -> ir.Program:
    """The program with every pair as two steps, but those named in ``kept``."""
    values, steps = list(program.values), []
    for step in program.steps:
        if step.has_depthwise and step.name not in kept:
            steps += _split(values, step)
        else:
            steps.append(step)
    return replace(program, values=tuple(values), steps=tuple(steps))


def _split(values: list[ir.Value], step: ir.Step) -> tuple[ir.Step, ir.Step]:
    """Both steps; the value between them is added to ``values``."""
    source, result = values[step.operand("src")], values[step.dst]
    channels = result.shape[1]
    at = next(at for at, post_op in enumerate(step.post_ops) if isinstance(post_op, ir.DepthwisePostOp))
    pair = step.post_ops[at]
    assert isinstance(pair, ir.DepthwisePostOp) and isinstance(channels, int)
    values.append(
        ir.Value(
            step.name, (result.shape[0], channels, *source.shape[2:]), result.dtype, "local", result.layout
        )
    )
    middle = len(values) - 1
    first, second = parts_of(step.name)
    axes = len(result.shape) - 2
    attrs = ir.Convolution((pair.stride,) * axes, (pair.padding,) * (2 * axes), (1,) * axes, channels)
    own = [o for o in step.operands if not o.role.startswith(_MIDDLE) and o.role != "dst"]
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
