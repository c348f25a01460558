"""Loops whose number of turns is known only when the model runs: a function of Relax that calls itself.

    run(level, state)      where the loop goes on    level 0    one turn
                                                     else       run(level - 1, run(level - 1, state))
                           where it does not                    state

So ``run(level)`` takes up to ``2 ** level`` turns, and calls are never nested deeper than the level: a call
for each turn inside of the one before would need a stack as long as the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from tvm import relax

from .....errors import UnsupportedError
from ...node import Emitter, Node, NotTaken
from ...values import Scope, Symbols, Value, dtype_of, rank_of, shape_of
from ...way_out import LEAVE_OUT


@dataclass(frozen=True)
class Loop:
    """A loop as ONNX states it.

    Attributes
    ----------
    states : the first values of what turns hand on.
    captured : values of the enclosing graphs that the body reads, computed when the model runs.
    known : those that are known now.
    """

    body: onnx.GraphProto
    count: Value
    condition: Value
    states: Sequence[Value]
    captured: Mapping[str, relax.Expr]
    known: Mapping[str, np.ndarray]


def emitted(emitter: Emitter, node: Node, scope: Scope) -> tuple[Value, ...]:
    """The results of a loop that runs when the model does.

    Raises
    ------
    UnsupportedError : a sequence that turns hand on.
    NotTaken : a result that grows with each turn and whose parts have no fixed shape.
    """
    body = node.attributes["body"]
    read = {name: scope[name] for name in sorted(_read(body)) if name in scope}
    captured = {
        name: emitter.tensor(value) for name, value in read.items() if isinstance(value, relax.Expr | Symbols)
    }
    known = {name: value for name, value in read.items() if isinstance(value, np.ndarray)}
    if any(isinstance(value, list) for value in node.inputs[2:]):
        raise UnsupportedError(
            f"{emitter.importer.called(node)}: a sequence in a loop whose number of turns is not known when "
            f"compiling; {LEAVE_OUT}"
        )
    states = [emitter.tensor(value) for value in node.inputs[2:]]
    loop = Loop(body, node.input(0), node.input(1), states, captured, known)
    types = [_fixed_type(state) for state in states]
    while True:
        found = _traced(emitter, loop, types)
        settled = [_common(before, after) for before, after in zip(types, found.states, strict=True)]
        if settled == [str(kind) for kind in types]:
            break
        types = [
            _open_type(state) if str(kind) != same else kind
            for state, kind, same in zip(states, types, settled, strict=True)
        ]
    return _called(emitter, loop, types, found.rows)


@dataclass(frozen=True)
class _Trace:
    """Types of what one turn gives."""

    states: Sequence[relax.TensorType]
    rows: Sequence[relax.TensorType]


def _read(graph: onnx.GraphProto) -> set[str]:
    """Names that a graph, or one inside it, reads."""
    names = {output.name for output in graph.output}
    for node in graph.node:
        names |= set(node.input)
        for attribute in node.attribute:
            for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                names |= _read(inner)
    return names


def _fixed_type(value: relax.Expr) -> relax.TensorType:
    """The tensor's type with its shape where that is all numbers."""
    dims = shape_of(value)
    if dims is None or not all(isinstance(dim, int) for dim in dims):
        return _open_type(value)
    return relax.TensorType(dims, dtype_of(value))


def _open_type(value: relax.Expr) -> relax.TensorType:
    rank = rank_of(value)
    return relax.TensorType(dtype=dtype_of(value), ndim=-1 if rank is None else rank)


def _common(before: relax.TensorType, after: relax.TensorType) -> str:
    return str(before) if before.shape is None or str(before) == str(after) else "open"


