"""Counting the multiply-adds of steps; symbols count as 1."""

from __future__ import annotations

import math

from .program import program as ir
from .program.dims import Shape, at_ones


def of_program(program: ir.Program) -> int:
    """Multiply-adds of all steps of a region program."""
    return sum(of_step(program, step) for step in program.steps)


def of_step(program: ir.Program, step: ir.Step) -> int:
    """Multiply-adds of a product; 0 of all other steps, which memory bounds."""

    def shape(role: str) -> Shape:
        return program.values[step.operand(role)].shape

    attrs, dst = step.attrs, program.values[step.dst].shape
    if isinstance(attrs, ir.Deconvolution):
        # Filters are [G?, O, I, k...]: each element of the source meets those of its channel.
        outer, _, *window = shape("weights")[1 if attrs.groups > 1 else 0 :]
        return _size(shape("src")) * _size((outer, *window))
    if isinstance(attrs, ir.Convolution) and step.has_depthwise:
        # Pointwise at every position of the source, then depthwise at every position of dst.
        batch, _, *extents = shape("src")
        pointwise = _size((batch, *extents)) * _size(shape("weights"))
        return pointwise + _size(dst) * _size(shape("depthwise_weights")[2:])
    if isinstance(attrs, ir.Convolution):
        return _size(dst) * _size(shape("weights")[2 if attrs.groups > 1 else 1 :])
    if isinstance(attrs, ir.ConvolutionBackwardWeights):
        return _size(shape("gradient")) * _size(dst[2 if attrs.groups > 1 else 1 :])
    if isinstance(attrs, ir.MatMul | ir.FewBitsProduct | ir.GroupedProduct):
        return _size(dst) * _size(shape("src")[-1:])
    if isinstance(attrs, ir.InnerProduct):
        return _size(dst) * _size(shape("src")[1:])
    if isinstance(attrs, ir.Attention):
        query, value = shape("src"), shape("value")
        joins = any(operand.role == "joined_key" for operand in step.operands)
        keys = _size(shape("joined_key" if joins else "key")[2:3])
        return _size(query[:3]) * keys * (_size(query[3:]) + _size(value[3:]))
    if isinstance(attrs, ir.SqueezeExcite):
        gates = [operand.role for operand in step.operands if operand.role.endswith("weights")]
        return _size(dst[:1]) * sum(_size(shape(role)) for role in gates)
    if isinstance(attrs, ir.Recurrent):
        return _size(dst[:2]) * (_size(shape("weights")) + _size(shape("recurrence")))
    if isinstance(attrs, ir.RecurrentTraining | ir.RecurrentBackward):
        return _size(dst[:2]) * _size(shape("recurrence"))
    return 0


def _size(shape: Shape) -> int:
    return math.prod(at_ones(shape))
