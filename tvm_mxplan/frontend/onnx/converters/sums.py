"""Einsum as Relax's operator where its equation is one of products, and as a kernel otherwise."""

from __future__ import annotations

from tvm import relax, topi

from ....core.einsum import parse
from ....core.program.dims import Symbol
from ..dimensions.dims import Dim, same
from ..node import Emitter, Node
from ..values import Value
from .table import converts


@converts("Einsum")
def _einsum(emitter: Emitter, node: Node) -> Value:
    operands = [emitter.tensor(node.input(at)) for at in range(len(node.inputs))]
    shapes, seen = [emitter.shape(operand) for operand in operands], list[Dim]()
    alike = [_written_alike(dims, seen) for dims in shapes]
    text = node.text("equation")
    equation = parse(text, [tuple(_symbol(dim, seen) for dim in dims) for dims in alike])
    if equation is None:
        return emitter.builder.emit_te(topi.einsum, text.replace(" ", ""), *operands)
    fields = [
        operand
        if all(new is old for new, old in zip(dims, shape, strict=True))
        else emitter.tensor(emitter.reshaped(operand, dims))
        for operand, dims, shape in zip(operands, alike, shapes, strict=True)
    ]
    return emitter.emit(relax.op.einsum(tuple(fields), equation.text))


def _written_alike(dims: list[Dim], seen: list[Dim]) -> list[Dim]:
    """The dimensions, each as the first among those seen that is the same."""
    found = []
    for dim in dims:
        first = next((old for old in seen if same(old, dim)), None)
        if first is None:
            seen.append(dim)
        found.append(dim if first is None else first)
    return found


def _symbol(dim: Dim, seen: list[Dim]) -> int | Symbol:
    return dim if isinstance(dim, int) else Symbol(str(next(at for at, old in enumerate(seen) if old is dim)))
