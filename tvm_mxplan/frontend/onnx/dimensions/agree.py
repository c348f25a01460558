"""States equal dimensions of a node's operands as one, where its operator demands that they are.

    x: [n, 8] + y: [min(n, 64), 8]     y is taken for [n, 8]; the sum has the shape [n, 8]

Relax gives a result no shape where it cannot prove that dimensions are equal, and all that follows loses its
shape too.  ONNX says which ones are; whether they are is checked when the model runs (``restate.py``).
Dimensions that broadcast may be 1 instead; one that is a number or an expression is taken to be equal unless
it is known to be 1, so a named dimension that is 1 in a call does not broadcast against one that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tvm import tirx

from ....errors import InvalidInputError
from ..contradictions import Contradiction
from ..node import Emitter, Node
from ..values import Value, shape_of
from .dims import Dim, compared, expression, implied, same
from .operand_rules import EQUAL, INDEXED, Place
from .restate import Demand, demanded, restated, text_of


def agreed(emitter: Emitter, node: Node) -> list[Value]:
    """The operands, those whose dimensions must be others' with these stated."""
    rule = _RULES.get(node.op_type) if not node.domain else None
    if rule is None:
        return list(node.inputs)
    shapes = [_shape(value) for value in node.inputs]
    strict = node.op_type in EQUAL or rule is _gemm
    if not strict and node.op_type not in INDEXED and all(map(_is_fixed, shapes)):
        return list(node.inputs)
    stated = [list(shape or ()) for shape in shapes]
    broadcasts = rule is _broadcast
    for places in rule(node, shapes):
        found = [place if isinstance(place, int) else stated[place[0]][place[1]] for place in places]
        numbers = sorted({dim for dim in found if isinstance(dim, int)})
        if strict and len(numbers) > 1:
            raise Contradiction(
                f"{emitter.importer.called(node)}: expected equal dimensions, got {numbers[0]} and "
                f"{numbers[1]}; mend the model, or state other shapes of its inputs"
            )
        dim = common(found) if broadcasts else _equal(found)
        for place, old in zip(places, found, strict=True):
            if dim is not None and not isinstance(place, int):
                operand, axis = place
                if not (broadcasts and isinstance(old, int) and old == 1):
                    stated[operand][axis] = dim
    values = [
        value if _alike(before, after) else restated(emitter, value, after, emitter.importer.called(node))
        for value, before, after in zip(node.inputs, shapes, stated, strict=True)
    ]
    return _within(emitter, node, values, stated) if node.op_type in INDEXED else values


def _within(
    emitter: Emitter, node: Node, values: list[Value], shapes: Sequence[Sequence[Dim]]
) -> list[Value]:
    """The operands, the data behind a check that indices reach no further than it along other axes."""
    data, indices = shapes[:2]
    if not data or len(data) != len(indices):
        return values
    along = int(node.attribute("axis", 0)) % len(data)
    for axis, (extent, reach) in enumerate(zip(data, indices, strict=True)):
        if axis == along or compared("<=", reach, extent) is True:
            continue
        words = (
            f"{emitter.importer.called(node)}: indices for {text_of(reach)} elements of axis {axis}, "
            f"which has {text_of(extent)}; expected no more; mend the inputs' shapes"
        )
        if compared("<=", reach, extent) is False:
            raise InvalidInputError(words)
        met = tirx.LE(expression(reach), expression(extent))
        values = [demanded(emitter, values[0], Demand(met, words)), *values[1:]]
    return values


def _shape(value: Value) -> list[Dim] | None:
    if value is None or isinstance(value, list):
        return None
    return shape_of(value)


def _is_fixed(shape: Sequence[Dim] | None) -> bool:
    return shape is None or all(isinstance(dim, int) for dim in shape)


def _alike(before: Sequence[Dim] | None, after: Sequence[Dim] | None) -> bool:
    if before is None or after is None:
        return True
    return all(same(old, new) for old, new in zip(before, after, strict=True))


