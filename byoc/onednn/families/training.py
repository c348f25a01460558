"""Batch norms in training and gradients of batch norms and pools: their checks and their steps."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.pooling_gradients import MAX_BACKWARD, Pool
from tvm_mxplan.operators.registration import shape_of

Match = Mapping[str, relax.Expr]


def ranks(match: Match) -> str | None:
    rank = len(shape_of(match["root"].args[0]))
    return None if 2 <= rank <= 5 else f"rank {rank}, batch norms are taken from 2 to 5"


def gated(match: Match) -> str | None:
    rank = len(shape_of(match["root"].args[0]))
    return None if 1 <= rank <= 5 else f"rank {rank}, gates are taken from 1 to 5"


def pool(match: Match) -> str | None:
    call = match["root"]
    windows, src, gradient = Pool.of(call), shape_of(call.args[0]), shape_of(call.args[1])
    if any(step != 1 for step in windows.dilation):
        return "a dilated window, for which oneDNN has reference code only"
    axes = range(len(windows.size))
    if any(windows.padding[at] >= windows.size[at % len(axes)] for at in range(2 * len(axes))):
        return f"padding {list(windows.padding)} is not smaller than the kernel {list(windows.size)}"
    if not MAX_BACKWARD.is_called(call) and bool(call.attrs["count_include_pad"]):
        for at in axes:
            before, behind = windows.padding[at], windows.padding[len(axes) + at]
            needed = (gradient[2 + at] - 1) * windows.strides[at] + windows.size[at]
            if needed > src[2 + at] + before + behind:
                return "average pooling that counts padding, with a window past the padded input"
    return None


def pooling_backward(c: Composite) -> int:
    windows = Pool.of(c.root)
    algorithm = "max"
    if not MAX_BACKWARD.is_called(c.root):
        counts = bool(c.root.attrs["count_include_pad"])
        algorithm = "avg_include_padding" if counts else "avg_exclude_padding"
    padding = windows.padding[: len(windows.size)]
    attrs = ir.PoolingBackward(algorithm, windows.size, windows.strides, padding, windows.dilation)
    src, gradient = (c.value(arg) for arg in c.root.args)
    return c.emit("pooling_backward", attrs, ("src", src), ("gradient", gradient))


def batch_norm(c: Composite) -> tuple[int, ...]:
    """The step, and running statistics beside it."""
    src, scale, shift, running_mean, running_variance = (c.value(arg) for arg in c.root.args)
    attrs, shape = c.root.attrs, c.builder.values[src].shape
    channels = (shape[1],)
    results = {"dst": shape, "batch_mean": channels, "batch_variance": channels}
    step = ir.BatchNormalizationTraining(float(attrs["epsilon"]))
    operands = [("src", src), ("scale", scale), ("shift", shift)]
    dst, mean, variance = c.builder.step_of_several("batch_norm", step, operands, results)
    momentum, correction = float(attrs["momentum"]), 1.0
    if bool(attrs["unbiased"]):
        terms = 1
        for extent in (shape[0], *shape[2:]):
            terms *= int(extent)  # type: ignore[arg-type]
        correction = terms / max(1, terms - 1)

    def running(old: int, new: int, share: float) -> int:
        kept = _scaled(c, old, 1 - momentum)
        operands = [("src", kept), ("src1", _scaled(c, new, share))]
        return c.builder.step("add", ir.Binary("add"), channels, operands)

    means = running(running_mean, mean, momentum)
    return dst, mean, variance, means, running(running_variance, variance, momentum * correction)


def _scaled(c: Composite, value: int, factor: float) -> int:
    attrs = ir.Eltwise("linear", factor, 0.0)
    return c.builder.step("multiply", attrs, c.builder.values[value].shape, [("src", value)])


def batch_norm_backward(c: Composite) -> tuple[int, ...]:
    roles = ("src", "gradient", "mean", "variance", "scale")
    operands = [(role, c.value(arg)) for role, arg in zip(roles, c.root.args, strict=True)]
    shape = c.builder.values[operands[0][1]].shape
    channels = (shape[1],)
    results = {"dst": shape, "scale_gradient": channels, "shift_gradient": channels}
    step = ir.BatchNormalizationBackward(float(c.root.attrs["epsilon"]))
    return tuple(c.builder.step_of_several("batch_norm_backward", step, operands, results))