class _Turn:
    """The function of one turn while it is built, in a builder of its own."""

    def __init__(
        self,
        emitter: Emitter,
        loop: Loop,
        types: Sequence[relax.TensorType],
        rows: Sequence[relax.TensorType],
        to_be_kept: bool,
    ) -> None:
        self.builder = emitter.builder.another(to_be_kept)
        self.importer = emitter.importer.within(self.builder)
        self.emitter = Emitter(self.importer)
        self.level = relax.Var("level", relax.TensorType([], "int64"))
        self.turn = relax.Var("turn", relax.TensorType([], "int64"))
        self.turns = relax.Var("turns", relax.TensorType([], "int64"))
        self.alive = relax.Var("alive", relax.TensorType([], "bool"))
        self.states = [relax.Var(f"state_{at}", self._named(kind)) for at, kind in enumerate(types)]
        self.rows = [relax.Var(f"rows_{at}", self._so_far(kind)) for at, kind in enumerate(rows)]
        self.captured = {
            name: relax.Var(f"captured_{at}", self._named(_fixed_type(value)))
            for at, (name, value) in enumerate(loop.captured.items())
        }

    def _so_far(self, kind: relax.TensorType) -> relax.TensorType:
        """The type of the parts of one result that turns have given until now."""
        return relax.TensorType([*self.importer.new_dimensions(1), *kind.shape.values], str(kind.dtype))

    def _named(self, kind: relax.TensorType) -> relax.TensorType:
        """The type with a new name for each dimension where it has no shape."""
        if kind.shape is not None or kind.ndim < 0:
            return kind
        return relax.TensorType(self.importer.new_dimensions(kind.ndim), str(kind.dtype))

    @property
    def parameters(self) -> list[relax.Expr]:
        return self.arguments(self.level, self.turn, self.alive, [*self.states, *self.rows])

    def arguments(
        self, level: relax.Expr, turn: relax.Expr, alive: relax.Expr, values: Sequence[relax.Expr]
    ) -> list[relax.Expr]:
        """Arguments of a call from inside: only the level and what turns hand on are new."""
        return [level, turn, self.turns, alive, *values, *self.captured.values()]

    def body(self, loop: Loop) -> list[Value]:
        """Emits one turn and returns its results: whether to go on, states, parts of results."""
        names = [value.name for value in loop.body.input]
        given = dict(zip(names, [self.turn, self.alive, *self.states], strict=True))
        return self.importer.graph(loop.body, Scope({**loop.known, **self.captured, **given}))


def _grown(kind: relax.TensorType) -> relax.TensorType:
    return relax.TensorType(dtype=str(kind.dtype), ndim=kind.ndim + 1)


def _traced(emitter: Emitter, loop: Loop, types: Sequence[relax.TensorType]) -> _Trace:
    turn = _Turn(emitter, loop, types, [], to_be_kept=False)
    with turn.builder.function("trace", turn.parameters):
        results = [turn.emitter.tensor(value) for value in turn.body(loop)]
        turn.builder.emit_func_output(relax.Tuple(results))
    kinds = [_fixed_type(result) for result in results[1:]]
    return _Trace(kinds[: len(types)], kinds[len(types) :])


def _called(
    emitter: Emitter,
    loop: Loop,
    types: Sequence[relax.TensorType],
    rows: Sequence[relax.TensorType],
) -> tuple[Value, ...]:
    if any(kind.shape is None for kind in rows):
        raise NotTaken
    turn = _Turn(emitter, loop, types, rows, to_be_kept=True)
    scalars = [relax.TensorType([], "int64"), relax.TensorType([], "bool")]
    results = relax.TupleType([*scalars, *types, *(_grown(kind) for kind in rows)])
    name = emitter.importer.new_function_name("loop")
    placeholder = relax.Function.create_empty(turn.parameters, results)
    function = emitter.builder.root.add_func(placeholder, name)
    with turn.builder.function("turn", turn.parameters):
        turn.builder.emit_func_output(_run(turn, loop, function))
    made = turn.builder.get()["turn"].without_attr("global_symbol")
    made = relax.Function(made.params, made.body, results, made.is_pure, made.attrs)
    emitter.builder.root.update_func(function, made)
    most = int(np.iinfo("int64").max)
    count = (
        relax.const(most, "int64") if loop.count is None else emitter.tensor(emitter.reshaped(loop.count, []))
    )
    alive = (
        relax.const(True, "bool")
        if loop.condition is None
        else emitter.tensor(emitter.reshaped(loop.condition, []))
    )
    empty = [
        emitter.emit(relax.op.zeros(relax.ShapeExpr([0, *kind.shape.values]), str(kind.dtype)))
        for kind in rows
    ]
    parts = [relax.const(0, "int64"), alive, *loop.states, *empty]
    for level in _LEVELS:
        start, going, *values = parts
        arguments = [relax.const(level, "int64"), start, count, going, *values, *loop.captured.values()]
        parts = _parts(emitter, emitter.emit(relax.Call(function, arguments)))
    return tuple(parts[2:])


