"""LSTM, GRU and RNN as one operator each (``tvm_mxplan/operators/recurrent.py``)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tvm import relax

from .....errors import InvalidInputError
from .....operators.recurrent import USUAL, Direction, Kind, Layer, recurrent
from ...contradictions import Contradiction
from ...dimensions.dims import expression
from ...node import Emitter, Node, NotTaken
from ...values import Value, rank_of, shape_of
from ..table import converts
from .activations import activations

_DIRECTIONS: Mapping[str, Direction] = {"forward": "forward", "reverse": "reverse", "bidirectional": "both"}
_KINDS: Mapping[str, Kind] = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn"}
_PLACES = {"weights": 1, "recurrence": 2, "bias": 3, "lengths": 4, "hidden": 5, "cell": 6, "peepholes": 7}
"""Operands of a node by the operator's names for them, but the data."""
_STATES = ("hidden", "cell")


@converts("LSTM", "GRU", "RNN")
def converted(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    """The results of a layer.

    Raises
    ------
    NotTaken : data of unknown rank, weights of unknown shape.
    """
    batch_first = bool(node.attribute("layout", 0))
    data = emitter.tensor(node.input(0))
    if rank_of(data) not in (None, 3):
        called, rank = emitter.importer.called(node), rank_of(data)
        raise Contradiction(f"{called}: expected data of 3 dimensions (steps, samples, features), got {rank}")
    if shape_of(data) is None:
        if rank_of(data) is None:
            raise NotTaken
        data = emitter.with_shape(data, emitter.importer.new_dimensions(3))
    if batch_first:
        data = emitter.emit(relax.op.permute_dims(data, [1, 0, 2]))
    operands = {"data": data}
    for name, place in _PLACES.items():
        value = node.input(place)
        if value is None or (name == "lengths" and _is_full(emitter, value, data)):
            continue
        operands[name] = emitter.tensor(value)
        if batch_first and name in _STATES:
            operands[name] = emitter.emit(relax.op.permute_dims(operands[name], [1, 0, 2]))
    for name in ("weights", "recurrence"):
        if not all(isinstance(dim, int) for dim in shape_of(operands[name]) or [None]):
            raise NotTaken
    layer = layer_of(node)
    every = emitter.emit(recurrent(layer, operands))
    found = [
        emitter.emit(relax.TupleGetItem(every, at)) if at < len(node.outputs) and node.outputs[at] else None
        for at in range(3 if layer.kind == "lstm" else 2)
    ]
    if found[0] is not None:
        found[0] = _by_direction(emitter, found[0], layer.directions, batch_first)
    if batch_first:
        found[1:] = [
            None if state is None else emitter.emit(relax.op.permute_dims(state, [1, 0, 2]))
            for state in found[1:]
        ]
    return tuple(found)


def layer_of(node: Node) -> Layer:
    """The layer that a node's attributes state."""
    stated = node.text("direction", "forward")
    if stated not in _DIRECTIONS:
        raise InvalidInputError(
            f"node {node.name or node.outputs[0]!r} ({node.op_type}): direction {stated!r}; expected one of "
            f"{', '.join(_DIRECTIONS)}"
        )
    kind, direction = _KINDS[node.op_type], _DIRECTIONS[stated]
    names = [name.decode() for name in node.attribute("activations", [])]
    alphas, betas = (node.attribute(f"activation_{name}", []) for name in ("alpha", "beta"))
    functions = activations(names, alphas, betas)
    return Layer(
        kind,
        direction,
        functions or USUAL[kind] * (2 if direction == "both" else 1),
        float(node.attribute("clip", 0.0)),
        bool(node.attribute("input_forget", 0)),
        bool(node.attribute("linear_before_reset", 0)),
    )


def _is_full(emitter: Emitter, lengths: Value, data: relax.Expr) -> bool:
    """True where every sequence is known to have all steps."""
    return isinstance(lengths, np.ndarray) and bool((lengths == emitter.shape(data)[0]).all())


def _by_direction(emitter: Emitter, outputs: relax.Expr, directions: int, batch_first: bool) -> relax.Expr:
    """Outputs side by side as ONNX has them: (steps, directions, samples, units), or samples first."""
    steps, samples, width = shape_of(outputs) or emitter.shape(outputs)
    if directions == 1:
        if batch_first:
            outputs = emitter.emit(relax.op.permute_dims(outputs, [1, 0, 2]))
        return emitter.emit(relax.op.expand_dims(outputs, 2 if batch_first else 1))
    shape = [expression(dim) for dim in (steps, samples, directions, int(width) // directions)]
    apart = emitter.emit(relax.op.reshape(outputs, relax.ShapeExpr(shape)))
    order = [1, 0, 2, 3] if batch_first else [0, 2, 1, 3]
    return emitter.emit(relax.op.permute_dims(apart, order))
