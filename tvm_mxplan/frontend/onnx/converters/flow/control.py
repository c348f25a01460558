"""If, Loop and Scan: conditions and counts that are known are followed now, others when the model runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
from tvm import relax

from .....errors import UnsupportedError
from ...contradictions import Contradiction
from ...dimensions.dims import expression
from ...node import Emitter, Node, NotTaken
from ...values import Scope, Value, dtype_of, shape_of
from ...way_out import LEAVE_OUT
from ..table import converts
from . import loops
from .refused_branch import refused


@converts("If", reads_scope=True)
def _if(emitter: Emitter, node: Node, scope: Scope) -> tuple[Value, ...]:
    condition = node.input(0)
    if isinstance(condition, np.ndarray):
        chosen = "then_branch" if condition.reshape(-1)[0] else "else_branch"
        return tuple(emitter.importer.graph(node.attributes[chosen], scope))
    if shape_of(condition) != []:
        condition = emitter.emit(relax.op.reshape(condition, []))
    branches = _branches(emitter, node, scope, condition)
    forms = [branch.form for branch in branches]
    if forms[0] != forms[1]:
        raise UnsupportedError(
            f"{emitter.importer.called(node)}: its branches give sequences of different lengths; "
            "expected as many tensors from both"
        )
    _check_ranks(emitter, node, [branch.body for branch in branches])
    result = emitter.emit(relax.If(condition, *[branch.body for branch in branches]))
    count = sum(1 if length is None else length for length in forms[0])
    parts = iter(
        [result]
        if count == 1
        else [emitter.emit(relax.TupleGetItem(result, index)) for index in range(count)]
    )
    return tuple(
        next(parts) if length is None else [next(parts) for _ in range(length)] for length in forms[0]
    )


@dataclass(frozen=True)
class _Branch:
    """A branch whose result is a tensor, or a tuple of all tensors that it gives.

    Attributes
    ----------
    form : for each of its outputs, the length of a sequence; None for a tensor.
    """

    body: relax.SeqExpr
    form: list[int | None]


def _branches(emitter: Emitter, node: Node, scope: Scope, condition: relax.Expr) -> list[_Branch]:
    """Both branches; one in which shapes contradict each other is an error of the calls that run it."""
    found: list[_Branch | None] = []
    contradictions: list[Contradiction] = []
    for name in ("then_branch", "else_branch"):
        try:
            graph = functools.partial(emitter.importer.graph, node.attributes[name], scope)
            found.append(_branch(emitter, graph))
        except Contradiction as error:
            found.append(None)
            contradictions.append(error)
    if len(contradictions) == 2:
        raise contradictions[0]
    for at, branch in enumerate(found):
        if branch is None:
            other = found[1 - at]
            assert other is not None
            why = str(contradictions[0]).removeprefix(f"{emitter.importer.source.name}: ")
            words = (
                f"{emitter.importer.called(node)}: its condition chose the branch that inputs of these "
                f"shapes do not fit: {why}"
            )
            made = functools.partial(refused, emitter, condition, at == 0, words, _types(other.body))
            found[at] = replace(_branch(emitter, made), form=other.form)
    return [branch for branch in found if branch is not None]


def _branch(emitter: Emitter, outputs_of: Callable[[], Sequence[Value]]) -> _Branch:
    """A branch of what a function emits."""
    builder = emitter.builder
    builder._begin_binding_block()
    try:
        outputs = outputs_of()
        form = [len(value) if isinstance(value, list) else None for value in outputs]
        flat = [part for value in outputs for part in (value if isinstance(value, list) else [value])]
        values = [emitter.tensor(value) for value in flat]
        result = builder.emit(values[0] if len(values) == 1 else relax.Tuple(values))
    except BaseException:
        builder._end_block()  # the next branch begins where this one did
        raise
    return _Branch(relax.SeqExpr([builder._end_block()], result), form)


def _check_ranks(emitter: Emitter, node: Node, branches: Sequence[relax.SeqExpr]) -> None:
    """Say that a result has no rank until the model runs, which nothing that reads it could be built for.

    Raises
    ------
    UnsupportedError : results of different ranks.
    """
    ranks = [_ranks(branch) for branch in branches]
    if ranks[0] == ranks[1]:
        return
    importer = emitter.importer
    named = [
        name
        for name, dims in importer.source.inputs.items()
        if any(not isinstance(d, int) for d in dims or ())
    ]
    advice = f"state the shape of {' and '.join(map(repr, named))} in numbers" if named else LEAVE_OUT
    raise UnsupportedError(
        f"{importer.called(node)}: its branches give results of {_text(ranks[0])} and {_text(ranks[1])} "
        f"dimensions, and which one runs is known only when the model does; {advice}"
    )


def _types(branch: relax.SeqExpr) -> list[relax.TensorType]:
    """The types of the tensors that a branch gives."""
    kind = branch.body.ty
    fields = kind.fields if isinstance(kind, relax.TupleType) else [kind]
    return [one for one in fields if isinstance(one, relax.TensorType)]


def _ranks(branch: relax.SeqExpr) -> list[int]:
    return [int(one.ndim) for one in _types(branch)]


def _text(ranks: Sequence[int]) -> str:
    return " and ".join(map(str, ranks))


@converts("Loop", reads_scope=True)
def _loop(emitter: Emitter, node: Node, scope: Scope) -> tuple[Value, ...]:
    """Unrolled where the number of turns is known, else a function that calls itself.

    A loop without a count is unrolled as long as its condition follows from what is known.
    """
    body, count, condition = node.attributes["body"], node.input(0), node.input(1)
    if not isinstance(count, np.ndarray | None) or not isinstance(condition, np.ndarray | None):
        return loops.emitted(emitter, node, scope)
    if not (_ends_by_count(body) or (count is None and condition is not None)):
        return loops.emitted(emitter, node, scope)
    turns = None if count is None else int(count.reshape(-1)[0])
    alive = True if condition is None else bool(condition.reshape(-1)[0])
    if turns is not None and turns > _MOST_TURNS:
        return loops.emitted(emitter, node, scope)
    states, rows, turn = list(node.inputs[2:]), list[list[Value]](), 0
    while alive and (turns is None or turn < turns):
        names = [value.name for value in body.input]
        given = [np.asarray(turn, "int64"), np.asarray(True), *states]
        goes_on, *results = emitter.importer.graph(body, scope | dict(zip(names, given, strict=True)))
        if not isinstance(goes_on, np.ndarray) or turn == _MOST_TURNS:
            return loops.emitted(emitter, node, scope)
        alive = bool(goes_on.reshape(-1)[0])
        states, row = results[: len(states)], results[len(states) :]
        rows.append(row)
        turn += 1
    width = len(node.outputs) - len(states)
    if width and not rows:
        return loops.emitted(emitter, node, scope)
    return (*states, *(stacked(emitter, [row[at] for row in rows], 0) for at in range(width)))


def _ends_by_count(body: onnx.GraphProto) -> bool:
    """Whether the condition that a body gives is the one that it got, or a constant."""
    sources = {output: node for node in body.node for output in node.output}
    constants = {tensor.name for tensor in body.initializer}
    name = body.output[0].name
    while name in sources and sources[name].op_type in ("Identity", "Cast"):
        name = sources[name].input[0]
    return (
        name == body.input[1].name
        or name in constants
        or getattr(sources.get(name), "op_type", "") == "Constant"
    )


def stacked(emitter: Emitter, values: list[Value], axis: int) -> Value:
    """Tensors of one shape, one behind the other along a new axis."""
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    if len(arrays) == len(values):
        return np.stack(arrays, axis)
    return emitter.emit(relax.op.stack([emitter.tensor(value) for value in values], axis))


@converts("Scan", first_opset=9, reads_scope=True)
def _scan(emitter: Emitter, node: Node, scope: Scope) -> tuple[Value, ...]:
    """Unrolled: the number of turns is the extent of the scanned axes."""
    body = node.attributes["body"]
    width = node.attributes["num_scan_inputs"]
    states, scanned = list(node.inputs[: len(node.inputs) - width]), node.inputs[len(node.inputs) - width :]
    ranks = [len(emitter.shape(value)) for value in scanned]
    axes = [
        axis % rank for axis, rank in zip(node.attribute("scan_input_axes", [0] * width), ranks, strict=True)
    ]
    backwards = node.attribute("scan_input_directions", [0] * width)
    turns = emitter.shape(scanned[0])[axes[0]]
    if not isinstance(turns, int) or turns > _MOST_TURNS:
        raise NotTaken
    names = [value.name for value in body.input]
    rows = []
    for turn in range(turns):
        parts = [
            _part(emitter, value, turns - 1 - turn if back else turn, axis)
            for value, axis, back in zip(scanned, axes, backwards, strict=True)
        ]
        results = emitter.importer.graph(body, scope | dict(zip(names, [*states, *parts], strict=True)))
        states = results[: len(states)]
        rows.append(results[len(states) :])
    count = len(body.output) - len(states)
    if not rows and count:
        rows = [_nothing(emitter, body, scope, [*states, *scanned], axes)]
    ends = node.attribute("scan_output_axes", [0] * count)
    turned = node.attribute("scan_output_directions", [0] * count)
    outputs = []
    for at in range(count):
        column = [row[at] for row in rows]
        axis = ends[at] if ends[at] >= 0 else ends[at] + len(emitter.shape(column[0])) + 1
        outputs.append(stacked(emitter, column[::-1] if turned[at] else column, axis))
    if turns == 0:  # one row was made for its shape
        outputs = [_empty(emitter, value, axis) for value, axis in zip(outputs, ends, strict=True)]
    return (*states, *outputs)


def _nothing(
    emitter: Emitter, body: onnx.GraphProto, scope: Scope, values: list[Value], axes: list[int]
) -> list[Value]:
    """Results of a turn on zeros, for the shapes of those that a scan of no turns has no part of."""
    states = len(values) - len(axes)
    given = list(values[:states])
    for value, axis in zip(values[states:], axes, strict=True):
        dims = [dim for at, dim in enumerate(emitter.shape(value)) if at != axis]
        shape = relax.ShapeExpr([expression(dim) for dim in dims])
        given.append(emitter.emit(relax.op.zeros(shape, dtype_of(value))))
    names = [value.name for value in body.input]
    return emitter.importer.graph(body, scope | dict(zip(names, given, strict=True)))[states:]


def _empty(emitter: Emitter, value: Value, axis: int) -> relax.Var:
    """A tensor like this one with no element along an axis."""
    dims = emitter.shape(value)
    dims[axis] = 0
    shape = relax.ShapeExpr([expression(dim) for dim in dims])
    return emitter.emit(relax.op.zeros(shape, dtype_of(value)))


def _part(emitter: Emitter, value: Value, index: int, axis: int) -> Value:
    if isinstance(value, np.ndarray):
        return np.take(value, index, axis)
    part = emitter.emit(relax.op.strided_slice(emitter.tensor(value), [axis], [index], [index + 1]))
    return emitter.emit(relax.op.squeeze(part, [axis]))


_MOST_TURNS = 4096
"""Turns of a loop that is unrolled."""
