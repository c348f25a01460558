"""Recurrent layers: which of them oneDNN has, and the step that one becomes.

Gates are put into oneDNN's order here, and both halves of the bias added: weights have to be constants.  They
are packed once, when the region is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tvm import relax

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.core import program as ir
from tvm_mxplan.core.dims import is_static
from tvm_mxplan.operators.recurrent import GATES, USUAL, Activation, Layer, layer_of, operands_of
from tvm_mxplan.passes.relax_types import constant_of, dtype_of, is_constant, shape_of

from .checks import Match, tensors_ok

_GATES = {"lstm": (0, 2, 3, 1), "gru": (0, 1, 2), "rnn": (0,)}
"""Places of oneDNN's gates among ONNX's: i, f, c, o of i, o, f, c."""
_PEEPHOLES = (0, 2, 1)
"""i, f, o of i, o, f."""
_CONSTANTS = ("weights", "recurrence", "bias", "peepholes")


def check(match: Match) -> str | None:
    """None, or what oneDNN has not got of the layer."""
    call = match["root"]
    layer, operands = layer_of(call), operands_of(call)
    if "lengths" in operands:
        return "sequences of several lengths: oneDNN runs all steps of all samples"
    reason = tensors_ok(match)
    if reason is not None:
        return reason
    for name in _CONSTANTS:
        if name in operands and not is_constant(operands[name]):
            return f"{name} that the model computes, expected a constant"
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
    units = int(shape_of(given["recurrence"])[2])  # type: ignore[index,arg-type]
    state = (1, layer.directions, samples, units)
    operands = [("src", src)]
    operands += [(role, _weights(c, layer, given[role])) for role in ("weights", "recurrence")]
    operands.append(("bias", c.builder.constant(_bias(layer, given.get("bias"), units))))
    if "peepholes" in given:
        array = _array(given["peepholes"]).reshape(1, layer.directions, 3, units)[:, :, _PEEPHOLES]
        operands.append(("peepholes", c.builder.constant(np.ascontiguousarray(array))))
    operands += _states(c, layer, given, state)
    results = {"dst": (steps, samples, layer.directions * units), "last_hidden": state}
    if layer.kind == "lstm":
        results["last_cell"] = state
    attrs = ir.Recurrent(cell, layer.direction)
    dst, *last = c.builder.step_of_several("recurrent", attrs, operands, results)
    return (dst, *(c.builder.reshape(value, state[1:]) for value in last))


def _weights(c: Composite, layer: Layer, expr: relax.Expr) -> int:
    """Weights (layers, directions, inputs, gates, units), stored as they came but for the order of gates."""
    array = _array(expr)
    gates = GATES[layer.kind]
    apart = array.reshape(1, layer.directions, gates, -1, array.shape[2])
    order = _GATES[layer.kind]
    if order != tuple(range(gates)):
        apart = np.ascontiguousarray(apart[:, :, order])
    return c.builder.permute(c.builder.constant(apart), (0, 1, 4, 2, 3))


def _bias(layer: Layer, given: relax.Expr | None, units: int) -> np.ndarray:
    """One bias for each gate; that of the candidate in two where only one half is reset.

    Zeros where there is none: without a bias oneDNN 3.2 has no kernel for most layers.
    """
    gates = GATES[layer.kind]
    bias = np.zeros(layer.directions * 2 * gates * units, "float32") if given is None else _array(given)
    first, second = np.split(bias.reshape(1, layer.directions, 2 * gates, -1), 2, axis=2)
    if layer.linear and layer.kind == "gru":
        whole = np.concatenate([(first + second)[:, :, :2], first[:, :, 2:], second[:, :, 2:]], axis=2)
    else:
        whole = (first + second)[:, :, _GATES[layer.kind]]
    return np.ascontiguousarray(whole, dtype=bias.dtype)


def _states(
    c: Composite, layer: Layer, given: Mapping[str, relax.Expr], shape: ir.Shape
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
            else c.builder.constant(np.zeros(shape, dtype_of(given["data"]))),  # type: ignore[arg-type]
        )
        for role in wanted
    ]


def _array(expr: relax.Expr) -> np.ndarray:
    array = constant_of(expr)
    assert array is not None
    return array
