"""Recurrent layers, step after step, with the error that each step inherits.

A state is off by what the row it is made of is off by, through the slope of its activation.  Errors of many
units that meet in one product are of either sign, as roundings are: they add up by their squares, like the
terms of a sum do in ``estimate.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from tvm_mxplan.core.program import program as ir

from ..estimate import UNIT_ROUNDOFF, Array, Estimate, gamma
from .elementwise import FUNCTIONS
from .operands import Operands


class _Off(NamedTuple):
    """Numbers, and how far off they may be."""

    value: Array
    error: Array

    def __add__(self, other: _Off) -> _Off:  # type: ignore[override]
        value = self.value + other.value
        return _Off(value, self.error + other.error + UNIT_ROUNDOFF * np.abs(value))

    def times(self, other: _Off) -> _Off:
        value = self.value * other.value
        error = np.abs(self.value) * other.error + np.abs(other.value) * self.error
        return _Off(value, error + self.error * other.error + UNIT_ROUNDOFF * np.abs(value))

    def from_one(self) -> _Off:
        return _Off(1 - self.value, self.error + UNIT_ROUNDOFF)


class _Direction(NamedTuple):
    """One direction: weights as (inputs, gates, units), bias, peepholes, and states to start from."""

    weights: Array
    recurrence: Array
    bias: Array
    peepholes: Array
    hidden: _Off
    cell: _Off


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
    hidden, cell = (_Off(part(role, state), np.zeros(state)) for role in ("hidden", "cell"))
    # A GRU that resets behind the product has one bias more than gates.
    bias = part("bias", (recurrence.shape[1] + 1, units))
    return _Direction(weights, recurrence, bias, part("peepholes", (3, units)), hidden, cell)


def _run(cell: str, src: Array, direction: _Direction) -> tuple[list[_Off], tuple[_Off, _Off]]:
    step = _CELLS[cell]
    rows, states = [], (direction.hidden, direction.cell)
    for features in src:
        states = step(direction, features, *states)
        rows.append(states[0])
    return rows, states


def _row(direction: _Direction, features: Array, hidden: _Off, gate: int) -> _Off:
    """One gate's sum over features, state and bias."""
    inner = _product(features, direction.weights[:, gate])
    return inner + _recurrent(direction, hidden, gate) + _exactly(direction.bias[gate])


def _product(features: Array, weights: Array) -> _Off:
    size = np.abs(features) @ np.abs(weights)
    return _Off(features @ weights, gamma(weights.shape[0] + 1) * size)


def _recurrent(direction: _Direction, hidden: _Off, gate: int) -> _Off:
    weights = direction.recurrence[:, gate]
    value, rounding = _product(hidden.value, weights)
    return _Off(value, rounding + np.sqrt(np.square(hidden.error) @ np.square(weights)))


def _exactly(value: Array) -> _Off:
    return _Off(value, np.zeros_like(value))


def _sigmoid(x: _Off) -> _Off:
    near = special.expit(np.maximum(np.abs(x.value) - x.error, 0))
    value = special.expit(x.value)
    return _Off(value, near * (1 - near) * x.error + FUNCTIONS["logistic"].relative * value)


def _tanh(x: _Off) -> _Off:
    near = np.tanh(np.maximum(np.abs(x.value) - x.error, 0))
    value = np.tanh(x.value)
    return _Off(value, (1 - near * near) * x.error + FUNCTIONS["tanh"].relative * np.abs(value))


def _relu(x: _Off) -> _Off:
    return _Off(np.maximum(x.value, 0), np.where(x.value + x.error > 0, x.error, 0.0))


def _lstm(d: _Direction, features: Array, hidden: _Off, cell: _Off) -> tuple[_Off, _Off]:
    into, forget, candidate, out = (_row(d, features, hidden, gate) for gate in range(4))
    peeping = [_exactly(row) for row in d.peepholes]
    into, forget = into + peeping[0].times(cell), forget + peeping[1].times(cell)
    now = _sigmoid(forget).times(cell) + _sigmoid(into).times(_tanh(candidate))
    return _sigmoid(out + peeping[2].times(now)).times(_tanh(now)), now


def _gru(d: _Direction, features: Array, hidden: _Off, cell: _Off) -> tuple[_Off, _Off]:
    update, reset = (_sigmoid(_row(d, features, hidden, gate)) for gate in range(2))
    return _mixed(update, hidden, _tanh(_row(d, features, reset.times(hidden), 2))), cell


def _gru_linear(d: _Direction, features: Array, hidden: _Off, cell: _Off) -> tuple[_Off, _Off]:
    update, reset = (_sigmoid(_row(d, features, hidden, gate)) for gate in range(2))
    recurrent = _recurrent(d, hidden, 2) + _exactly(d.bias[3])
    fresh = _product(features, d.weights[:, 2]) + _exactly(d.bias[2])
    return _mixed(update, hidden, _tanh(fresh + reset.times(recurrent))), cell


def _mixed(update: _Off, hidden: _Off, candidate: _Off) -> _Off:
    return update.times(hidden) + update.from_one().times(candidate)


def _plain(function: Callable[[_Off], _Off]) -> _Cell:
    return lambda d, features, hidden, cell: (function(_row(d, features, hidden, 0)), cell)


_Cell = Callable[[_Direction, Array, _Off, _Off], tuple[_Off, _Off]]
_CELLS: dict[str, _Cell] = {
    "lstm": _lstm,
    "gru": _gru,
    "gru_linear": _gru_linear,
    "tanh": _plain(_tanh),
    "relu": _plain(_relu),
}
