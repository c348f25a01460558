"""Gradients of sums of products by their letters (``einsum``)."""

from __future__ import annotations

from tvm import relax
from tvm.relax import op

from ...errors import UnsupportedError
from .table import Backward, gradient_of


@gradient_of("einsum")
def _einsum(back: Backward) -> list[relax.Expr]:
    """The sum of products of the result's gradient and all other operands, with an operand's letters kept.

    Along letters that only one operand has, and that are summed, each element gets the same.
    """
    text, (given,) = str(back.call.attrs.subscripts).replace(" ", ""), back.operands
    sides = text.split("->")
    terms, result = sides[0].split(","), sides[-1]
    if len(sides) != 2 or "." in text or any(len(set(term)) < len(term) for term in terms):
        raise UnsupportedError(
            f"{text!r} cannot be trained yet; expected a result, and no letter twice or ..."
        )
    fields = [
        given.fields[at] if isinstance(given, relax.Tuple) else back.emit(relax.TupleGetItem(given, at))
        for at in range(len(terms))
    ]
    grads = []
    for at, term in enumerate(terms):
        others = [one for one in range(len(terms)) if one != at]
        left = [result, *(terms[one] for one in others)]
        kept = "".join(letter for letter in term if letter in "".join(left))
        operands = [back.grad, *(fields[one] for one in others)]
        grad = back.emit(op.einsum(tuple(operands), f"{','.join(left)}->{kept}"))
        shape = [int(extent) for extent in given.ty.fields[at].shape.values]
        if kept != term:
            row = [extent if letter in kept else 1 for letter, extent in zip(term, shape, strict=True)]
            grad = back.emit(op.broadcast_to(back.reshaped(grad, row), shape))
        grads.append(grad)
    return [relax.Tuple(grads)]
