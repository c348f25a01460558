"""Recurrent layers in training and their gradients, step after step, with the error that each inherits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..estimate import Array, Estimate
from .inherited import Off, exactly, product_of, sigmoid, tanh
from .operands import Operands

_KEPT = 4
Attributes = ir.RecurrentTraining | ir.RecurrentBackward


class _Direction(NamedTuple):
    """One direction of a layer; states are those before its first step."""

    attrs: Attributes
    at: int
    recurrence: Array
    hidden: Off
    cell: Off

    @classmethod
    def of(cls, attrs: Attributes, operands: Operands, at: int, samples: int) -> _Direction:
        recurrence = operands["recurrence"][at]
        zeros = np.zeros((samples, recurrence.shape[1]))
        states = []
        for role in ("hidden", "cell"):
            given = operands.get(role)
            states.append(exactly(zeros if given is None else given[at]))
        return cls(attrs, at, recurrence, states[0], states[1])

    @property
    def units(self) -> int:
        return int(self.recurrence.shape[1])

    @property
    def linear(self) -> bool:
        return self.attrs.cell == "gru_linear"

    def steps(self, count: int) -> range:
        """The steps in the direction's order."""
        backwards = self.attrs.direction == "reverse" or self.at == 1
        return range(count)[::-1] if backwards else range(count)

    def rows(self, array: Array, step: int, count: int = 1) -> list[Array]:
        """Rows of units of a step of a tensor that has ``count`` for each direction."""
        begin = self.at * count * self.units
        return np.split(array[step][:, begin : begin + count * self.units], count, 1)

    def before(self, array: Array | None, step: int | None, start: Off) -> Off:
        """A tensor's part of a step; without a step, the state that the first one starts from."""
        return start if step is None or array is None else exactly(self.rows(array, step)[0])

    def gates(self, array: Array, step: int) -> list[Array]:
        """Rows of gates in the cell's order."""
        found = self.rows(array, step, len(self.attrs.places))
        return [found[place] for place in self.attrs.places]

    def weights(self, gate: int) -> Array:
        """[units of the gate, units]"""
        begin = self.attrs.places[gate] * self.units
        return self.recurrence[begin : begin + self.units]


def forward(attrs: ir.RecurrentTraining, operands: Operands) -> dict[str, Estimate]:
    """All outputs, what is kept of all steps, and an LSTM's last cell, by role."""
    src = operands.src
    steps, samples, _ = src.shape
    found: list[dict[str, list[Off]]] = []
    last: list[Off] = []
    for at in range(operands["recurrence"].shape[0]):
        d = _Direction.of(attrs, operands, at, samples)
        bias = operands.get("bias")
        own_bias = exactly(np.zeros(d.units) if bias is None else bias[at])
        rows: dict[int, dict[str, Off]] = {}
        hidden, cell = d.hidden, d.cell
        for step in d.steps(steps):
            given = [exactly(row) for row in d.gates(src, step)]
            if attrs.cell == "lstm":
                hidden, cell, kept = _lstm(d, given, hidden, cell)
            else:
                hidden, kept = _gru(d, given, hidden, own_bias)
            rows[step] = {"dst": hidden, "kept_gates": _beside(kept), "kept_cells": cell}
        found.append({role: [rows[step][role] for step in range(steps)] for role in rows[0]})
        last.append(cell)
    results = {role: _every([one[role] for one in found]) for role in found[0]}
    return results | {"last_cell": _stacked(last)}


def _sums(d: _Direction, given: Sequence[Off], hidden: Off, gate: int) -> Off:
    return given[gate] + product_of(hidden, d.weights(gate).T)


def _lstm(d: _Direction, given: Sequence[Off], hidden: Off, cell: Off) -> tuple[Off, Off, list[Off]]:
    into, out, keep = (sigmoid(_sums(d, given, hidden, gate)) for gate in range(3))
    fresh = tanh(_sums(d, given, hidden, 3))
    now = keep.times(cell) + into.times(fresh)
    return out.times(tanh(now)), now, [into, out, keep, fresh]


def _gru(d: _Direction, given: Sequence[Off], hidden: Off, bias: Off) -> tuple[Off, list[Off]]:
    update, reset = (sigmoid(_sums(d, given, hidden, gate)) for gate in range(2))
    if d.linear:
        gated = product_of(hidden, d.weights(2).T) + bias
        fresh = tanh(given[2] + reset.times(gated))
    else:
        gated = reset.times(hidden)
        fresh = tanh(_sums(d, given, gated, 2))
    new = update.times(hidden) + update.from_one().times(fresh)
    return new, [update, reset, fresh, gated]


