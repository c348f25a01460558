"""Recurrent layers: which of them oneDNN has, and the step that one becomes.

Gates are put into oneDNN's order, and both halves of the bias added: now where they are constants, which are
then packed once, when the region is loaded; else by steps of their own in front of the layer's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from tvm import relax

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Shape, is_static, static_shape
from tvm_mxplan.operators.recurrent import GATES, USUAL, Activation, Layer, layer_of, operands_of
from tvm_mxplan.passes.relax_types import constant_of, dtype_of, shape_of, static_shape_of

from ..checks import Match, tensors_ok

_GATES = {"lstm": (0, 2, 3, 1), "gru": (0, 1, 2), "rnn": (0,)}
"""Places of oneDNN's gates among ONNX's: i, f, c, o of i, o, f, c."""
_PEEPHOLES = (0, 2, 1)
"""i, f, o of i, o, f."""


def check(match: Match) -> str | None:
    """None, or the part of the layer that oneDNN lacks."""
    call = match["root"]
    layer, operands = layer_of(call), operands_of(call)
    if "lengths" in operands:
        return "sequences of several lengths: oneDNN runs all steps of all samples"
    reason = tensors_ok(match)
    if reason is not None:
        return reason
    alone = ("hidden" in operands) != ("cell" in operands)
    if layer.kind == "lstm" and alone and not is_static(shape_of(operands["data"])):  # type: ignore[arg-type]
        return "one of two states for an unknown number of samples"
    return _unlike(layer)


def _unlike(layer: Layer) -> str | None:
    if layer.clip:
        return f"gates clipped to {-layer.clip:g} to {layer.clip:g}: oneDNN has no clip"
    if layer.coupled:
        return "a forget gate that is coupled to the input gate"
    if cell_of(layer) is None:
        names = ", ".join(one.name for one in layer.activations)
        expected = ", ".join(one.name for one in USUAL[layer.kind])
        return f"activations {names}, oneDNN has {expected}" + (" or relu" if layer.kind == "rnn" else "")
    return None


def cell_of(layer: Layer) -> ir.RecurrentCell | None:
    """The cell in a region program; None where it has none like that."""
    if layer.kind == "rnn" and layer.activations == (Activation("relu"),) * layer.directions:
        return "relu"
    if not layer.is_usual:
        return None
    if layer.kind == "gru":
        return "gru_linear" if layer.linear else "gru"
    return "lstm" if layer.kind == "lstm" else "tanh"


def translate(c: Composite) -> tuple[int, ...]:
    """The layer's step; the values of its results."""
    layer = layer_of(c.root)
    given = {name: c.definition(value) for name, value in operands_of(c.root).items()}
    cell = cell_of(layer)
    assert cell is not None
    src = c.value(given["data"])
    steps, samples, _ = c.builder.values[src].shape
    units = static_shape_of(given["recurrence"])[2]
    state = (1, layer.directions, samples, units)
    operands = [("src", src)]
    operands += [(role, _weights(c, layer, given[role])) for role in ("weights", "recurrence")]
    operands.append(("bias", _bias(c, layer, given.get("bias"), units)))
    if "peepholes" in given:
        peepholes = _seen(c, given["peepholes"], (1, layer.directions, 3, units))
        operands.append(("peepholes", _in_order(c, peepholes, _PEEPHOLES)))
    operands += _states(c, layer, given, state)
    results = {"dst": (steps, samples, layer.directions * units), "last_hidden": state}
    if layer.kind == "lstm":
        results["last_cell"] = state
    attrs = ir.Recurrent(cell, layer.direction)
    dst, *last = c.builder.step_of_several("recurrent", attrs, operands, results)
    return (dst, *(c.builder.reshape(value, state[1:]) for value in last))


Tensor: TypeAlias = np.ndarray | int
"""Numbers, or a value that the region computes or is given."""


def _weights(c: Composite, layer: Layer, expr: relax.Expr) -> int:
    """Weights (layers, directions, inputs, gates, units); constants stored as they came but for the gates."""
    gates = GATES[layer.kind]
    _, rows, inputs = static_shape_of(expr)
    apart = _seen(c, expr, (1, layer.directions, gates, rows // gates, inputs))
    value = c.builder.permute(_in_order(c, apart, _GATES[layer.kind]), (0, 1, 4, 2, 3))
    return value if isinstance(apart, np.ndarray) else c.builder.plain_copy(value)


def _bias(c: Composite, layer: Layer, given: relax.Expr | None, units: int) -> int:
    """One bias for each gate; that of the candidate in two where only one half is reset.

    Zeros where there is none: without a bias oneDNN 3.2 has no kernel for most layers.
    """
    gates, order = GATES[layer.kind], _GATES[layer.kind]
    shape = (1, layer.directions, 2 * gates, units)
    halves = np.zeros(shape, "float32") if given is None else _seen(c, given, shape)
    linear = layer.linear and layer.kind == "gru"
    if isinstance(halves, np.ndarray):
        whole = halves[:, :, :gates] + halves[:, :, gates:]
        pieces = [whole[:, :, :2], halves[:, :, 2:3], halves[:, :, -1:]] if linear else [whole[:, :, order]]
        return c.builder.constant(np.ascontiguousarray(np.concatenate(pieces, 2)))
    first, second = _slice(c, halves, 0, gates), _slice(c, halves, gates, gates)
    operands = [("src", first), ("src1", second)]
    both = c.builder.step("add", ir.Binary("add"), c.builder.values[first].shape, operands)
    if not linear:
        return _in_order(c, both, order)
    return _joined(c, [_slice(c, both, 0, 2), _slice(c, first, 2, 1), _slice(c, second, 2, 1)])


def _seen(c: Composite, expr: relax.Expr, shape: Shape) -> Tensor:
    array = constant_of(expr)
    if array is None:
        return c.builder.reshape(c.value(expr), shape)
    return array.reshape(static_shape(shape))


def _in_order(c: Composite, tensor: Tensor, order: Sequence[int]) -> int:
    """The tensor with the parts along its third axis in another order, as a value."""
    ordered = list(order) == sorted(order)
    if isinstance(tensor, np.ndarray):
        return c.builder.constant(tensor if ordered else np.ascontiguousarray(tensor[:, :, order]))
    return tensor if ordered else _joined(c, [_slice(c, tensor, at, 1) for at in order])


def _slice(c: Composite, value: int, begin: int, count: int) -> int:
    shape = c.builder.values[value].shape
    attrs = ir.Slice((0, 0, begin, *[0] * len(shape[3:])))
    return c.builder.step("slice", attrs, (*shape[:2], count, *shape[3:]), [("src", value)])


def _joined(c: Composite, parts: Sequence[int]) -> int:
    shapes = [c.builder.values[part].shape for part in parts]
    count = sum(static_shape(tuple(shape[2] for shape in shapes)))
    shape = (*shapes[0][:2], count, *shapes[0][3:])
    return c.builder.step("concat", ir.Concat(2), shape, [("src", part) for part in parts])


def _states(
    c: Composite, layer: Layer, given: Mapping[str, relax.Expr], shape: Shape
) -> list[tuple[str, int]]:
    """The states before the first step: of an LSTM both, or none."""
    roles = [role for role in ("hidden", "cell") if role in given]
    if not roles:
        return []
    wanted = ("hidden", "cell") if layer.kind == "lstm" else ("hidden",)
    return [
        (
            role,
            c.builder.reshape(c.value(given[role]), shape)
            if role in roles
            else c.builder.constant(np.zeros(static_shape(shape), dtype_of(given["data"]))),
        )
        for role in wanted
    ]
