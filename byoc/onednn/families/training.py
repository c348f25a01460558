"""Batch norms and recurrent layers in training, gradients of these and of pools: checks and steps."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.byoc.own_operators import running_statistics
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Shape
from tvm_mxplan.operators.pooling_gradients import MAX_BACKWARD, Pool
from tvm_mxplan.operators.recurrent_training import KEPT, TrainedLayer, named_operands
from tvm_mxplan.operators.registration import shape_of

from .rows import in_rows

Match = Mapping[str, relax.Expr]


def ranks(match: Match) -> str | None:
    rank = len(shape_of(match["root"].args[0]))
    return None if 2 <= rank <= 5 else f"rank {rank}, batch norms are taken from 2 to 5"


def rows(match: Match) -> str | None:
    rank = len(shape_of(match["root"].args[0]))
    return None if 2 <= rank <= 5 else f"rank {rank}, gradients of layer norms are taken from 2 to 5"


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
    src, scale, shift = (c.value(arg) for arg in c.root.args[:3])
    shape = c.builder.values[src].shape
    channels = (shape[1],)
    results = {"dst": shape, "batch_mean": channels, "batch_variance": channels}
    step = ir.BatchNormalizationTraining(float(c.root.attrs["epsilon"]))
    operands = [("src", src), ("scale", scale), ("shift", shift)]
    dst, mean, variance = c.builder.step_of_several("batch_norm", step, operands, results)
    return dst, mean, variance, *running_statistics(c, mean, variance)


def batch_norm_backward(c: Composite) -> tuple[int, ...]:
    roles = ("src", "gradient", "mean", "variance", "scale")
    operands = [(role, c.value(arg)) for role, arg in zip(roles, c.root.args, strict=True)]
    shape = c.builder.values[dict(operands)["src"]].shape
    channels = (shape[1],)
    results = {"dst": shape, "scale_gradient": channels, "shift_gradient": channels}
    step = ir.BatchNormalizationBackward(float(c.root.attrs["epsilon"]))
    return tuple(c.builder.step_of_several("batch_norm_backward", step, operands, results))


def layer_norm_backward(c: Composite) -> tuple[int, ...]:
    src, gradient, scale = (c.value(arg) for arg in c.root.args)
    shape = c.builder.values[src].shape
    flat, last = in_rows(shape, 1), (shape[-1],)
    operands = [(role, c.builder.reshape(one, flat)) for role, one in (("src", src), ("gradient", gradient))]
    operands.append(("scale", scale))
    results = {"dst": flat, "scale_gradient": last, "shift_gradient": last}
    step = ir.LayerNormalizationBackward(float(c.root.attrs["epsilon"]))
    dst, *others = c.builder.step_of_several("layer_norm_backward", step, operands, results)
    return (c.builder.reshape(dst, shape), *others)


def recurrent(c: Composite) -> tuple[int, ...]:
    """All steps of a recurrent layer, whose gates are kept."""
    layer, operands = _recurrent_operands(c, {"products": "src"})
    found, values = dict(operands), c.builder.values
    steps, samples, _ = values[found["src"]].shape
    directions, _, units = values[found["recurrence"]].shape
    every = (steps, samples, int(directions) * int(units))  # type: ignore[arg-type]
    results: dict[str, Shape] = {"dst": every, "kept_gates": (*every[:2], KEPT * every[2])}
    if layer.is_lstm:
        results |= {"kept_cells": every, "last_cell": (directions, samples, units)}
    attrs = ir.RecurrentTraining(layer.cell, layer.direction, layer.places)
    return tuple(c.builder.step_of_several("recurrent_training", attrs, operands, results))


def recurrent_backward(c: Composite) -> tuple[int, ...]:
    layer, operands = _recurrent_operands(c, {"gates": "src"})
    found = dict(operands)
    values = c.builder.values
    steps, samples, outputs = values[found["outputs"]].shape
    directions, _, units = values[found["recurrence"]].shape
    state = (directions, samples, units)
    products = (steps, samples, len(layer.places) * int(outputs))  # type: ignore[arg-type]
    results: dict[str, Shape] = {"dst": products, "hidden_gradient": state}
    if layer.is_lstm:
        results["cell_gradient"] = state
    elif layer.cell == "gru_linear":
        results["reset_gradient"] = (steps, samples, outputs)
    attrs = ir.RecurrentBackward(layer.cell, layer.direction, layer.places)
    return tuple(c.builder.step_of_several("recurrent_backward", attrs, operands, results))


def _recurrent_operands(c: Composite, roles: Mapping[str, str]) -> tuple[TrainedLayer, list[tuple[str, int]]]:
    operands = [
        (roles.get(name, name), c.value(c.definition(expr))) for name, expr in named_operands(c.root).items()
    ]
    return TrainedLayer.of(c.root), operands