def _equal(dims: Sequence[Dim]) -> Dim | None:
    """The dimension that all of them are; None where numbers contradict each other."""
    numbers = {dim for dim in dims if isinstance(dim, int)}
    if len(numbers) > 1 or len(dims) < 2:
        return None
    return numbers.pop() if numbers else _chosen(dims)


def common(dims: Sequence[Dim]) -> Dim | None:
    """The dimension that all are which are not known to be 1; None where they are alike, or contradict."""
    wide = [dim for dim in dims if not (isinstance(dim, int) and dim == 1)]
    numbers = {dim for dim in wide if isinstance(dim, int)}
    if len(wide) < 2 or len(numbers) > 1:
        return None
    return numbers.pop() if numbers else _chosen(wide)


def _chosen(dims: Sequence[Dim]) -> Dim:
    """One of several that must be equal: one that is 1 only where all are, by preference a name."""
    ordered = sorted(dims, key=lambda dim: not isinstance(dim, tirx.Var))
    if all(same(ordered[0], dim) for dim in ordered[1:]):
        return ordered[0]
    return next((dim for dim in ordered if all(implied(other, dim, 1) for other in ordered)), ordered[0])


def _broadcast(node: Node, shapes: Sequence[Sequence[Dim] | None]) -> Iterable[Sequence[Place]]:
    """Axes that stand at one place counted from the end."""
    return _from_the_end(shapes, 0)


def _from_the_end(shapes: Sequence[Sequence[Dim] | None], skipped: int) -> Iterable[list[tuple[int, int]]]:
    rank = max((len(shape) for shape in shapes if shape is not None), default=0)
    for back in range(1 + skipped, rank + 1):
        yield [
            (operand, len(shape) - back)
            for operand, shape in enumerate(shapes)
            if shape is not None and len(shape) >= back
        ]


def _concat(node: Node, shapes: Sequence[Sequence[Dim] | None]) -> Iterable[Sequence[Place]]:
    """All axes but the one along which they are put together."""
    ranks = {len(shape) for shape in shapes if shape is not None}
    if len(ranks) != 1 or any(shape is None for shape in shapes):
        return
    rank = ranks.pop()
    along = node.attributes["axis"] % rank
    for axis in range(rank):
        if axis != along:
            yield [(operand, axis) for operand in range(len(shapes))]


def _matmul(node: Node, shapes: Sequence[Sequence[Dim] | None]) -> Iterable[Sequence[Place]]:
    """The axis that is summed over, and those of the batch where neither is 1."""
    left, right = shapes[:2]
    if not left or not right:
        return
    yield [(0, len(left) - 1), (1, max(len(right) - 2, 0))]
    if min(len(left), len(right)) > 2:
        sides = [left, right]
        for places in _from_the_end(sides, 2):
            if not any(sides[operand][axis] == 1 for operand, axis in places):
                yield places


def _gemm(node: Node, shapes: Sequence[Sequence[Dim] | None]) -> Iterable[Sequence[Place]]:
    if any(shape is None or len(shape) != 2 for shape in shapes[:2]):
        return
    rows, columns = (1 if node.attribute("transA", 0) else 0), (0 if node.attribute("transB", 0) else 1)
    yield [(0, 1 - rows), (1, 1 - columns)]
    added = shapes[2] if len(shapes) > 2 else None
    for back, place in ((2, (0, rows)), (1, (1, columns))):
        # It broadcasts, and one that has a name may be 1.
        if added is not None and len(added) >= back and isinstance(added[-back], int) and added[-back] != 1:
            yield [place, (2, len(added) - back)]


_RULES: dict[str, Callable[[Node, Sequence[Sequence[Dim] | None]], Iterable[Sequence[Place]]]] = {
    **dict.fromkeys(
        (
            *("Add", "Sub", "Mul", "Div", "Mod", "Pow", "PRelu", "Where", "Max", "Min", "Sum", "Mean"),
            *("And", "Or", "Xor", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
            *("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"),
        ),
        _broadcast,
    ),
    "Concat": _concat,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "MatMulInteger": _matmul,
    **EQUAL,
    **{operator: EQUAL.get(operator, lambda _node, _shapes: []) for operator in INDEXED},
}
