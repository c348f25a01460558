"""Recurrent layers, step after step, with the error that each step inherits."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..estimate import Array, Estimate
from .inherited import Off, exactly, product, product_of, sigmoid, tanh
from .operands import Operands

_SHORT = 2.0**-7
"""Relative error of a state rounded to bfloat16, twice: those of a few units may all be of one sign."""


class _Direction(NamedTuple):
    """One direction: weights as (inputs, gates, units), bias, peepholes, and states to start from.

    ``rounding`` is the relative error of a state that is multiplied: short weights meet it rounded.
    """

    weights: Array
    recurrence: Array
    bias: Array
    peepholes: Array
    hidden: Off
    cell: Off
    rounding: float


def recurrent(attrs: ir.Recurrent, operands: Operands) -> dict[str, Estimate]:
    """All outputs, and the states behind the last step, by role."""
    src = operands.src
    outputs, hidden, cell = [], [], []
    for at in range(2 if attrs.direction == "both" else 1):
        direction = _direction(operands, at)
        backwards = attrs.direction == "reverse" or at == 1
        rows, last = _run(attrs.cell, src[::-1] if backwards else src, direction)
        outputs.append(rows[::-1] if backwards else rows)
        hidden.append(last[0])
        cell.append(last[1])
    value, error = (
        np.concatenate(
            [np.array([row[part] for row in rows]).reshape(*src.shape[:2], -1) for rows in outputs], 2
        )
        for part in (0, 1)
    )
    states = {"last_hidden": hidden, "last_cell": cell}
    return {"dst": Estimate(value, error)} | {
        role: Estimate(*(np.stack([one[part] for one in found])[None] for part in (0, 1)))
        for role, found in states.items()
    }


def _direction(operands: Operands, at: int) -> _Direction:
    def part(role: str, shape: tuple[int, ...]) -> Array:
        given = operands.get(role)
        return np.zeros(shape) if given is None else given[0, at]

    weights, recurrence = operands["weights"][0, at], operands["recurrence"][0, at]
    units = recurrence.shape[0]
    state = (operands.src.shape[1], units)
    hidden, cell = (Off(part(role, state), np.zeros(state)) for role in ("hidden", "cell"))
    # A GRU that resets behind the product has one bias more than gates.
    bias = part("bias", (recurrence.shape[1] + 1, units))
    rounding = _SHORT if "recurrence" in operands.short else 0.0
    return _Direction(weights, recurrence, bias, part("peepholes", (3, units)), hidden, cell, rounding)


def _run(cell: str, src: Array, direction: _Direction) -> tuple[list[Off], tuple[Off, Off]]:
    step = _CELLS[cell]
    rows, states = [], (direction.hidden, direction.cell)
    for features in src:
        states = step(direction, features, *states)
        rows.append(states[0])
    return rows, states


def _row(direction: _Direction, features: Array, hidden: Off, gate: int) -> Off:
    """One gate's sum over features, state and bias."""
    inner = product(features, direction.weights[:, gate])
    return inner + _recurrent(direction, hidden, gate) + exactly(direction.bias[gate])


def _recurrent(direction: _Direction, hidden: Off, gate: int) -> Off:
    rounded = Off(hidden.value, hidden.error + direction.rounding * np.abs(hidden.value))
    return product_of(rounded, direction.recurrence[:, gate])


def _relu(x: Off) -> Off:
    return Off(np.maximum(x.value, 0), np.where(x.value + x.error > 0, x.error, 0.0))


def _lstm(d: _Direction, features: Array, hidden: Off, cell: Off) -> tuple[Off, Off]:
    into, forget, candidate, out = (_row(d, features, hidden, gate) for gate in range(4))
    peeping = [exactly(row) for row in d.peepholes]
    into, forget = into + peeping[0].times(cell), forget + peeping[1].times(cell)
    now = sigmoid(forget).times(cell) + sigmoid(into).times(tanh(candidate))
    return sigmoid(out + peeping[2].times(now)).times(tanh(now)), now


def _gru(d: _Direction, features: Array, hidden: Off, cell: Off) -> tuple[Off, Off]:
    update, reset = (sigmoid(_row(d, features, hidden, gate)) for gate in range(2))
    return _mixed(update, hidden, tanh(_row(d, features, reset.times(hidden), 2))), cell


def _gru_linear(d: _Direction, features: Array, hidden: Off, cell: Off) -> tuple[Off, Off]:
    update, reset = (sigmoid(_row(d, features, hidden, gate)) for gate in range(2))
    recurrent = _recurrent(d, hidden, 2) + exactly(d.bias[3])
    fresh = product(features, d.weights[:, 2]) + exactly(d.bias[2])
    return _mixed(update, hidden, tanh(fresh + reset.times(recurrent))), cell


def _mixed(update: Off, hidden: Off, candidate: Off) -> Off:
    return update.times(hidden) + update.from_one().times(candidate)


def _plain(function: Callable[[Off], Off]) -> _Cell:
    return lambda d, features, hidden, cell: (function(_row(d, features, hidden, 0)), cell)


_Cell = Callable[[_Direction, Array, Off, Off], tuple[Off, Off]]
_CELLS: dict[str, _Cell] = {
    "lstm": _lstm,
    "gru": _gru,
    "gru_linear": _gru_linear,
    "tanh": _plain(tanh),
    "relu": _plain(_relu),
}