def backward(attrs: ir.RecurrentBackward, operands: Operands) -> dict[str, Estimate]:
    """Gradients of all sums, of the first states, and of what a linear GRU resets, by role."""
    outputs = operands["outputs"]
    steps, samples, _ = outputs.shape
    sums: list[list[Off]] = []
    resets: list[list[Off]] = []
    states: dict[str, list[Off]] = {"hidden_gradient": [], "cell_gradient": []}
    for at in range(operands["recurrence"].shape[0]):
        d = _Direction.of(attrs, operands, at, samples)
        order = list(d.steps(steps))
        given = operands.get("last_cell_gradient")
        hidden = exactly(np.zeros((samples, d.units)))
        cell = exactly(np.zeros((samples, d.units)) if given is None else given[at])
        rows: dict[int, tuple[Off, Off]] = {}
        for number in reversed(range(steps)):
            step = order[number]
            gates = [exactly(row) for row in d.rows(operands.src, step, _KEPT)]
            arriving = hidden + exactly(d.rows(operands["gradient"], step)[0])

            last = order[number - 1] if number else None
            if attrs.cell == "lstm":
                now = exactly(d.rows(operands["cells"], step)[0])
                own, cell = _lstm_back(
                    gates, arriving, cell, now, d.before(operands.get("cells"), last, d.cell)
                )
                hidden = _summed([product_of(own[gate], d.weights(gate)) for gate in range(4)])
                rows[step] = (_in_places(d, own), own[0])
                continue
            own, hidden, reset = _gru_back(d, gates, arriving, d.before(outputs, last, d.hidden))
            rows[step] = (_in_places(d, own), reset)
        sums.append([rows[step][0] for step in range(steps)])
        resets.append([rows[step][1] for step in range(steps)])
        states["hidden_gradient"].append(hidden)
        states["cell_gradient"].append(cell)
    return {
        "dst": _every(sums),
        "reset_gradient": _every(resets),
        **{role: _stacked(found) for role, found in states.items()},
    }


def _of_sigmoid(y: Off) -> Off:
    return y.times(y.from_one())


def _of_tanh(y: Off) -> Off:
    return y.times(y).from_one()


def _lstm_back(
    gates: Sequence[Off], arriving: Off, cell: Off, now: Off, before: Off
) -> tuple[list[Off], Off]:
    into, out, keep, fresh = gates
    bent = tanh(now)
    cell = cell + arriving.times(out).times(_of_tanh(bent))
    own = [
        cell.times(fresh).times(_of_sigmoid(into)),
        arriving.times(bent).times(_of_sigmoid(out)),
        cell.times(before).times(_of_sigmoid(keep)),
        cell.times(into).times(_of_tanh(fresh)),
    ]
    return own, cell.times(keep)


def _gru_back(d: _Direction, gates: Sequence[Off], arriving: Off, before: Off) -> tuple[list[Off], Off, Off]:
    """Gradients of the sums and of the state, and of what is reset."""
    update, reset, fresh, gated = gates
    difference = before + Off(-fresh.value, fresh.error)
    of_update = arriving.times(difference).times(_of_sigmoid(update))
    of_fresh = arriving.times(update.from_one()).times(_of_tanh(fresh))
    state = arriving.times(update)
    if d.linear:
        of_product = of_fresh.times(reset)
        of_reset = of_fresh.times(gated).times(_of_sigmoid(reset))
        state = state + product_of(of_product, d.weights(2))
    else:
        of_product = product_of(of_fresh, d.weights(2))
        of_reset = of_product.times(before).times(_of_sigmoid(reset))
        state = state + of_product.times(reset)
    parts = [product_of(of_update, d.weights(0)), product_of(of_reset, d.weights(1))]
    return [of_update, of_reset, of_fresh], _summed([state, *parts]), of_product


def _summed(parts: Sequence[Off]) -> Off:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _in_places(d: _Direction, gates: Sequence[Off]) -> Off:
    order = [d.attrs.places.index(place) for place in range(len(gates))]
    return _beside([gates[gate] for gate in order])


def _beside(rows: Sequence[Off]) -> Off:
    return Off(*(np.concatenate([row[part] for row in rows], 1) for part in (0, 1)))


def _every(directions: Sequence[Sequence[Off]]) -> Estimate:
    """Steps of all directions as one tensor."""
    whole = [_beside(rows) for rows in zip(*directions, strict=True)]
    return Estimate(*(np.array([row[part] for row in whole]) for part in (0, 1)))


def _stacked(directions: Sequence[Off]) -> Estimate:
    return Estimate(*(np.stack([one[part] for one in directions]) for part in (0, 1)))