_LEVELS = (6, 20, 62)
"""Levels of the calls from outside, one after the other: short loops end in the first, all in the last."""


def _parts(emitter: Emitter, result: relax.Var) -> list[relax.Var]:
    """Results of a call: the next turn, whether to go on, states and parts of results."""
    parts = [emitter.emit(relax.TupleGetItem(result, at)) for at in range(len(result.ty.fields))]
    return [_with_shape(emitter, part) for part in parts]


def _with_shape(emitter: Emitter, value: relax.Var) -> relax.Var:
    """A result whose shape is known when the model runs, with names for its dimensions."""
    rank = rank_of(value)
    if rank is None or shape_of(value) is not None:
        return value
    return emitter.with_shape(value, emitter.importer.new_dimensions(rank))


def _run(turn: _Turn, loop: Loop, function: relax.GlobalVar) -> relax.Expr:
    """Some turns where the loop goes on, else what it has."""
    emit = turn.builder.emit
    goes_on = emit(relax.op.logical_and(turn.alive, relax.op.less(turn.turn, turn.turns)))
    more = _block(turn, lambda: _some_turns(turn, loop, function))
    ended = _block(turn, lambda: emit(relax.Tuple([turn.turn, turn.alive, *turn.states, *turn.rows])))
    return emit(relax.If(goes_on, more, ended))


def _some_turns(turn: _Turn, loop: Loop, function: relax.GlobalVar) -> relax.Expr:
    """A turn, or half of the turns and then the others."""
    emit = turn.builder.emit
    single = emit(relax.op.equal(turn.level, relax.const(0, "int64")))
    one = _block(turn, lambda: _one_turn(turn, loop))
    both = _block(turn, lambda: _halves(turn, function))
    return emit(relax.If(single, one, both))


def _block(turn: _Turn, result_of: Callable[[], relax.Expr]) -> relax.SeqExpr:
    """A branch of what a function emits."""
    turn.builder._begin_binding_block()
    result = result_of()
    return relax.SeqExpr([turn.builder._end_block()], result)


def _one_turn(turn: _Turn, loop: Loop) -> relax.Expr:
    emit = turn.builder.emit
    alive, *results = turn.body(loop)
    states = [turn.emitter.tensor(value) for value in results[: len(turn.states)]]
    parts = [turn.emitter.tensor(value) for value in results[len(turn.states) :]]
    rows = [
        emit(relax.op.concat([row, relax.op.expand_dims(part, 0)], 0))
        for row, part in zip(turn.rows, parts, strict=True)
    ]
    following = emit(relax.op.add(turn.turn, relax.const(1, "int64")))
    alive = turn.emitter.tensor(turn.emitter.reshaped(alive, []))
    return emit(relax.Tuple([following, alive, *states, *rows]))


def _halves(turn: _Turn, function: relax.GlobalVar) -> relax.Expr:
    emit = turn.builder.emit
    level = emit(relax.op.subtract(turn.level, relax.const(1, "int64")))
    first = turn.arguments(level, turn.turn, turn.alive, [*turn.states, *turn.rows])
    following, alive, *values = _parts(turn.emitter, emit(relax.Call(function, first)))
    return emit(relax.Call(function, turn.arguments(level, following, alive, values)))
