"""Einsum as Relax's operator where its equation is one of products, and as a kernel otherwise."""

from __future__ import annotations

from tvm import relax, topi

from ....core.einsum import parse
from ..node import Emitter, Node
from ..values import Value
from .table import converts


@converts("Einsum")
def _einsum(emitter: Emitter, node: Node) -> Value:
    operands = [emitter.tensor(node.input(at)) for at in range(len(node.inputs))]
    text = node.text("equation")
    equation = parse(text, [tuple(emitter.shape(operand)) for operand in operands])
    if equation is None:
        return emitter.builder.emit_te(topi.einsum, text.replace(" ", ""), *operands)
    return emitter.emit(relax.op.einsum(tuple(operands), equation.text))
