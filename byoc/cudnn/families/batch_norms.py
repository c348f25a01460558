"""Batch norms in training and their gradients: checks and steps.

    R.mxplan.batch_norm(src, scale, shift, old running mean and variance)
        -> dst, mean, variance, running mean and variance
    R.mxplan.batch_norm_backward(src, gradient, mean, variance, scale)
        -> gradients of src, scale and shift

cuDNN has 1 / sqrt(variance + epsilon) where Relax has variances, so a step of a few numbers stands behind the
one, and in front of the other.  Running statistics are a step of such numbers each as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.byoc.own_operators import running_statistics
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import is_static
from tvm_mxplan.passes.relax_types import dtype_of, shape_of

Match = Mapping[str, relax.Expr]


def tensors_ok(match: Match) -> str | None:
    """Types and shapes of what both operators read."""
    for arg in match["root"].args:
        shape, dtype = shape_of(arg), dtype_of(arg)
        if dtype != "float32":
            return f"element type {dtype or 'unknown'}, batch norms in training are taken in float32"
        if shape is None or not is_static(shape):
            return "a shape that is not known at compile time"
        if 0 in shape:
            return "an empty tensor"
    rank = len(shape_of(match["root"].args[0]))  # type: ignore[arg-type]
    return None if 2 <= rank <= 5 else f"rank {rank}, batch norms are taken from 2 to 5"


def batch_norm(c: Composite) -> tuple[int, ...]:
    src, scale, shift = (c.value(arg) for arg in c.root.args[:3])
    shape, epsilon = c.builder.values[src].shape, float(c.root.attrs["epsilon"])
    results = {"dst": shape, "batch_mean": (shape[1],), "batch_variance": (shape[1],)}
    attrs = ir.BatchNormalizationTraining(epsilon, inverse=True)
    operands = [("src", src), ("scale", scale), ("shift", shift)]
    dst, mean, inverse = c.builder.step_of_several("batch_norm", attrs, operands, results)
    # Rounding may lead below 0, where no variance is.
    behind = (ir.EltwisePostOp("linear", 1.0, -epsilon), ir.EltwisePostOp("relu", 0.0, 0.0))
    square = ir.Eltwise("pow", 1.0, -2.0)
    variance = c.builder.step("variance", square, (shape[1],), [("src", inverse)], post_ops=behind)
    return dst, mean, variance, *running_statistics(c, mean, variance)


def batch_norm_backward(c: Composite) -> tuple[int, ...]:
    src, gradient, mean, variance, scale = (c.value(arg) for arg in c.root.args)
    shape, epsilon = c.builder.values[src].shape, float(c.root.attrs["epsilon"])
    channels = (shape[1],)
    moved, root = ir.Eltwise("linear", 1.0, epsilon), (ir.EltwisePostOp("rsqrt", 0.0, 0.0),)
    inverse = c.builder.step("inverse", moved, channels, [("src", variance)], post_ops=root)
    operands = [("src", src), ("gradient", gradient), ("mean", mean), ("variance", inverse), ("scale", scale)]
    results = {"dst": shape, "scale_gradient": channels, "shift_gradient": channels}
    attrs = ir.BatchNormalizationBackward(epsilon, inverse=True)
    return tuple(c.builder.step_of_several("batch_norm_backward", attrs, operands, results))
