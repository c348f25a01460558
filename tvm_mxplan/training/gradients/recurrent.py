"""Recurrent layers: products with all inputs at once, what goes from step to step, and gradients of that.

    mxplan.lstm(data, weights, recurrence, ...)
        -> products = data x weights + bias                      gradients are those of products and sums
           mxplan.recurrent_training(products, recurrence, ...)  keeps its gates

What is differentiated here is the latter alone; the gradient of its weights is a product over all steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tvm
from tvm import relax
from tvm.relax import op

from ...operators.recurrent import GATES, PREFIX, Layer, layer_of, operands_of
from ...operators.recurrent_training import (
    KEPT,
    TrainedCell,
    TrainedLayer,
    named_operands,
    recurrent_backward,
    recurrent_training,
)
from ...operators.registration import dtype_of, shape_of
from ...passes.origins import origins_of, with_origins
from .table import Backward, gradient_of

RECURRENT = tuple(f"{PREFIX}{kind}" for kind in GATES)
"""The operators of recurrent layers."""
_PLACES = {"lstm": (0, 1, 2, 3), "gru": (0, 1, 2), "gru_linear": (0, 1, 2)}


def untrained(call: relax.Call) -> str | None:
    """None, or what keeps a recurrent layer from being trained."""
    layer, given = layer_of(call), operands_of(call)
    if layer.kind == "rnn":
        return "a recurrent layer of plain cells; LSTM and GRU have gradients"
    for role in ("lengths", "peepholes"):
        if role in given:
            return f"{role} of a recurrent layer"
    if layer.clip:
        return "gates that are clipped"
    if layer.coupled:
        return "a forget gate that is coupled to the input gate"
    if not layer.is_usual:
        return "activations of gates beside sigmoid and tanh"
    if 0 in shape_of(given["data"]):
        return "a recurrent layer over nothing"
    return None


def in_training(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """A recurrent layer that is not ``untrained`` in the form that has gradients: the same results."""
    layer, given = layer_of(call), operands_of(call)
    cell = _cell(layer)
    trained = TrainedLayer(cell, layer.direction, _PLACES[cell])
    steps, samples, features = shape_of(given["data"])
    directions, rows, units = shape_of(given["recurrence"])
    row_bias, own_bias = _biases(builder, given.get("bias"), cell, (directions, rows, units))

    def emit(expr: relax.Expr) -> relax.Expr:
        return builder.emit(with_origins(expr, origins_of(call)) if isinstance(expr, relax.Call) else expr)

    data = emit(op.reshape(given["data"], (steps * samples, features)))
    weights = emit(op.reshape(given["weights"], (directions * rows, features)))
    products = emit(op.matmul(data, emit(op.permute_dims(weights, [1, 0]))))
    if row_bias is not None:
        products = emit(op.add(products, row_bias))
    operands = {
        "products": emit(op.reshape(products, (steps, samples, directions * rows))),
        "recurrence": given["recurrence"],
    }
    if own_bias is not None:
        operands["bias"] = own_bias
    for role in ("hidden", "cell"):
        if role in given and not _is_zero(given[role]):
            operands[role] = given[role]
    every = emit(recurrent_training(trained, operands))
    outputs = emit(relax.TupleGetItem(every, 0))
    last = []
    for direction in range(directions):
        at = 0 if _backwards(trained, direction) else steps - 1
        begin = direction * units
        last.append(emit(op.strided_slice(outputs, [0, 2], [at, begin], [at + 1, begin + units])))
    hidden = last[0] if directions == 1 else emit(op.concat(last, 0))
    cells = [emit(relax.TupleGetItem(every, 3))] if trained.is_lstm else []
    return relax.Tuple([outputs, hidden, *cells])


@gradient_of("mxplan.recurrent_training")
def _recurrent_training(back: Backward) -> list[relax.Expr]:
    given, layer = named_operands(back.call), TrainedLayer.of(back.call)
    outputs, gates = (back.emit(relax.TupleGetItem(back.result, at)) for at in (0, 1))
    operands: dict[str, relax.Expr] = {
        role: given[role] for role in ("recurrence", "hidden", "cell") if role in given
    }
    operands |= {"gates": gates, "outputs": outputs, "gradient": _field(back, 0)}
    if layer.is_lstm:
        operands["cells"] = back.emit(relax.TupleGetItem(back.result, 2))
        operands["last_cell_gradient"] = _field(back, 3)
    grads = back.emit(recurrent_backward(layer, operands))
    found = {
        "products": back.emit(relax.TupleGetItem(grads, 0)),
        "hidden": back.emit(relax.TupleGetItem(grads, 1)),
    }
    reset = None
    if layer.is_lstm:
        found["cell"] = back.emit(relax.TupleGetItem(grads, 2))
    elif layer.cell == "gru_linear":
        reset = back.emit(relax.TupleGetItem(grads, 2))
    if "bias" in given:
        assert reset is not None
        found["bias"] = op.reshape(back.emit(op.sum(reset, [0, 1])), shape_of(given["bias"]))
    weights = _Weights(back, layer, outputs, given.get("hidden"))
    found["recurrence"] = weights.gradient(found["products"], gates, reset)
    return [found[role] for role in given]


class _Weights:
    """The gradient of the recurrence, over all steps at once."""

    def __init__(
        self, back: Backward, layer: TrainedLayer, outputs: relax.Expr, hidden: relax.Expr | None
    ) -> None:
        self.back, self.layer, self.outputs, self.hidden = back, layer, outputs, hidden
        self.steps, self.samples, _ = shape_of(outputs)
        self.directions, self.rows, self.units = shape_of(named_operands(back.call)["recurrence"])

    def gradient(self, products: relax.Expr, gates: relax.Expr, reset: relax.Expr | None) -> relax.Expr:
        found = []
        for direction in range(self.directions):
            begin = direction * self.rows
            if self.layer.is_lstm:
                own = self._columns(products, begin, self.rows)
                whole = self._by_states(direction, own)
            else:
                update_and_reset = self._columns(products, begin, 2 * self.units)
                whole = self.back.emit(
                    op.concat(
                        [
                            self._by_states(direction, update_and_reset),
                            self._of_candidate(direction, products, gates, reset),
                        ],
                        0,
                    )
                )
            found.append(self.back.emit(op.reshape(whole, (1, self.rows, self.units))))
        return found[0] if len(found) == 1 else op.concat(found, 0)

    def _of_candidate(
        self, direction: int, products: relax.Expr, gates: relax.Expr, reset: relax.Expr | None
    ) -> relax.Expr:
        if reset is not None:
            return self._by_states(direction, self._columns(reset, direction * self.units, self.units))
        # The reset stands in front of the product, and the state behind it is kept.
        own = self._columns(products, direction * self.rows + 2 * self.units, self.units)
        gated = self._columns(gates, (direction * KEPT + KEPT - 1) * self.units, self.units)
        return self._product(own, gated)

    def _by_states(self, direction: int, own: relax.Expr) -> relax.Expr:
        """The product of gradients with the states that the steps began with."""
        states = self._columns(self.outputs, direction * self.units, self.units)
        backwards = _backwards(self.layer, direction)
        first = self.steps - 1 if backwards else 0
        later = range(self.steps - 1) if backwards else range(1, self.steps)
        before = self._steps(states, range(1, self.steps) if backwards else range(self.steps - 1))
        if self.hidden is None:
            if self.steps == 1:
                return relax.op.zeros((shape_of(own)[2], self.units), self.back.dtype)
            return self._product(self._steps(own, later), before)
        start = self.hidden
        if self.directions > 1:
            start = self.back.emit(op.strided_slice(start, [0], [direction], [direction + 1]))
        pieces = [start] if self.steps == 1 else [before, start] if first else [start, before]
        return self._product(own, pieces[0] if len(pieces) == 1 else self.back.emit(op.concat(pieces, 0)))

    def _product(self, own: relax.Expr, states: relax.Expr) -> relax.Expr:
        """[steps, samples, rows] and [steps, samples, units] -> [rows, units]."""
        flat = [
            self.back.emit(op.reshape(value, (shape_of(value)[0] * self.samples, shape_of(value)[2])))
            for value in (own, states)
        ]
        return self.back.emit(op.matmul(self.back.emit(op.permute_dims(flat[0], [1, 0])), flat[1]))

    def _columns(self, value: relax.Expr, begin: int, count: int) -> relax.Expr:
        if count == shape_of(value)[2]:
            return value
        return self.back.emit(op.strided_slice(value, [2], [begin], [begin + count]))

    def _steps(self, value: relax.Expr, steps: range) -> relax.Expr:
        if self.steps == 1:
            return value
        return self.back.emit(op.strided_slice(value, [0], [steps.start], [steps.stop]))


def _cell(layer: Layer) -> TrainedCell:
    if layer.kind == "lstm":
        return "lstm"
    return "gru_linear" if layer.linear else "gru"


def _backwards(layer: TrainedLayer, direction: int) -> bool:
    return layer.direction == "reverse" or direction == 1


def _field(back: Backward, at: int) -> relax.Expr:
    return back.emit(relax.TupleGetItem(back.grad, at))


def _biases(
    builder: relax.BlockBuilder, given: relax.Expr | None, cell: TrainedCell, sizes: Sequence[int]
) -> tuple[relax.Expr | None, relax.Expr | None]:
    """That of the products [D * G * H], and that behind a linear GRU's reset [D, H]."""
    if given is None:
        return None, None
    directions, rows, units = sizes
    first, second = (
        builder.emit(op.strided_slice(given, [1], [begin], [begin + rows])) for begin in (0, rows)
    )
    own = None
    if cell == "gru_linear":
        own = builder.emit(op.strided_slice(second, [1], [2 * units], [rows]))
        gates = builder.emit(op.strided_slice(second, [1], [0], [2 * units]))
        none = relax.const(np.zeros((directions, units)), dtype_of(given))
        second = builder.emit(op.concat([gates, none], 1))
    whole = builder.emit(op.add(first, second))
    return builder.emit(op.reshape(whole, (directions * rows,))), own


def _is_zero(state: relax.Expr) -> bool:
    return isinstance(state, tvm.ir.GenericConst) and not state.value.numpy().any()
