"""Recurrent layers in training as operators of Relax, without their products with all inputs.

    R.mxplan.recurrent_training(products, recurrence, ..., cell, direction, places, operands)
        -> outputs, gates, and of an LSTM cells and the last cell
    R.mxplan.recurrent_backward(gates, recurrence, outputs, gradient, ..., cell, direction, places, operands)
        -> gradients of products and hidden; of an LSTM that of cell; of gru_linear that of the product that
           its reset gates

    products      (T, N, D * G * H)   of the inputs with the weights, biases included
    recurrence    (D, G * H, H)
    bias          (D, H)              gru_linear: of the product that its reset gates
    hidden, cell  (D, N, H)           states before the first step, 0 where they are missing
    outputs       (T, N, D * H)
    gates         (T, N, D * 4 * H)   what gradients are made of; core/program/sequences.py says which
    cells         (T, N, D * H)

``cell`` is lstm, gru or gru_linear; ``places`` says where its gates (i, o, f, c; z, r, h) stand among those
of products and recurrence.  The attribute ``operands`` names those that are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import tvm
from tvm import relax

from ..recurrent import Direction
from ..registration import Operator, dtype_of, numbers, shape_of

TrainedCell: TypeAlias = Literal["lstm", "gru", "gru_linear"]
KEPT = 4
"""Rows of units that a step keeps for its gradients."""
READ = ("products", "recurrence", "bias", "hidden", "cell")
READ_BACKWARD = (
    "gates", "recurrence", "outputs", "gradient", "cells", "hidden", "cell", "last_cell_gradient",
)  # fmt: skip


@dataclass(frozen=True)
class TrainedLayer:
    """All that a recurrent layer in training is, but for its operands."""

    cell: TrainedCell
    direction: Direction
    places: tuple[int, ...]

    @property
    def directions(self) -> int:
        return 2 if self.direction == "both" else 1

    @property
    def is_lstm(self) -> bool:
        return self.cell == "lstm"

    @classmethod
    def of(cls, call: relax.Call) -> TrainedLayer:
        attrs = call.attrs
        return cls(str(attrs["cell"]), str(attrs["direction"]), numbers(attrs["places"]))  # type: ignore[arg-type]


def recurrent_training(layer: TrainedLayer, operands: Mapping[str, relax.Expr]) -> relax.Call:
    """The call of the layer on operands by their names in ``READ``."""
    return _called(TRAINING, layer, operands, READ)


def recurrent_backward(layer: TrainedLayer, operands: Mapping[str, relax.Expr]) -> relax.Call:
    """The call of its gradient on operands by their names in ``READ_BACKWARD``."""
    return _called(BACKWARD, layer, operands, READ_BACKWARD)


def named_operands(call: relax.Call) -> dict[str, relax.Expr]:
    """The operands by their names."""
    return dict(zip(map(str, call.attrs["operands"]), call.args, strict=True))


def _called(
    operator: Operator, layer: TrainedLayer, operands: Mapping[str, relax.Expr], every: tuple[str, ...]
) -> relax.Call:
    there = [name for name in every if name in operands]
    attributes = {"cell": layer.cell, "direction": layer.direction, "places": list(layer.places)}
    return operator.call(*(operands[name] for name in there), operands=there, **attributes)


def _infer(call: relax.Call) -> tvm.ir.Type:
    layer, given = TrainedLayer.of(call), named_operands(call)
    steps, samples, _ = shape_of(given["products"])
    directions, _, units = shape_of(given["recurrence"])
    dtype = dtype_of(given["products"])
    every = relax.TensorType([steps, samples, directions * units], dtype)
    kept = relax.TensorType([steps, samples, directions * KEPT * units], dtype)
    last = [every, relax.TensorType([directions, samples, units], dtype)] if layer.is_lstm else []
    return relax.TupleType([every, kept, *last])


def _infer_backward(call: relax.Call) -> tvm.ir.Type:
    layer, given = TrainedLayer.of(call), named_operands(call)
    steps, samples, outputs = shape_of(given["outputs"])
    directions, _, units = shape_of(given["recurrence"])
    dtype = dtype_of(given["outputs"])
    products = relax.TensorType([steps, samples, len(layer.places) * outputs], dtype)
    state = relax.TensorType([directions, samples, units], dtype)
    more = {"lstm": [state], "gru": [], "gru_linear": [relax.TensorType([steps, samples, outputs], dtype)]}
    return relax.TupleType([products, state, *more[layer.cell]])


def _legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    from .kernel import forward_kernel

    return forward_kernel(builder, call)


def _legalize_backward(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    from .kernel import backward_kernel

    return backward_kernel(builder, call)


TRAINING = Operator("recurrent_training", "a recurrent layer in training", _infer, _legalize)
BACKWARD = Operator(
    "recurrent_backward", "gradients of a recurrent layer", _infer_backward, _legalize_backward
)
