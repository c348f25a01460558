"""LSTM, GRU and RNN of several layers, each layer one operator (``tvm_mxplan/operators/recurrent.py``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from ....errors import UnsupportedError
from ....operators.recurrent import GATES, USUAL, Activation, Kind, Layer, recurrent
from ..node import Emitter, Node
from .table import converts

_KINDS: Mapping[str, Kind] = {"lstm": "lstm", "gru": "gru", "rnn_tanh": "rnn", "rnn_relu": "rnn"}
_GATES: Mapping[Kind, Sequence[int]] = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}
"""Places of the operator's gates among PyTorch's: i, o, f, c of i, f, c, o; z, r, h of r, z, h."""


@converts(*(f"{name}.input" for name in _KINDS))
def _recurrent(emitter: Emitter, node: Node) -> list[relax.Expr]:
    if node["train"] and node["dropout"]:
        raise UnsupportedError("layers between which numbers are dropped at random; call model.eval() first")
    name = node.operator.split(".")[1]
    kind = _KINDS[name]
    data, states = node["input"], node["hx"] if kind == "lstm" else [node["hx"]]
    if node["batch_first"]:
        data = emitter.emit(relax.op.permute_dims(data, [1, 0, 2]))
    directions = 2 if node["bidirectional"] else 1
    activations = (Activation("relu"),) if name == "rnn_relu" else USUAL[kind]
    layer = Layer(
        kind, "both" if directions == 2 else "forward", activations * directions, linear=kind == "gru"
    )
    last: list[list[relax.Expr]] = [[] for _ in states]
    for at in range(node["num_layers"]):
        operands = {"data": data, **_parameters(emitter, node, kind, at, directions)}
        for role, state in zip(("hidden", "cell"), states, strict=False):
            if not _is_zero(state):
                begin = at * directions
                part = relax.op.strided_slice(state, [0], [begin], [begin + directions])
                operands[role] = emitter.emit(part)
        every = emitter.emit(recurrent(layer, operands))
        data = emitter.emit(relax.TupleGetItem(every, 0))
        for place, found in enumerate(last, 1):
            found.append(emitter.emit(relax.TupleGetItem(every, place)))
    if node["batch_first"]:
        data = emitter.emit(relax.op.permute_dims(data, [1, 0, 2]))
    return [data, *(f[0] if len(f) == 1 else emitter.emit(relax.op.concat(f, 0)) for f in last)]


def _parameters(
    emitter: Emitter, node: Node, kind: Kind, layer: int, directions: int
) -> dict[str, relax.Expr]:
    """Weights and biases of one layer, those of its directions one behind the other."""
    count = 4 if node["has_biases"] else 2
    if len(node["params"]) != count * directions * node["num_layers"]:
        raise UnsupportedError("an LSTM with a projection of its outputs (proj_size); expected one without")
    first = layer * directions
    own = [node["params"][count * (first + at) : count * (first + at + 1)] for at in range(directions)]
    names = ("weights", "recurrence")
    found = {
        name: _stacked(emitter, [_ordered(emitter, row[at], kind) for row in own])
        for at, name in enumerate(names)
    }
    if node["has_biases"]:
        halves = [[_ordered(emitter, row[at], kind) for at in (2, 3)] for row in own]
        found["bias"] = _stacked(emitter, [_joined(emitter, pair) for pair in halves])
    return found


def _ordered(emitter: Emitter, tensor: relax.Expr, kind: Kind) -> relax.Expr:
    """Rows of gates in the operator's order; constants are put in order now."""
    order = _GATES[kind]
    if list(order) == sorted(order):
        return tensor
    array = _array(tensor)
    if array is not None:
        parts = np.split(array, GATES[kind])
        return _constant(np.concatenate([parts[at] for at in order]))
    parts = emitter.emit(relax.op.split(tensor, GATES[kind], 0))
    return _joined(emitter, [emitter.emit(relax.TupleGetItem(parts, at)) for at in order])


def _stacked(emitter: Emitter, tensors: Sequence[relax.Expr]) -> relax.Expr:
    arrays = [_array(tensor) for tensor in tensors]
    if all(array is not None for array in arrays):
        return _constant(np.stack(arrays))  # type: ignore[arg-type]
    return emitter.emit(relax.op.stack(list(tensors), 0))


def _joined(emitter: Emitter, tensors: Sequence[relax.Expr]) -> relax.Expr:
    arrays = [_array(tensor) for tensor in tensors]
    if all(array is not None for array in arrays):
        return _constant(np.concatenate(arrays))  # type: ignore[arg-type]
    return emitter.emit(relax.op.concat(list(tensors), 0))


def _is_zero(state: relax.Expr) -> bool:
    array = _array(state)
    return array is not None and not array.any()


def _array(tensor: Any) -> np.ndarray | None:
    return tensor.value.numpy() if isinstance(tensor, tvm.ir.GenericConst) else None


def _constant(array: np.ndarray) -> relax.Expr:
    return relax.const(np.ascontiguousarray(array), str(array.dtype))
