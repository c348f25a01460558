"""LSTM, GRU and RNN, step by step: one matrix product for all inputs, then one for each step.

Gates stand in ONNX's order: i, o, f, c in LSTM; z, r, h in GRU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tvm import relax

from ..dimensions.dims import Dim, expression
from ..node import Emitter, Node, NotTaken
from ..values import Value, dtype_of, shape_of
from .activations import activations
from .table import converts

_ACTIVATIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


@dataclass(frozen=True)
class _Direction:
    """One direction of a recurrent layer: weights as (inputs, gates), activations and operands of its own."""

    weights: relax.Expr
    recurrence: relax.Expr
    bias: relax.Expr | None
    recurrent_bias: relax.Expr | None
    peepholes: Sequence[relax.Expr] | None
    activations: Sequence[Callable[[relax.Expr], relax.Expr]]
    hidden: relax.Expr
    cell: relax.Expr | None
    backwards: bool


@converts("LSTM", "GRU", "RNN")
def _recurrent(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    data = node.input(0)
    layout = node.attribute("layout", 0)
    if layout:
        data = emitter.emit(relax.op.permute_dims(emitter.tensor(data), [1, 0, 2]))
    dims = emitter.shape(data)
    if not isinstance(dims[0], int):
        raise NotTaken
    lengths = _lengths(emitter, node, dims)
    results = []
    for direction in _directions(emitter, node, dims):
        results.append(_run(emitter, node, emitter.tensor(data), dims, direction, lengths))
    outputs = emitter.emit(relax.op.stack([row[0] for row in results], 1))
    hidden = emitter.emit(relax.op.stack([row[1] for row in results], 0))
    found = [outputs, hidden]
    if node.op_type == "LSTM":
        found.append(emitter.emit(relax.op.stack([row[2] for row in results], 0)))
    if layout:
        found[0] = emitter.emit(relax.op.permute_dims(found[0], [2, 0, 1, 3]))
        found[1:] = [emitter.emit(relax.op.permute_dims(value, [1, 0, 2])) for value in found[1:]]
    return tuple(found)


def _lengths(emitter: Emitter, node: Node, dims: Sequence[Dim]) -> relax.Expr | None:
    """Numbers of steps of each sequence, as a column; None where all have all."""
    lengths = node.input(4)
    if lengths is None or (isinstance(lengths, np.ndarray) and (lengths == dims[0]).all()):
        return None
    return emitter.emit(relax.op.expand_dims(emitter.tensor(lengths), 1))


def _directions(emitter: Emitter, node: Node, dims: Sequence[Dim]) -> list[_Direction]:
    kind = node.op_type
    stated = node.text("direction", "forward")
    count = 2 if stated == "bidirectional" else 1
    size = (
        node.attributes["hidden_size"]
        if "hidden_size" in node.attributes
        else int(shape_of(node.input(2))[2])
    )
    per = len(_ACTIVATIONS[kind])
    names = [name.decode() for name in node.attribute("activations", [])] or _ACTIVATIONS[kind] * count
    alphas, betas = list(node.attribute("activation_alpha", [])), list(node.attribute("activation_beta", []))
    functions = activations(names, alphas, betas)
    if node.attribute("clip"):
        raise NotTaken
    dtype = dtype_of(node.input(0))
    zeros = emitter.emit(relax.op.zeros(relax.ShapeExpr([expression(dims[1]), expression(size)]), dtype))

    def part(index: int, direction: int) -> relax.Expr | None:
        value = node.input(index)
        if value is None:
            return None
        if isinstance(value, np.ndarray):
            return relax.const(value[direction], str(value.dtype))
        return _taken(emitter, value, direction, 0)

    found = []
    states = (5, 6) if kind == "LSTM" else (5,)
    for direction in range(count):
        bias = part(3, direction)
        halves: list[relax.Expr | None] = [None, None]
        if bias is not None:
            pair = relax.op.split(bias, 2, 0)
            pair = emitter.emit(pair)
            halves = [emitter.emit(relax.TupleGetItem(pair, half)) for half in (0, 1)]
        starts = [_start(emitter, node, index, direction) for index in states]
        peepholes = part(7, direction) if kind == "LSTM" else None
        found.append(
            _Direction(
                _transposed(emitter, part(1, direction)),
                _transposed(emitter, part(2, direction)),
                *halves,
                None if peepholes is None else _pieces(emitter, peepholes, 3, 0),
                functions[direction * per : (direction + 1) * per],
                zeros if starts[0] is None else starts[0],
                None if kind != "LSTM" else (zeros if starts[1] is None else starts[1]),
                stated == "reverse" or direction == 1,
            )
        )
    return found


def _start(emitter: Emitter, node: Node, index: int, direction: int) -> relax.Expr | None:
    """The state that a direction starts from."""
    value = node.input(index)
    if value is None:
        return None
    axis = 1 if node.attribute("layout", 0) else 0
    return _taken(emitter, emitter.tensor(value), direction, axis)


def _run(
    emitter: Emitter,
    node: Node,
    data: relax.Expr,
    dims: Sequence[Dim],
    direction: _Direction,
    lengths: relax.Expr | None,
) -> tuple[relax.Expr, relax.Expr, relax.Expr | None]:
    """All outputs of a direction (steps first), its last state and its last cell."""
    emit = emitter.emit
    steps = int(dims[0])
    projected = emit(relax.op.matmul(data, direction.weights))
    if direction.bias is not None:
        projected = emit(relax.op.add(projected, direction.bias))
    step_of = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}[node.op_type]
    hidden, cell = direction.hidden, direction.cell
    outputs: list[relax.Expr] = [hidden] * steps
    order = range(steps - 1, -1, -1) if direction.backwards else range(steps)
    for step in order:
        row = _taken(emitter, projected, step, 0)
        new_hidden, new_cell = step_of(emitter, node, direction, row, hidden, cell)
        output = new_hidden
        if lengths is not None:
            alive = emit(relax.op.greater(lengths, relax.const(step, dtype_of(lengths))))
            output = emit(relax.op.where(alive, new_hidden, relax.const(np.zeros((), dtype_of(data)))))
            new_hidden = emit(relax.op.where(alive, new_hidden, hidden))
            new_cell = None if new_cell is None else emit(relax.op.where(alive, new_cell, cell))
        hidden, cell = new_hidden, new_cell
        outputs[step] = output
    return emit(relax.op.stack(outputs, 0)), hidden, cell


def _lstm(
    emitter: Emitter, node: Node, direction: _Direction, row: relax.Expr, hidden: relax.Expr, cell: relax.Expr
) -> tuple[relax.Expr, relax.Expr]:
    emit = emitter.emit
    gates = emit(relax.op.add(row, _recurrence(emitter, direction, hidden)))
    enter, leave, forget, new = _pieces(emitter, gates, 4, 1)
    inner, candidate, outer = direction.activations
    if direction.peepholes is not None:
        into, out, off = direction.peepholes
        enter = emit(relax.op.add(enter, relax.op.multiply(into, cell)))
        forget = emit(relax.op.add(forget, relax.op.multiply(off, cell)))
    forgotten = (
        emit(relax.op.subtract(_one(row), inner(enter))) if node.attribute("input_forget") else inner(forget)
    )
    entered = emit(relax.op.multiply(inner(enter), candidate(new)))
    cell = emit(relax.op.add(relax.op.multiply(forgotten, cell), entered))
    if direction.peepholes is not None:
        leave = emit(relax.op.add(leave, relax.op.multiply(out, cell)))
    return emit(relax.op.multiply(inner(leave), outer(cell))), cell


def _gru(
    emitter: Emitter,
    node: Node,
    direction: _Direction,
    row: relax.Expr,
    hidden: relax.Expr,
    cell: relax.Expr | None,
) -> tuple[relax.Expr, None]:
    emit = emitter.emit
    update, reset, new = _pieces(emitter, row, 3, 1)
    inner, candidate = direction.activations
    if node.attribute("linear_before_reset"):
        up, back, old = _pieces(emitter, _recurrence(emitter, direction, hidden), 3, 1)
        kept = inner(emit(relax.op.add(update, up)))
        old = emit(relax.op.multiply(inner(emit(relax.op.add(reset, back))), old))
    else:
        size = int(shape_of(direction.recurrence)[0])
        weights = direction.recurrence
        first = emit(relax.op.strided_slice(weights, [1], [0], [2 * size]))
        last = emit(relax.op.strided_slice(weights, [1], [2 * size], [3 * size]))
        both = emit(relax.op.matmul(hidden, first))
        rest = None
        if direction.recurrent_bias is not None:
            both = emit(
                relax.op.add(both, relax.op.strided_slice(direction.recurrent_bias, [0], [0], [2 * size]))
            )
            rest = emit(relax.op.strided_slice(direction.recurrent_bias, [0], [2 * size], [3 * size]))
        up, back = _pieces(emitter, both, 2, 1)
        kept = inner(emit(relax.op.add(update, up)))
        masked = emit(relax.op.multiply(inner(emit(relax.op.add(reset, back))), hidden))
        old = emit(relax.op.matmul(masked, last))
        old = old if rest is None else emit(relax.op.add(old, rest))
    new = candidate(emit(relax.op.add(new, old)))
    changed = emit(relax.op.multiply(relax.op.subtract(_one(row), kept), new))
    return emit(relax.op.add(changed, relax.op.multiply(kept, hidden))), None


def _rnn(
    emitter: Emitter,
    node: Node,
    direction: _Direction,
    row: relax.Expr,
    hidden: relax.Expr,
    cell: relax.Expr | None,
) -> tuple[relax.Expr, None]:
    total = emitter.emit(relax.op.add(row, _recurrence(emitter, direction, hidden)))
    return emitter.emit(direction.activations[0](total)), None


def _recurrence(emitter: Emitter, direction: _Direction, hidden: relax.Expr) -> relax.Expr:
    product = emitter.emit(relax.op.matmul(hidden, direction.recurrence))
    if direction.recurrent_bias is None:
        return product
    return emitter.emit(relax.op.add(product, direction.recurrent_bias))


def _taken(emitter: Emitter, value: relax.Expr, index: int, axis: int) -> relax.Expr:
    """The part of a tensor at one place of an axis, without that axis."""
    part = emitter.emit(relax.op.strided_slice(value, [axis], [index], [index + 1]))
    return emitter.emit(relax.op.squeeze(part, [axis]))


def _pieces(emitter: Emitter, value: relax.Expr, count: int, axis: int) -> list[relax.Expr]:
    parts = emitter.emit(relax.op.split(value, count, axis))
    return [emitter.emit(relax.TupleGetItem(parts, index)) for index in range(count)]


def _transposed(emitter: Emitter, value: relax.Expr) -> relax.Expr:
    """Weights as (inputs, gates); constants are transposed now."""
    import tvm

    if isinstance(value, tvm.ir.GenericConst):
        return relax.const(np.ascontiguousarray(value.value.numpy().T))
    return emitter.emit(relax.op.permute_dims(value, [1, 0]))


def _one(like: relax.Expr) -> relax.Expr:
    return relax.const(np.ones((), dtype_of(like)))
