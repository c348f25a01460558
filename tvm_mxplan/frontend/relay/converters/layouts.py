"""Tensors in any order of axes, brought to channels first and back: what libraries take."""

from __future__ import annotations

from tvm import relax

from ..node import Node

PLAIN = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def reordered(node: Node, value: relax.Expr, source: str, target: str) -> relax.Expr:
    """The tensor with its axes in another order, both named by letters.

    Raises
    ------
    UnsupportedError : layouts with blocks, as NCHW16c, which TVM's passes make.
    """
    if source == target:
        return value
    if sorted(source) != sorted(target) or len(set(source)) != len(source):
        node.unsupported(
            f"layout {source!r}; expected the axes of {target} in some order, without blocks: "
            "save the module before relay.build's passes change it"
        )
    return node.emit(relax.op.permute_dims(value, [source.index(letter) for letter in target]))


def padding(node: Node, rank: int) -> list[int]:
    """Zeros before each spatial axis, then behind each, from one, ``rank`` or twice as many numbers."""
    numbers = node.ints("padding")
    if len(numbers) == 1:
        return numbers * (2 * rank)
    if len(numbers) == rank:
        return numbers * 2
    if len(numbers) != 2 * rank:
        node.wrong(f"expected 1, {rank} or {2 * rank} numbers as padding, got {numbers}")
    return numbers
